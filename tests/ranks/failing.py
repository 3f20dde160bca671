"""One rank of three fails in the middle of a run, in the way that the argument says."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

import distspmd

if TYPE_CHECKING:
    import dace

comm = MPI.COMM_WORLD


def product(a: dace.float64[10, 8], b: dace.float64[8, 6]):
    return a @ b


if sys.argv[1] == "raises early" and comm.rank == 1:
    raise ValueError("no more of this")
program = distspmd.compile(lambda: distspmd.lower(product, {"__return": (3, 1, 1)}), comm)
for number in range(10):
    if number == 3 and comm.rank == 1:
        if sys.argv[1] == "raises":
            raise ValueError("no more of this")
        os.kill(os.getpid(), signal.SIGKILL)
    program(np.ones((10, 8)), np.ones((8, 6))) if comm.rank == 0 else program()
print("a rank came to the end")
