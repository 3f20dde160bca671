"""Power iteration with a sparse matrix (CSR), partitioned over 4 ranks.

No schedule is given: the one that is searched for gives each rank rows of the matrix.
Which entries of the matrix and of the vector a rank needs stands in the row and column arrays,
which are known when the program runs. So each rank computes these indices alone, asks the ranks
that have the elements, and gets those and no others:

- once, its rows' slice of the columns and of the values, from rank 0 which has the matrix;
- in every step, those entries of the vector that its columns name and another rank computed. What
  to ask for is found once, because the columns do not change; the steps send the entries alone.

The matrix has a band and some entries far from it, so most of what a rank needs is its own.

Run it with ``python examples/spmv.py``: it starts its own ranks.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import distspmd
from distspmd import launch
from distspmd.plans import Machine
from distspmd.runtime import launched_ranks

if TYPE_CHECKING:  # the ranks that run a program need no DaCe
    import dace

ROWS, BAND, FAR, STEPS = 100_000, 8, 20_000, 10
ENTRIES = ROWS * BAND + FAR


def iterated(
    row: dace.int64[ROWS + 1],
    col: dace.int32[ENTRIES],
    val: dace.float64[ENTRIES],
    x: dace.float64[ROWS],
):
    y = np.empty_like(x)
    for _ in range(STEPS):
        for i in distspmd.map[0:ROWS]:
            total = 0.0
            for k in range(row[i], row[i + 1]):
                total += val[k] * x[col[k]]
            y[i] = total
        x[:] = y


def matrix():
    """Rows that sum to one, as CSR: a band of columns, and entries anywhere."""
    rng = np.random.default_rng(0)
    at = np.concatenate([np.repeat(np.arange(ROWS), BAND), rng.integers(0, ROWS, FAR)])
    near = np.repeat(np.arange(ROWS), BAND) + rng.integers(-100, 101, ROWS * BAND)
    col = np.concatenate([near % ROWS, rng.integers(0, ROWS, FAR)])
    order = np.argsort(at, kind="stable")
    count = np.bincount(at, minlength=ROWS)
    val = rng.random(ENTRIES)
    sums = np.bincount(at, val, ROWS)
    row = np.concatenate([[0], np.cumsum(count)])
    return row, col[order].astype(np.int32), val[order] / np.repeat(sums, count)


def in_numpy(row, col, val, x):
    at = np.repeat(np.arange(ROWS), np.diff(row))
    for _ in range(STEPS):
        x = np.bincount(at, val * x[col], ROWS)
    return x


def main() -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    lowering, arguments = None, ()
    if comm.rank == 0:
        # as on a cluster, where each rank has a core: of few cores, fewer ranks would be faster
        lowering = distspmd.lower(iterated, ranks=comm.size, machine=Machine())
        print(lowering)
        row, col, val = matrix()
        x = np.random.default_rng(1).random(ROWS)
        expected = in_numpy(row, col, val, x)
        arguments = (row, col, val, x)
    program = distspmd.compile(lowering, comm)
    start = time.perf_counter()
    program(*arguments)
    ran = time.perf_counter() - start

    fetched = {m.data: s for m, s in program.statistics() if m.asked}
    counts = {name: (s.received_bytes, s.calls, s.asked_bytes) for name, s in fetched.items()}
    everywhere = comm.gather(counts)
    if comm.rank != 0:
        return
    for name, itemsize, extent in (("col", 4, ENTRIES), ("val", 8, ENTRIES), ("x", 8, ROWS)):
        print(f"{name}: {itemsize * extent:,} bytes in all, fetched {counts[name][1]} times;")
        each = ", ".join(f"{rank[name][0] // rank[name][1]:,}" for rank in everywhere)
        print(f"  bytes that each rank received each time: {each}")
    print(f"one run of {STEPS} steps: {ran * 1e3:.1f} ms")
    difference = np.abs(x - expected).max() / np.abs(expected).max()
    print(f"largest difference from NumPy, relative to the largest value: {difference:.1e}")
    if not difference < 1e-12:
        sys.exit("the result is wrong")


if __name__ == "__main__":
    if launched_ranks() is None:
        from showing import on_device

        sys.exit(
            launch([Path(__file__).resolve()], ranks=4, env=on_device(), timeout=300).returncode
        )
    main()
