"""Writes at places that data choose, and long scans: bytes of a step, and times beside NumPy.

    python benchmarks/writes.py [programs] [--ranks 1 2 4]

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
N = 1 << 20


def source(u: Any, where: Any) -> None:
    """A stencil with a source at a place that data choose."""
    k = int(where[0])
    for _ in range(STEPS):
        u[1:-1] = (u[:-2] + u[2:]) / 2
        u[k] += 1.0


def bounce(f: Any, solid: Any) -> None:
    """A lattice whose solid cells turn their distributions around."""
    for _ in range(STEPS):
        f *= 1.01
        f[solid] = f[solid, ::-1]
        f[solid, :] *= -1


def scatter(y: Any, index: Any, v: Any) -> None:
    """Elements at places of an array of indices."""
    for _ in range(STEPS):
        y[index] = v
        y *= 1.01


def deposit(y: Any, index: Any, v: Any) -> None:
    """Sums at places of an array of indices."""
    for _ in range(STEPS):
        np.add.at(y, index, v)
        y *= 0.99


def change(y: Any, index: Any, v: Any) -> None:
    """Elements at places that are other ones in each step."""
    for _ in range(STEPS):
        index[:] = (5 * index + 3) % N
        y[index] = v
        y *= 1.01


def scan(x: Any, y: Any) -> None:
    """Cumulative sums of one line."""
    for _ in range(STEPS):
        x[:] = np.cumsum(np.sin(x) * y) * 1e-3


def programs() -> dict[Callable[..., None], tuple[Any, ...]]:
    """Each program with its arguments."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, N, N)
    return {
        source: (rng.random(N), np.array([N // 3])),
        bounce: (rng.random((512, 512, 4)), rng.random((512, 512)) < 0.1),
        scatter: (rng.random(N), places, rng.random(N)),
        deposit: (rng.random(N), places, rng.random(N)),
        change: (rng.random(N), places, rng.random(N)),
        scan: (rng.random(N), rng.random(N)),
    }


def measure(names: Sequence[str]) -> None:
    """Print a line for each program, on the ranks that run this."""
    comm = MPI.COMM_WORLD
    for function, given in programs().items():
        if names and function.__name__ not in names:
            continue

        def lowered(
            function: Callable[..., None] = function, given: tuple[Any, ...] = given
        ) -> distspmd.lowering.Lowering:
            return distspmd.lower(numpy_program(function, *given), ranks=comm.size)

        lowering = lowered() if comm.rank == 0 else None
        with distspmd.compile(lowering, comm) as compiled:
            seconds = best_of(lambda compiled=compiled, given=given: compiled(*given), 7)
        if lowering is not None:
            moved = bytes_of_a_step(lowering, STEPS)
            numpy = best_of(lambda f=function, g=given: f(*g), 3)
            print(
                f"{function.__name__:8} {comm.size} ranks: {moved:>12,} bytes a step, "
                f"{seconds * 1e3:8.2f} ms, NumPy {numpy * 1e3:8.2f} ms",
                flush=True,
            )


if __name__ == "__main__":
    measure_on_ranks(__file__, __doc__, measure, (1, 2, 4))
