"""Periodic boundaries: bytes of a step, and times beside NumPy.

    python benchmarks/periodic.py [programs] [--ranks 1 2]

Each program runs with the schedule that is searched for, on ranks of one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI
from on_ranks import best_of, bytes_of_a_step, measure_on_ranks

import distspmd
from distspmd.frontend import numpy_program

STEPS = 20


def line(u: Any) -> None:
    """The heat equation on a circle."""
    for _ in range(STEPS):
        u[:] = (np.roll(u, 1) + np.roll(u, -1)) / 2


def by_remainders(u: Any) -> None:
    """The same with arrays of indices."""
    i = np.arange(len(u))
    for _ in range(STEPS):
        u[:] = (u[(i + 1) % len(u)] + u[(i - 1) % len(u)]) / 2


def grid(u: Any) -> None:
    """The heat equation on a torus."""
    for _ in range(STEPS):
        rows = np.roll(u, 1, axis=0) + np.roll(u, -1, axis=0)
        u[:] = u + 0.1 * (rows + np.roll(u, 1, axis=1) + np.roll(u, -1, axis=1) - 4 * u)


def shallow(h: Any, u: Any, v: Any) -> None:
    """The linear equations of shallow water on a torus, in place."""
    for _ in range(STEPS):
        u -= 0.0981 * ((np.roll(h, -1, 0) - np.roll(h, 1, 0)) / 2)
        v -= 0.0981 * ((np.roll(h, -1, 1) - np.roll(h, 1, 1)) / 2)
        along = (np.roll(u, -1, 0) - np.roll(u, 1, 0)) / 2
        h -= 0.01 * (along + (np.roll(v, -1, 1) - np.roll(v, 1, 1)) / 2)


def advected(h: Any, u: Any, v: Any) -> Any:
    """The same with advection, as formulas of textbooks: new arrays in each step."""

    def ddx(f: Any) -> Any:
        return (np.roll(f, -1, axis=1) - np.roll(f, 1, axis=1)) / 2.0

    def ddy(f: Any) -> Any:
        return (np.roll(f, -1, axis=0) - np.roll(f, 1, axis=0)) / 2.0

    for _ in range(STEPS):
        dudt = -9.81 * ddx(h) - u * ddx(u) - v * ddy(u)
        dvdt = -9.81 * ddy(h) - u * ddx(v) - v * ddy(v)
        dhdt = -ddx(h * u) - ddy(h * v)
        u = u + 0.01 * dudt
        v = v + 0.01 * dvdt
        h = h + 0.01 * dhdt
    return h, u, v


def programs() -> dict[Callable[..., Any], tuple[Any, ...]]:
    """Each program with its arguments."""
    rng = np.random.default_rng(0)
    fields = 1 + 0.1 * rng.random((1024, 1024)), *(0.1 * rng.random((2, 1024, 1024)))
    return {
        line: (rng.random(1 << 20),),
        by_remainders: (rng.random(1 << 20),),
        grid: (rng.random((2048, 2048)),),
        shallow: fields,
        advected: tuple(field.copy() for field in fields),  # the first ones change
    }


def measure(names: Sequence[str]) -> None:
    """Print a line for each program, on the ranks that run this."""
    comm = MPI.COMM_WORLD
    for function, given in programs().items():
        if names and function.__name__ not in names:
            continue
        lowering = None
        if comm.rank == 0:
            lowering = distspmd.lower(numpy_program(function, *given), ranks=comm.size)
        with distspmd.compile(lowering, comm) as compiled:
            seconds = best_of(lambda compiled=compiled, given=given: compiled(*given), 7)
        if lowering is not None:
            moved = bytes_of_a_step(lowering, STEPS)
            numpy = best_of(lambda f=function, g=given: f(*g), 3)
            print(
                f"{function.__name__:13} {comm.size} ranks: {moved:>9,} bytes a step, "
                f"{seconds * 1e3:8.2f} ms, NumPy {numpy * 1e3:8.2f} ms",
                flush=True,
            )


if __name__ == "__main__":
    measure_on_ranks(__file__, __doc__, measure, (1, 2))
