"""Writes at places that data choose, on ranks: rank 0 says so if all is as in NumPy.

Bytes are those that the record says of the indices, step by step.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.frontend import numpy_program
from distspmd.plans.scattered_write import ScatteredWrite

COMM = MPI.COMM_WORLD
RNG = np.random.default_rng(5)
STEPS = 3


def at_indices_that_change(y: Any, idx: Any, v: Any) -> None:
    """A generator of places; the last of duplicates wins, and negative ones count from the end."""
    for _t in range(STEPS):
        idx[:] = (5 * idx + 3) % 29 - 13
        y[idx] = v
        y *= 1.5


def at_fixed_indices(y: Any, idx: Any, v: Any) -> None:
    """Places are exchanged once, and values each time."""
    for _t in range(STEPS):
        v *= 2
        y[idx] = v
        np.add.at(y, idx, v)


def of_fixed_values(y: Any, idx: Any, v: Any) -> None:
    """Nothing moves but once."""
    for _t in range(STEPS):
        np.add.at(y, idx, v)
        y *= 0.5


def numbers(y: Any, idx: Any, v: Any) -> None:
    """All places get one number."""
    for t in range(STEPS):
        idx[:] = (idx + 7) % 23
        y[idx] = v[t]


def rows(y: Any, idx: Any, v: Any) -> None:
    """Rows of a matrix, which may be split both ways."""
    for _t in range(STEPS):
        idx += 1
        idx %= 11
        y[idx] = v
        y[idx] += 1


def points(y: Any, i: Any, j: Any, v: Any) -> None:
    """Elements of a matrix, by two arrays of indices of two dimensions."""
    for _t in range(STEPS):
        i[:] = (i + j) % 9
        y[i, j] = v
        np.add.at(y, (i, -1 - j), v)


def at_a_mask(y: Any, m: Any, idx: Any) -> None:
    """Places that a mask allows."""
    for t in range(STEPS):
        idx[:] = (idx * 3 + 1) % 23
        y[idx[m]] = t + 0.5


def deposition(x: Any, w: Any, rho: Any) -> None:
    """Particles that move give what they have to cells, of which there are more."""
    n = rho.shape[0]
    for _t in range(STEPS):
        x[:] = (x + 0.1) % 1
        cell = np.floor(x * n).astype(np.int64)
        rho[:] = 0
        np.add.at(rho, cell, w)
        w *= 1.5


Y, INDEX = RNG.random(23), RNG.integers(-23, 23, 17)
CASES: list[tuple[Any, dict[str, Any], list[dict[str, tuple[int, ...]]]]] = [
    (at_indices_that_change, {"y": Y, "idx": INDEX, "v": RNG.random(17)}, [{"y": (0,)}]),
    (at_fixed_indices, {"y": Y, "idx": INDEX, "v": RNG.random(17)}, [{"y": (0,)}]),
    (of_fixed_values, {"y": Y, "idx": INDEX, "v": RNG.random(17)}, [{"y": (0,)}]),
    (numbers, {"y": Y + 0j, "idx": INDEX % 23, "v": RNG.random(STEPS)}, [{"y": (0,)}]),
    (
        rows,
        {"y": RNG.random((11, 6)), "idx": RNG.integers(0, 9, 5), "v": RNG.random((5, 6))},
        [{"y": (0, 1)}, {"y": (2, 2)}],
    ),
    (
        points,
        {
            "y": RNG.random((9, 5)),
            "i": RNG.integers(0, 9, (4, 3)),
            "j": RNG.integers(0, 5, (4, 3)),
            "v": RNG.random((4, 3)),
        },
        [{"y": (0, 1)}, {"y": (1, 0)}],
    ),
    (at_a_mask, {"y": Y, "m": RNG.random(17) > 0.4, "idx": INDEX % 23}, [{"y": (0,)}]),
    (
        deposition,
        {"x": RNG.random(20), "w": RNG.random(20), "rho": RNG.random(31)},
        [{"rho": (0,)}],
    ),
]
"""Programs with arguments, and grids of what is written; 0 stands for all ranks."""


def run(function: Any, given: dict[str, Any], grids: dict[str, tuple[int, ...]]) -> None:
    """Run twice, compare, and count what moves."""
    schedule = {name: tuple(n or COMM.size for n in grid) for name, grid in grids.items()}
    lowering = None
    if COMM.rank == 0:
        program = numpy_program(function, *given.values(), host="refuse")
        lowering = distspmd.lower(program, schedule)
        distspmd.verify(lowering)
    with distspmd.compile(lowering, COMM) as compiled:
        for _ in range(2):
            mine, theirs = ({n: a.copy() for n, a in given.items()} for _ in range(2))
            compiled(*mine.values())
            function(*theirs.values())
            for name in given if COMM.rank == 0 else ():
                np.testing.assert_array_equal(
                    mine[name], theirs[name], err_msg=f"{name} of {function.__name__} {schedule}"
                )
        moved = [
            (each, COMM.allreduce(found.received_bytes))
            for each, found in compiled.statistics()
            if isinstance(each, ScatteredWrite)
        ]
    if function in BYTES and COMM.size > 1:
        (write, *_), found = (list(x) for x in zip(*moved, strict=True))
        assert sum(found) == BYTES[function](write, given), (function.__name__, found)


def of_changing(write: Any, given: dict[str, Any]) -> int:
    """Each place and each value once to its owner, in each step of two runs."""
    idx, total = given["idx"], 0
    for _t in range(STEPS):
        idx = (5 * idx + 3) % 29 - 13
        total += write.received_bytes([idx])
    return 2 * total


def of_fixed(write: Any, given: dict[str, Any]) -> int:
    """Places once for each of two writes, and values in each step."""
    each = write.received_bytes([given["idx"]], places=False)
    return 2 * (write.received_bytes([given["idx"]], values=False) + 2 * STEPS * each)


def of_nothing(write: Any, given: dict[str, Any]) -> int:
    """Places once, and values once in each of two runs."""
    places = write.received_bytes([given["idx"]], values=False)
    return places + 2 * write.received_bytes([given["idx"]], places=False)


BYTES = {
    at_indices_that_change: of_changing,
    at_fixed_indices: of_fixed,
    of_fixed_values: of_nothing,
}


def outside(y: Any, idx: Any, v: Any) -> None:
    """One index of one rank is out of range."""
    idx += 20
    y[idx] = v


def refused() -> None:
    """All ranks raise NumPy's error."""
    given = {"y": Y, "idx": np.arange(10), "v": np.ones(10)}
    lowering = None
    if COMM.rank == 0:
        lowering = distspmd.lower(numpy_program(outside, *given.values()), {"y": (COMM.size,)})
    with (
        distspmd.compile(lowering, COMM) as compiled,
        pytest.raises(IndexError, match="index 23 is out of bounds"),
    ):
        compiled(*given.values())


def main(names: list[str]) -> None:
    """Run all programs."""
    for function, given, schedules in CASES:
        for grids in schedules:
            needed = int(np.prod([n or 1 for grid in grids.values() for n in grid]))
            if needed <= COMM.size and (not names or function.__name__ in names):
                run(function, given, grids)
    refused()
    if COMM.rank == 0:
        print(f"as in NumPy on {COMM.size} ranks")


if __name__ == "__main__":
    main(sys.argv[1:])
