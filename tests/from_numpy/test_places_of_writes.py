"""Where indices and masks write is known: so ranks write their own parts, and nothing moves."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Launch

import distspmd
from distspmd.frontend import numpy_program
from distspmd.plans import Machine
from distspmd.plans.scattered_write import ScatteredWrite

RNG = np.random.default_rng(0)
HERE = Path(__file__).parent


def diagonals(a: Any) -> Any:
    n = a.shape[0]
    a *= 2
    a[range(n), range(n)] = 1e3
    a[np.arange(n), np.arange(n)] += 1
    a[np.arange(n - 1), np.arange(n - 1) + 1] = -5
    a[np.arange(1, n), np.arange(n - 1)] = a[np.arange(n - 1), np.arange(1, n)] * 2
    a[range(n - 1, -1, -1), range(n)] = 7
    np.fill_diagonal(a, 1e2)
    a[[0, 2, 4]] = a[[1, 3, 5]] + 1
    a[:, [-1, -2]] = 3
    return a[[1, 2, 3], [4, 5, 6]], a[[3, 3, 3]], a[[0, 1, 1]], a[[-1, 0, 1], 2]


def grids_of_indices(a: Any, b: Any) -> Any:
    i, j = np.indices((6, 7))
    a[i + 1, j + 1] = b
    a[i, j + 2] -= b
    k, m = np.arange(6)[:, None], np.arange(7)
    a[k, m] = a[k + 1, m] * 2
    a[k % 2, m] = 5.0
    a[np.arange(6) // 2, 1] = np.arange(6)
    return a[np.ix_([0, 2], [1, 3])]


def indices_that_change(a: Any, b: Any) -> Any:
    i, j = np.indices((6, 7))
    i += 1
    j = j + 1
    a[i, j] = b
    i[0] = 3  # now several are written at one place
    j -= 1
    a[i, j] = b * 2
    k = np.arange(100)
    k[3:] *= 2
    k = k[:5] % 5
    a[k, 2] = np.arange(5.0)
    for t in range(2):
        k = np.arange(6)
        a[k, k + t] = t
        k[t] = 5
        a[k, k] -= t
    return a[i, j].sum()


def streams_along_tables(f: Any) -> Any:
    cx, cy = np.array([0, 0, 1, 1, -1]), np.array([0, 1, 1, 0, -1])
    for _t in range(2):
        for i, x, y in zip(np.arange(5), cx, cy, strict=True):
            f[:, :, i] = np.roll(f[:, :, i], x, axis=1)
            f[:, :, i] = np.roll(f[:, :, i], y, axis=0)
    total = 0.0
    for n, x in enumerate(cy):
        f[x, n] += total
        total = total + f[x + 2, n].sum() * x
    return f, total


def streams_along_a_table_that_changes(f: Any, k: Any) -> Any:
    cx = np.array([0, 2, 1, 1, -1])
    for _t in range(3):
        for i, x in enumerate(cx):
            f[:, i] = np.roll(f[:, i], x, axis=0)
        cx[1] = k[0]
        cx += 1
    return cx


def goes_through_tables_that_it_changes(f: Any) -> Any:
    cx, total = np.array([0, 2, 1, -1, 3]), 0.0
    for c in cx:
        cx[0] = 4
        f[c, 0] += 1 + c
    cx = np.array([0, 2, 1])
    for n, c in enumerate(cx):
        cx[:] = n + 3
        total += c * f[n, 1]
    return f, total, cx


def places_beside_numbers(a: Any, i: Any, v: Any) -> Any:
    a[3, i, :] = v
    a[:, i, 2] = v[:, 0]
    a[i, 1] = v
    a[i, 1] += v
    np.add.at(a, (i, 2), v)
    for t in range(4):
        a[i, t, t] = v[:, t]
    return a


def rows_of_a_mask(f: Any, m: Any, w: Any) -> Any:
    f[m] = 0.5
    f[m, :] *= -1
    f[m] += w
    g = f * 2
    g[~m] = f[~m] * w - 1
    f[~m] = f[~m, ::-1]
    f[m] = g[m] + f[m] * 3
    s, t, u = f[m].sum(axis=0), f[m].mean(), f[m].max(axis=1)
    return g, s, t, u.sum(), f[m].shape[0], f[m].var(axis=0), (f[m] * w)[0], len(f[m]), f[m][:, 1]


def bounces(f: Any, solid: Any, c: Any) -> Any:
    b = f[solid, :]
    f[solid, :] = b[:, [1, 0, 2]]
    for _t in range(2):
        f[:, :, 0] = np.roll(f[:, :, 0], 1, axis=0)
        f[solid] = f[solid] * 0.5 + c[None]
    return f


def blocks_of_a_mask(f: Any, m: Any, v: Any) -> Any:
    f[m] = v
    f[m] -= v * 2
    return f[m].ndim


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (diagonals, (RNG.random((9, 9)),)),
    (grids_of_indices, (RNG.random((9, 9)), RNG.random((6, 7)))),
    (indices_that_change, (RNG.random((9, 9)), RNG.random((6, 7)))),
    (streams_along_tables, (RNG.random((7, 6, 5)),)),
    (streams_along_a_table_that_changes, (RNG.random((7, 6)), np.array([3]))),
    (goes_through_tables_that_it_changes, (RNG.random((7, 6)),)),
    (places_beside_numbers, (RNG.random((5, 6, 4)), np.array([1, 3, 1]), RNG.random((3, 4)))),
    (rows_of_a_mask, (RNG.random((7, 5, 3)), RNG.random((7, 5)) > 0.5, RNG.random(3))),
    (bounces, (RNG.random((7, 5, 3)), RNG.random((7, 5)) > 0.5, RNG.random(3))),
    (blocks_of_a_mask, (RNG.random((4, 3, 2, 5)), RNG.random((4, 3)) > 0.5, RNG.random((2, 5)))),
]


@pytest.mark.parametrize(("function", "given"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_places_are_those_of_numpy(
    unoptimised: None, function: Callable[..., Any], given: tuple[Any, ...]
) -> None:
    theirs, ours = ([array.copy() for array in given] for _ in range(2))
    wanted, program = function(*theirs), distspmd.program(function)
    found = program(*ours)
    program.close()
    for one, other in zip(
        [*theirs, *(wanted if isinstance(wanted, tuple) else [wanted])],
        [*ours, *(found if isinstance(found, tuple) else [found])],
        strict=True,
    ):
        np.testing.assert_allclose(one, other)


def of_diagonals(a: Any) -> None:
    a *= 2
    a[range(48), range(48)] = 1e3
    a[np.arange(47), np.arange(47) + 1] = -5
    a += 1


def of_indices(a: Any) -> None:
    i, j = np.indices((46, 46))
    i += 1
    j += 1
    a *= 2
    a[i, j] = 3.0
    for _t in range(2):
        a[np.arange(48), np.arange(48)] += 1
    a += 1


def of_tables(a: Any) -> None:
    cx, cy = np.array([0, 0, 1]), np.array([0, 1, -1])
    a *= 2
    for i, x, y in zip(np.arange(3), cx, cy, strict=True):
        a[:, :, i] = np.roll(a[:, :, i], x, axis=1) + np.roll(a[:, :, i], y, axis=0)


def of_a_mask(a: Any, m: Any) -> None:
    for _t in range(3):
        a[m] = 0.0
        a[m, :] *= -1


@pytest.mark.parametrize(
    ("function", "given", "rows"),
    [
        (of_diagonals, (np.ones((48, 48)),), 0),
        (of_indices, (np.ones((48, 48)),), 1),  # 46 rows are cut elsewhere than 48
        (of_tables, (np.ones((48, 20, 3)),), 1),
        (of_a_mask, (np.ones((48, 20, 3)), RNG.random((48, 20)) > 0.5), 0),
    ],
    ids=["diagonals", "indices", "tables", "a mask"],
)
def test_what_ranks_write_of_their_own_moves_at_most_a_row_at_each_border(
    function: Callable[..., Any], given: tuple[Any, ...], rows: int
) -> None:
    sdfg = numpy_program(function, *given)
    lowering = distspmd.lower(sdfg, {"a": (4,) + (1,) * (given[0].ndim - 1)})
    writing = [space for space in lowering.spaces if space.name.split(".")[0] == "a"]
    assert {math.prod(space.parts) for space in writing} == {4}
    plans = [memlet.solution.plan for memlet in lowering.memlets if memlet.data == "a"]
    inside = [p for p in plans if {str(s.kind) for s in p.steps} - {"scatter", "gather"}]
    received = sum(plan.received(rank) for plan in inside for rank in range(4))
    assert received <= rows * 3 * given[0].nbytes // len(given[0])


def written_by_owners(y: Any, index: Any, v: Any) -> None:
    for _t in range(3):
        y[index] = v
        np.add.at(y, index, v)
        y *= 1.01


def test_indices_and_values_that_do_not_change_move_once() -> None:
    n = 1 << 18
    given = np.ones(n), RNG.integers(-n, n, n // 4), np.ones(n // 4)
    lowering = distspmd.lower(numpy_program(written_by_owners, *given), ranks=4, machine=Machine())
    assert {space.parts for space in lowering.spaces if space.name.split(".")[0] == "y"} == {(4,)}
    assert {memlet.times for memlet in lowering.memlets} == {1}


def with_one_out_of_range(y: Any, index: Any, v: Any) -> Any:
    x = np.zeros(48)
    np.add.at(x, index + 30, 1.0)
    return 3.0


@pytest.mark.parametrize("function", [written_by_owners, with_one_out_of_range])
def test_who_writes_checks_the_indices(unoptimised: None, function: Callable[..., Any]) -> None:
    given = np.ones(48), np.array([3, 18, -49]), np.ones(3)
    if function is with_one_out_of_range:
        given[1][2] = 18
    outside = "48" if function is with_one_out_of_range else "-49"
    for called in (function, program := distspmd.program(function)):
        with pytest.raises(IndexError, match=f"index {outside} is out of bounds"):
            called(*(array.copy() for array in given))
    program.close()


SLOW = pytest.mark.slow


@pytest.mark.parametrize("ranks", [4, *(pytest.param(n, marks=SLOW) for n in (1, 2, 3, 5, 6))])
def test_writes_on_ranks_are_those_of_numpy(launch: Launch, ranks: int) -> None:
    done = launch(HERE / "writes_on_ranks.py", ranks=ranks)
    assert f"as in NumPy on {ranks} ranks" in done.stdout


def written_where_indices_go(y: Any, index: Any, v: Any) -> None:
    for _t in range(10):
        index[:] = (5 * index + 3) % y.shape[0]
        y[index] = v


def test_each_value_moves_once_to_its_owner_where_indices_change() -> None:
    n, ranks = 1 << 18, 4
    given = np.ones(n), RNG.integers(0, n, n // 4), np.ones(n // 4)
    lowering = distspmd.lower(
        numpy_program(written_where_indices_go, *given),
        {"y": (ranks,), "index": (ranks,)},
        machine=Machine(),
    )
    distspmd.verify(lowering)
    assert {memlet.times for memlet in lowering.memlets} == {1}
    (write,) = lowering.on_lines
    assert isinstance(write, ScatteredWrite)
    assert write.times == 10
    assert write.expected_bytes == (4 + 8) * n // 4 * (ranks - 1) // ranks
