"""Sorts, quantiles, choices of a long line: bytes of a call, and times beside NumPy.

    python benchmarks/orders.py [programs] [--ranks 1 2 4]

Each program runs with the schedule that is searched for, on ranks of one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI
from on_ranks import best_of, measure_on_ranks

import distspmd
from distspmd.frontend import numpy_program

N = 1 << 21
REPEATS = 3


def sort(x: Any, k: Any) -> None:
    """The elements in order."""
    for _ in range(REPEATS):
        x[:] = np.sort(np.sin(x * 1e3))


def argsort(x: Any, k: Any) -> None:
    """Places in order."""
    for _ in range(REPEATS):
        k[:] = np.argsort(k % 1001, kind="stable")


def median(x: Any, k: Any) -> None:
    """The middle of all elements."""
    for _ in range(REPEATS):
        x -= np.median(x)


def different(x: Any, k: Any) -> None:
    """How many different elements there are."""
    for _ in range(REPEATS):
        k += np.unique(k % 1001).size


def chosen(x: Any, k: Any) -> None:
    """Cumulative sums of what a mask chooses."""
    for _ in range(REPEATS):
        x += np.cumsum(x[x > 0.5])[-1] * 1e-9


def measure(names: Sequence[str]) -> None:
    """Print a line for each program, on the ranks that run this."""
    comm = MPI.COMM_WORLD
    for function in (sort, argsort, median, different, chosen):
        if names and function.__name__ not in names:
            continue
        rng = np.random.default_rng(0)
        given = rng.random(N), rng.integers(0, 1 << 40, N)
        lowering = None
        if comm.rank == 0:
            lowering = distspmd.lower(numpy_program(function, *given), ranks=comm.size)
        with distspmd.compile(lowering, comm) as compiled:
            compiled(*given)
            compiled.reset_statistics()
            compiled(*given)
            told = sum(s.received_bytes for m, s in compiled.statistics() if m.times != 1)
            nbytes = comm.allreduce(told) // REPEATS
            seconds = best_of(lambda compiled=compiled, given=given: compiled(*given), 5)
        if comm.rank == 0:
            numpy = best_of(lambda f=function, g=given: f(*g), 3)
            print(
                f"{function.__name__:9} {comm.size} ranks: {nbytes:>12,} bytes a call, "
                f"{seconds / REPEATS * 1e3:8.2f} ms, NumPy {numpy / REPEATS * 1e3:8.2f} ms",
                flush=True,
            )


if __name__ == "__main__":
    measure_on_ranks(__file__, __doc__, measure, (1, 2, 4))
