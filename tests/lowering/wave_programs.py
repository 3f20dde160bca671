"""Programs whose loops hand on a rim: tables of dynamic programming, sweeps in place.

Sizes divide by nothing; on many ranks some have fewer rows than a rim, and some have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import default_rng

import distspmd
from distspmd.frontend import numpy_program
from distspmd.plans.machine import Machine

SMALL_BLOCKS = Machine(alpha=1e-8)
"""A machine whose messages cost nearly nothing, so that blocks are short."""


def edit_distance(a, b, table):
    for i in range(1, table.shape[0]):
        for j in range(1, table.shape[1]):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            other = min(table[i - 1, j] + 1, table[i, j - 1] + 1)
            table[i, j] = min(table[i - 1, j - 1] + cost, other)
    return table[-1, -1]


def alignment(a, b, table):
    for i in range(1, table.shape[0]):
        for j in range(1, table.shape[1]):
            match = table[i - 1, j - 1] + (2 if a[i - 1] == b[j - 1] else -1)
            table[i, j] = max(0, match, table[i - 1, j] - 1, table[i, j - 1] - 1)
    return table.max()


def common_subsequence(a, b, table):
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            if a[i] == b[j]:
                table[i + 1, j + 1] = table[i, j] + 1
            else:
                table[i + 1, j + 1] = max(table[i, j + 1], table[i + 1, j])
    return table[a.shape[0], b.shape[0]]


def affine_gaps(a, b, table):
    h = np.zeros(table.shape)
    e = np.zeros(table.shape)
    f = np.zeros(table.shape)
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            e[i, j] = max(e[i - 1, j] - 0.5, h[i - 1, j] - 2.0)
            f[i, j] = max(f[i, j - 1] - 0.5, h[i, j - 1] - 2.0)
            match = h[i - 1, j - 1] + (2.0 if a[i - 1] == b[j - 1] else -1.0)
            h[i, j] = max(match, e[i, j], f[i, j])
    return h, e


def seidel(x, y):
    for _ in range(3):
        for i in range(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                above = x[i - 1, j - 1] + x[i - 1, j] + x[i - 1, j + 1]
                below = x[i + 1, j - 1] + x[i + 1, j] + x[i + 1, j + 1]
                x[i, j] = (above + x[i, j - 1] + x[i, j] + x[i, j + 1] + below) / 9.0


def relaxed(x, y):
    """Five points, over-relaxed, with a source."""
    for _ in range(2):
        for i in range(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                around = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]
                x[i, j] = x[i, j] + 1.5 * (0.25 * (around - y[i, j]) - x[i, j])


def prefix_sums(x, y):
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = x[i, j] + y[i - 1, j] + y[i, j - 1] - y[i - 1, j - 1]


def far(x, y):
    """A rim of three rows, of which one is read two columns on."""
    for i in range(3, x.shape[0]):
        for j in range(1, x.shape[1] - 2):
            x[i, j] = 0.25 * (x[i - 3, j] + x[i - 1, j + 2] + x[i, j - 1]) + y[i, j]


def turned(x, y):
    """The outer loop goes along the columns."""
    for j in range(1, x.shape[1]):
        for i in range(1, x.shape[0]):
            x[i, j] = 0.5 * (x[i - 1, j] + x[i, j - 1]) + y[i, j]


def where_positive(x, y):
    """Some elements keep what they had."""
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            if y[i, j] > 0.4:
                x[i, j] = x[i - 1, j - 1] + 0.5 * x[i, j - 1] + y[i, j]


def two_layers(x, y):
    z = np.zeros((x.shape[0], x.shape[1], 2))
    z[:, :, 0] = x
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            z[i, j, 0] = 0.5 * (z[i - 1, j, 0] + z[i, j - 1, 0]) + y[i, j]
    return z


def best_score(a, b, table):
    best = 0
    for i in range(1, table.shape[0]):
        for j in range(1, table.shape[1]):
            match = table[i - 1, j - 1] + (2 if a[i - 1] == b[j - 1] else -1)
            table[i, j] = max(0, match, table[i - 1, j] - 1, table[i, j - 1] - 1)
            best = max(best, table[i, j])
    return best


def in_space(x, y):
    """Three loops over the elements of three dimensions."""
    z = np.zeros((x.shape[0], x.shape[1], 5)) + y[0, 0]
    z[:, :, 2] = x
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            for k in range(1, 4):
                around = z[i - 1, j, k] + z[i + 1, j, k] + z[i, j - 1, k] + z[i, j + 1, k]
                z[i, j, k] = (around + z[i, j, k - 1] + z[i, j, k + 1]) / 6.0
    return z


def behind_other_loops(x, y):
    """Loops of the same names before it, whose last values nobody reads."""
    for i in range(1, x.shape[0]):
        x[i, 0] += x[i - 1, 0]
    for j in range(1, x.shape[1]):
        x[0, j] += x[0, j - 1]
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            x[i, j] += min(x[i - 1, j], x[i, j - 1]) + y[i, j]


def downwards(x, y):
    """From the last row and column on, nine points: each row begins a column earlier."""
    for i in range(x.shape[0] - 2, 0, -1):
        for j in range(x.shape[1] - 2, 0, -1):
            around = x[i + 1, j + 1] + x[i + 1, j] + x[i + 1, j - 1] + x[i, j + 1]
            x[i, j] = 0.2 * (around + x[i - 1, j]) + y[i, j]


def up_and_on(x, y):
    """Rows from the last one on, two of which are handed on, and columns from the first one on."""
    for i in range(x.shape[0] - 3, -1, -1):
        for j in range(2, x.shape[1]):
            x[i, j] += 0.5 * x[i + 2, j - 1] + 0.25 * x[i, j - 2]


def across_downwards(x, y):
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1] - 2, -1, -1):
            x[i, j] += 0.5 * x[i - 1, j] + 0.25 * x[i, j + 1]


DOWN = (downwards, up_and_on, across_downwards)
TABLES = (edit_distance, alignment, common_subsequence, affine_gaps, best_score)
GRIDS = (
    seidel,
    relaxed,
    prefix_sums,
    far,
    turned,
    where_positive,
    two_layers,
    in_space,
    behind_other_loops,
)
PROGRAMS = {p.__name__: p for p in (*TABLES, *GRIDS, *DOWN)}


def arguments(program: Any, n: int = 17, m: int = 23) -> tuple[Any, ...]:
    """What a program is called with."""
    rng = default_rng(11)
    if program in TABLES:
        rows, columns = np.meshgrid(np.arange(n + 1), np.arange(m + 1), indexing="ij")
        table = np.where(rows * columns == 0, rows + columns, 0) * (program is edit_distance)
        return rng.integers(0, 3, n), rng.integers(0, 3, m), table.astype(np.int64)
    return rng.random((n, m)), rng.random((n, m))


def lowered(program: Any, ranks: int, given: tuple[Any, ...]) -> Any:
    """A program whose spaces are all split along their first dimension."""
    sdfg = numpy_program(program, *given, host="refuse")
    schedule = {}
    for space in distspmd.iteration_spaces(sdfg):
        if space.parameters and space.parameters != ("__once",):
            schedule[space.name] = (ranks, *[1] * (len(space.parameters) - 1))
    return distspmd.lower(sdfg, schedule, machine=SMALL_BLOCKS)


def check(comm: Any, names: list[str], sizes: list[tuple[int, int]]) -> None:
    """Compare programs with Python on the ranks that run this, in values and in bytes."""
    for name in names:
        program = PROGRAMS[name]
        for size in sizes:
            given, wanted = arguments(program, *size), arguments(program, *size)
            lowering = lowered(program, comm.size, given) if comm.rank == 0 else None
            with distspmd.compile(lowering, comm) as compiled:
                found = compiled(*given)
                moved = [
                    comm.allreduce(statistics.received_bytes)
                    for move, statistics in compiled.statistics()
                    if hasattr(move, "chains")
                ]
            if comm.rank == 0:
                expected = program(*wanted)
                if expected is not None:
                    for one, other in zip(
                        np.atleast_1d(found), np.atleast_1d(expected), strict=True
                    ):
                        np.testing.assert_allclose(one, other, rtol=1e-10, err_msg=name)
                for one, other in zip(given, wanted, strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-10, err_msg=name)
                assert moved == [each.received for each in lowering.pipelines], (name, size, moved)
                assert len(moved) == (comm.size > 1), name
                print("right:", name, size, flush=True)
