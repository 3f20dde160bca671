"""One rank of three fails in the middle of a run, in the way that the argument says."""

import os
import signal
import sys

import dace
import numpy as np
from mpi4py import MPI

import distspmd

comm = MPI.COMM_WORLD


@dace.program
def product(a: dace.float64[10, 8], b: dace.float64[8, 6]):
    return a @ b


if sys.argv[1] == "raises early" and comm.rank == 1:
    raise ValueError("no more of this")
sdfg = product.to_sdfg()
distspmd.lower(sdfg, {"_MatMult_": (3, 1, 1)})
program = distspmd.compile(sdfg, comm)
for number in range(10):
    if number == 3 and comm.rank == 1:
        if sys.argv[1] == "raises":
            raise ValueError("no more of this")
        os.kill(os.getpid(), signal.SIGKILL)
    program(np.ones((10, 8)), np.ones((8, 6))) if comm.rank == 0 else program()
print("a rank came to the end")
