"""Loops of Python over elements: times on one rank and on two, beside Python itself and NumPy.

    python benchmarks/loops.py [programs] [--ranks 1 2]

Each program runs with the schedule that is searched for, on ranks of one thread; arguments stay on
the ranks. Python is timed on a part of the iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI
from on_ranks import best_of, measure_on_ranks

import distspmd
from distspmd.frontend import numpy_program

N, ROWS = 1 << 20, 1 << 11
STEPS = 10
SMALL = 1 << 13


def doubled(x: Any, out: Any) -> None:
    """One line for each element."""
    for _ in range(STEPS):
        for i in range(x.shape[0]):
            out[i] = x[i] * 2 + out[i]


def row_sums(x: Any, out: Any) -> None:
    """A sum for each row."""
    for _ in range(STEPS):
        for i in range(x.shape[0]):
            out[i] = x[i].sum() + out[i]


def stencil(x: Any, y: Any) -> None:
    """Neighbours of each element of a grid, in two loops."""
    n, m = x.shape
    for _ in range(STEPS):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                y[i, j] = (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 4
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                x[i, j] = y[i, j]


def rows_by_enumerate(x: Any, out: Any) -> None:
    """The length of each row."""
    for _ in range(STEPS):
        for i, row in enumerate(x):
            out[i] = np.sqrt((row * row).sum()) + out[i]


def chosen(x: Any, out: Any) -> None:
    """A condition on each element."""
    for _ in range(STEPS):
        for i in range(x.shape[0]):
            if x[i] > 0.5:
                out[i] = x[i] + out[i]
            else:
                out[i] = out[i] * 0.5


def total(x: Any, out: Any) -> None:
    """One sum of all."""
    for _ in range(STEPS):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i] * out[i]
        out[0] = s


def welford(x: Any, out: Any) -> None:
    """A running mean and variance."""
    for _ in range(STEPS):
        mean = 0.0
        m2 = 0.0
        for i in range(x.shape[0]):
            d = x[i] - mean
            mean += d / (i + 1)
            m2 += d * (x[i] - mean)
        out[0] = mean
        out[1] = m2


def prefix(x: Any, out: Any) -> None:
    """Prefix sums."""
    for _ in range(STEPS):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
            out[i] = s


def recurrence(x: Any, out: Any) -> None:
    """A linear recurrence."""
    for _ in range(STEPS):
        for i in range(1, x.shape[0]):
            out[i] = 0.5 * out[i - 1] + x[i]


def seidel(x: Any, y: Any) -> None:
    """Neighbours of which some are new already."""
    n, m = x.shape
    for _ in range(STEPS):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                x[i, j] = (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 4


LINES = (doubled, chosen, total, welford, prefix, recurrence)
GRIDS = (stencil, seidel)
IN_ROWS = (row_sums, rows_by_enumerate)


def arguments(program: Callable[..., None], n: int, rows: int) -> tuple[Any, ...]:
    """What a program is called with: lines of ``n`` elements, or grids of ``rows`` squared."""
    rng = np.random.default_rng(0)
    if program in LINES:
        return rng.random(n), rng.random(n)
    grid = rng.random((rows, rows))
    return grid, rng.random((rows, rows) if program in GRIDS else rows)


NUMPY: dict[str, Callable[[Any, Any], object]] = {
    "doubled": lambda x, out: np.add(x * 2, out, out=out),
    "row_sums": lambda x, out: np.add(x.sum(axis=1), out, out=out),
    "stencil": lambda x, y: np.copyto(
        y[1:-1, 1:-1], (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 4
    ),
    "rows_by_enumerate": lambda x, out: np.add(np.sqrt((x * x).sum(axis=1)), out, out=out),
    "chosen": lambda x, out: np.copyto(out, np.where(x > 0.5, x + out, out * 0.5)),
    "total": lambda x, out: x @ out,
    "welford": lambda x, out: (x.mean(), x.var()),
    "prefix": lambda x, out: np.cumsum(x, out=out),
}
"""One step in NumPy, where there is one."""


def measure(names: Sequence[str]) -> None:
    """Print a line for each program, on the ranks that run this."""
    comm = MPI.COMM_WORLD
    for program in (*LINES, *IN_ROWS, *GRIDS):
        if names and program.__name__ not in names:
            continue
        given = arguments(program, N, ROWS)
        lowering = None
        if comm.rank == 0:
            lowering = distspmd.lower(numpy_program(program, *given), ranks=comm.size)
        with distspmd.compile(lowering, comm) as compiled:
            seconds = best_of(lambda compiled=compiled, given=given: compiled(*given), 5)
        if lowering is None:
            continue
        small = arguments(program, SMALL, 64)
        ratio = given[0].size / small[0].size
        if program in IN_ROWS:
            ratio = given[0].shape[0] / small[0].shape[0]
            small = arguments(program, SMALL, ROWS)
            small = (small[0][:64], small[1][:64])
        python = best_of(lambda p=program, s=small: p(*s), 1) * ratio / STEPS
        numpy = NUMPY.get(program.__name__)
        beside = f"{best_of(lambda f=numpy, g=given: f(*g), 5) * 1e3:8.2f}" if numpy else "       -"
        print(
            f"{program.__name__:18} {comm.size} ranks: {1 - lowering.whole:4.0%} split, "
            f"{seconds / STEPS * 1e3:8.2f} ms a step, Python {python * 1e3:9.1f}, NumPy {beside}",
            flush=True,
        )


if __name__ == "__main__":
    measure_on_ranks(__file__, __doc__, measure, (1, 2))
