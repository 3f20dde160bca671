"""A program is called on ranks; rank 0 prints what was predicted of it, and what it took."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.frontend import numpy_program

COMM = MPI.COMM_WORLD


def worked(x: Any) -> None:
    """Enough work that a call takes some milliseconds."""
    for _t in range(20):
        x[:] = np.sqrt(x * 1.5 + 0.25) * 0.9


def tiny(x: Any) -> None:
    """A call takes some microseconds."""
    x *= 1.5


def main(name: str) -> None:
    """Call it."""
    given = np.ones(200_000 if name == "worked" else 100)
    lowering = None
    if COMM.rank == 0:
        lowering = distspmd.lower(numpy_program(globals()[name], given), {"x": (COMM.size,)})
    with distspmd.compile(lowering, COMM) as compiled:
        seconds = []
        for _ in range(8):
            begin = time.perf_counter()
            compiled(given)
            seconds.append(time.perf_counter() - begin)
    if lowering is not None:
        print(distspmd.predict(lowering).seconds, min(seconds))


if __name__ == "__main__":
    main(sys.argv[1])
