"""Sums of numbers of all magnitudes have the bits of a sum in order, on however many ranks."""

import dace
import numpy as np
from mpi4py import MPI

import distspmd

ROWS, COLUMNS, PARTS = 103, 7, 4


@dace.program
def totals(x: dace.float32[ROWS, COLUMNS], y: dace.float32[COLUMNS]):
    for i, j in dace.map[0:ROWS, 0:COLUMNS]:
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
sdfg = totals.to_sdfg()
lowering = distspmd.lower(
    sdfg, {"y": (PARTS, 1), "sum_x": (2, 2), "__return_1": (1, PARTS)}, deterministic=True
)
for memlet in lowering.memlets:
    distspmd.verify(memlet.solution.plan)
with distspmd.compile(sdfg, comm) as program:
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
