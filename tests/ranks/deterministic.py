"""Sums of numbers of all magnitudes have the bits of a sum in order, on however many ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

import distspmd

if TYPE_CHECKING:
    import dace

ROWS, COLUMNS, PARTS = 103, 7, 4


def totals(x: dace.float32[ROWS, COLUMNS], y: dace.float32[COLUMNS]):
    for i, j in distspmd.map[0:ROWS, 0:COLUMNS]:
        y[j] += x[i, j]
    return np.sum(x), np.sum(x, axis=0)


def in_order(x: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Each rank's rows in order from zero, then the ranks in order."""
    block = -(-ROWS // PARTS)
    operands = []
    for first in range(0, ROWS, block):
        operand = np.zeros_like(start)
        for row in x[first : first + block]:
            operand = operand + row
        operands.append(operand)
    for operand in operands:
        start = start + operand
    return start


comm = MPI.COMM_WORLD
schedule = {"y": (PARTS, 1), "__return_0": (2, 2), "__return_1": (1, PARTS)}
with distspmd.compile(
    lambda: distspmd.lower(totals, schedule, deterministic=True), comm
) as program:
    for memlet in program.lowering.memlets:
        distspmd.verify(memlet.solution.plan)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = (rng.normal(size=(ROWS, COLUMNS)) * 10.0 ** rng.integers(-6, 6, COLUMNS)).astype("f")
        x *= rng.choice([1, 1e3, 1e-3], (ROWS, 1)).astype("f")
        y = rng.normal(size=COLUMNS).astype("f")
        given = y.copy()
        if comm.rank != 0:
            program()
            continue
        total, columns = program(x=x, y=y)
        np.testing.assert_array_equal(y, in_order(x, given))
        np.testing.assert_array_equal(columns, in_order(x, np.zeros(COLUMNS, "f")))
        print("bits", np.asarray(total).tobytes().hex(), y.tobytes().hex())
