"""Bytes that ranks receive of what data decide, on the ranks of the launch, against counting."""

from functools import partial

import numpy as np
from mpi4py import MPI

import distspmd

comm = MPI.COMM_WORLD
rng = np.random.default_rng(5)
ROWS, COLUMNS = 13, 17
counts = np.array([0, 5, 1, 0, 0, 9, 2, 2, 0, 3, 7, 0, 1])
ENTRIES = int(counts.sum())
row = np.concatenate([[0], np.cumsum(counts)])
col = rng.integers(0, COLUMNS, ENTRIES)
val = rng.random(ENTRIES)
TILE = -(-ROWS // comm.size)


def lowered(name, schedule):
    """A program for DaCe's parser, which rank 0 alone imports."""
    import dace

    @dace.program
    def spmv(
        row: dace.int64[ROWS + 1],
        col: dace.int32[ENTRIES],
        val: dace.float64[ENTRIES],
        x: dace.float32[COLUMNS],
        y: dace.float64[ROWS],
    ):
        for i in dace.map[0:ROWS]:
            y[i] = 0
            for k in dace.map[row[i] : row[i + 1]]:
                y[i] += val[k] * x[col[k]]

    @dace.program
    def scaled_rows(
        table: dace.float64[ROWS, 6], index: dace.int64[ROWS], out: dace.float64[ROWS, 6]
    ):
        for t in range(3):
            for i in dace.map[0:ROWS]:
                out[i, :] = table[index[i], :]
            for i, j in dace.map[0:ROWS, 0:6]:
                table[i, j] = out[i, j] + t

    sdfg = {"spmv": spmv, "scaled_rows": scaled_rows}[name].to_sdfg()
    return distspmd.lower(sdfg, schedule).sdfg


def rows_of(rank):
    """The rows of a rank's tile."""
    return np.arange(min(rank * TILE, ROWS), min((rank + 1) * TILE, ROWS))


def received(program):
    """Bytes of elements, and of requests, of each fetched array on this rank."""
    return {
        memlet.data: (counted.received_bytes, counted.asked_bytes, counted.calls)
        for memlet, counted in program.statistics()
        if memlet.asked
    }


def equal(found, wanted, what):
    assert found == wanted, f"rank {comm.rank} of {comm.size}: {what}: {found}, not {wanted}"


# From rank 0, which has the arrays: each rank gets what its rows name, once, and nothing else.
x = rng.random(COLUMNS).astype(np.float32)
with distspmd.compile(partial(lowered, "spmv", {"y": (comm.size,)}), comm) as program:
    for _ in range(2):
        y = np.zeros(ROWS)
        if comm.rank == 0:
            program(row, col.astype(np.int32), val, x, y)
            wanted = np.zeros(ROWS)
            np.add.at(wanted, np.repeat(np.arange(ROWS), counts), val * x[col])
            np.testing.assert_allclose(y, wanted, rtol=1e-12)
        else:
            program()
    own = rows_of(comm.rank)
    entries = int(counts[own].sum()) * (comm.rank > 0)
    named = len(np.unique(np.repeat(col, 1)[row[own[0]] : row[own[-1] + 1]])) if len(own) else 0
    found = {name: (nbytes, calls) for name, (nbytes, _, calls) in received(program).items()}
    if comm.size > 1:
        equal(found["col"], (2 * entries * 4, 2), "entries of col")
        equal(found["val"], (2 * entries * 8, 2), "entries of val")
        equal(found["x"], (2 * named * 4 * (comm.rank > 0), 2), "entries of x")
    else:
        equal(found, {}, "nothing is fetched on one rank")

# From tiles that all ranks have, which change, while the indices do not: asked once, fetched often.
table, index = rng.random((ROWS, 6)), rng.integers(0, ROWS, ROWS)
with distspmd.compile(partial(lowered, "scaled_rows", {"out": (comm.size,)}), comm) as program:
    out = np.zeros((ROWS, 6))
    if comm.rank == 0:
        wanted = table.copy()
        for t in range(3):
            wanted = wanted[index] + t
        program(table, index, out)
        np.testing.assert_allclose(table, wanted, rtol=1e-12)
    else:
        program()
    own = rows_of(comm.rank)
    lacking = np.setdiff1d(index[own], own)
    if comm.size > 1:
        (nbytes, asked, calls) = received(program)["table"]
        equal((nbytes, calls), (3 * len(lacking) * 6 * 8, 3), "rows of the table")
        runs = 0
        for other in range(comm.size):
            if other != comm.rank and len(own) and len(rows_of(other)):
                wants = np.intersect1d(np.unique(index[rows_of(other)]), own)
                runs += 1 + 2 * int((np.diff(wants, prepend=-9) != 1).sum())
        equal(asked, 8 * runs, "requests, once")

if comm.rank == 0:
    print(f"exact on {comm.size} ranks")
