"""Lists and heaps whose content the run decides, which programs make longer."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ProgramIndexError, ProgramRuntimeError, UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.lists.run_lists import DecidedByRun
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT

X = np.array([0.5, 0.1, 0.9, 0.4, 0.4, 0.8, 0.7])
EDGES = np.array([[0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]])


def grows(x: Any) -> Any:
    chosen = []
    for i in range(len(x)):
        if x[i] > 0.45:
            chosen.append(i)  # noqa: PERF401
    positive = [v * 2 for v in x if v > 0.45]
    none = [v for v in x if v > 9]
    steps = [0.0]
    while steps[-1] < x.sum():
        steps.append(steps[-1] + 1.25)
    return chosen, positive, none, len(none), np.array(steps), sum(1 for v in x if v < 0.2), steps


def two_names_before(edges: Any) -> Any:
    """Both names stand for one list before the loop, which binds each anew."""
    left, rounds = edges.copy(), 0
    removed = added = [(-1, -1)]
    while removed or added:
        removed = []
        for i in range(len(left)):
            for j in range(i):
                if left[i, j] > rounds - 1:
                    removed.append((i, j))
        for i, j in removed:
            left[i, j] -= 1
        added = []
        for i in range(len(left)):
            if left[i].sum() == 1:
                added.append((i, i))
        for i, j in added:
            left[i, j] += 1
        rounds += 1
    return left, rounds


def shorter(x: Any) -> Any:
    order = np.argsort(x)
    kept = []
    while order.size > 0:
        i = order[0]
        kept.append(i)
        order = order[1:][np.abs(x[order[1:]] - x[i]) > 0.15]
    y = x[x > 0.2] if x[0] > 0.3 else x[x > 0.6]
    return kept, y


def rows(x: Any) -> Any:
    points, t = [], 0.0
    while t < x[0]:
        points.append([t, t * t])
        t += 0.125
    arrays = []
    for i in range(len(x)):
        if x[i] > 0.45:
            arrays.append(x[:2] * i)  # noqa: PERF401
    return points, np.array(points), points[1][0], arrays, np.array(arrays)


def changed_rows(x: Any) -> Any:
    n = len(x)
    table = [[0] * (n + 1) for _ in range(n)]
    for i in range(1, n):
        for j in range(1, n + 1):
            table[i][j] = max(table[i - 1][j], table[i - 1][j - 1] + (x[i] > x[j - 1]))
    steps = [[float("inf") for _ in range(n)] for _ in range(2)]
    steps[1][int(x[1] * n)] = 0.5
    points = []
    for v in x:
        if v > 0.3:
            points.append([v, v])  # noqa: PERF401
    points[0][0] = 2.0
    points[1], points[-1] = points[-1], points[1]
    total = 0.0
    for row in points:
        row[1] *= 2
        total += sum(row)
    cube = [[[0.0] * 2 for _ in range(3)] for _ in range(n)]
    for i in range(n):
        cube[i][int(x[i] * 3)][1] = x[i]
    merged: list[Any] = []
    for v in x:
        if merged and merged[-1][0] < v:
            merged[-1][1] = v
        else:
            merged.append([v, 0.0])
    return table, table[n - 1][n], steps, points, total, cube, points[-1][:], merged


def swapped(x: Any) -> Any:
    pairs = [(v, 2 * v) for v in x]
    rows = [[v, 1.0, 2.0] for v in x]
    k = int(x[0] * 8)
    pairs[k], pairs[0] = pairs[0], pairs[k]
    pairs[k - 1] = (pairs[k - 1][1], pairs[k - 1][0])
    rows[k], rows[1] = rows[1], rows[k]
    rows[k] = [rows[k][2], rows[k][1], rows[k][0]]
    return pairs, rows


def heaps(x: Any) -> Any:
    heap = [v for v in x if v > 0.2]
    heapq.heapify(heap)
    first = list(heap)
    heapq.heappush(heap, x[1])
    pairs: list[Any] = []
    for i, v in enumerate(x):
        heapq.heappush(pairs, (v, -i))
    return first, heap, heapq.heappop(heap), pairs, pairs[1] < pairs[2], pairs[2] <= pairs[2]


def changed_by_other_name(x: Any) -> Any:
    one = other = [0.0]
    while len(one) < 4:
        other.append(x[0])
        one = [v for v in x if v > 0.3]
        other = [v for v in x if v > 0.2]
    return x


def read_after(x: Any) -> Any:
    one = other = [0.0]
    while len(one) + len(other) < 4:
        one = [v for v in x if v > 0.3]
        other = [v for v in x if v > 0.2]
    other.append(1.0)
    return len(one)


PROGRAMS: dict[Callable[..., Any], Any] = {
    grows: X,
    two_names_before: EDGES,
    shorter: X,
    rows: X,
    changed_rows: X,
    swapped: X,
    heaps: X,
    changed_by_other_name: X,
    read_after: X,
}


def _case(function: Callable[..., Any]) -> Case:
    values = PROGRAMS[function]
    return Case(function.__name__, function, "lists", "test", lambda _: (values.copy(),), ())


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_lists_have_the_results_of_python_on_paper(function: Callable[..., Any]) -> None:
    outcome = on_paper(_case(function))
    assert (outcome.kind, outcome.reason) == (RIGHT, "")


def everything(x: Any, edges: Any) -> Any:
    second = changed_rows(x), swapped(x), heaps(x)
    return grows(x), shorter(x), rows(x), second, two_names_before(edges)


def test_lists_have_the_results_of_python() -> None:
    case = Case("lists", everything, "lists", "test", lambda _: (X.copy(), EDGES.copy()), ())
    outcome = run_here(case)
    assert (outcome.kind, outcome.reason) == (RIGHT, "")


def aliases(x: Any) -> Any:
    kept, state = [], x.copy()
    while state.sum() < 50:
        state += 1
        kept.append(state)
    return np.array(kept)


def two_forms(x: Any) -> Any:
    values: list[Any] = []
    for v in x:
        if v > 0.5:
            values.append(v)
        if v < 0.2:
            values.append((v, v))
    return values


def no_heap(x: Any) -> Any:
    heap = tuple(x)
    heapq.heappush(heap, x[0])  # type: ignore[arg-type]
    return heap


def empty_heap(x: Any) -> Any:
    heap: list[Any] = []
    return heapq.heappop(heap) + x[0]


def named_twice(x: Any) -> Any:
    row = [0.0, 1.0]
    rows = []
    for v in x:
        if v > 0.3:
            rows.append(row)  # noqa: PERF401
    rows[0][1] = 2.0
    return row[1], len(rows)


def one_list_in_all(x: Any) -> Any:
    rows = [[0.0] * 3] * 4
    for i in range(4):
        rows[i][int(x[i] * 3)] = x[i]
    return rows


def changed_before(x: Any) -> Any:
    row, rows = [0.0, 0.0], []
    for v in x:
        if v > 0.3:
            row[0] = v
            rows.append(row)
    return rows


def put_twice(x: Any) -> Any:
    rows = [[0.0] * 3 for _ in range(4)]
    rows[int(x[0] * 4)][1] = x[0]
    rows[0] = rows[int(x[0] * 4)]
    rows[0][0] = 8.0
    return rows


def gets_longer(x: Any) -> Any:
    rows = [[v, v] for v in x if v > 0.3]
    rows[0].append(x[1])
    return rows


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (aliases, "copy"),
        (two_forms, "different forms"),
        (no_heap, r"test_lists.py:\d+: .*the heap has to be a list"),
        (empty_heap, r"test_lists.py:\d+: .*index out of range"),
        (named_twice, "'row' is a list that is, or was, an element"),
        (one_list_in_all, "several elements"),
        (changed_before, "one list|is changed"),
        (put_twice, "both are one list"),
        (gets_longer, "gets another length"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_lists_cannot_be_is_refused_by_name(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(UnsupportedProgram, match=said):
        numpy_program(function, X, host="refuse")


def test_a_list_of_which_each_reading_says_the_same_is_refused_by_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings = []

    def reading(*_: Any) -> Any:
        readings.append(1)
        assert len(readings) < 9
        raise DecidedByRun(("/folder/lists.py", "List", 12, 4, 12, 6))

    monkeypatch.setattr("distspmd.frontend.from_numpy.api._Reading.sdfg", reading)
    with pytest.raises(UnsupportedProgram, match=r"^lists.py:12: what the list holds"):
        numpy_program(grows, X)


def pascal(n: Any) -> Any:
    rows = [[1]]
    for _ in range(n - 1):
        last = rows[-1]
        rows.append([1, *[last[i] + last[i + 1] for i in range(len(last) - 1)], 1])
    return rows[-1]


def test_a_program_is_made_for_a_number_of_numpy_on_which_its_lists_depend() -> None:
    outcome = run_here(Case("pascal", pascal, "", "", lambda _: (np.int64(6),), ()))
    assert outcome.kind == RIGHT, outcome.reason


def ends_early(x: Any) -> Any:
    found, v = [], 0.0
    while v < x[0] * 1e4:
        found.append(v)
        v += 1.0
    return found[-1], len(found)


def test_errors_of_the_run_are_those_of_python_or_name_the_room() -> None:
    lowering = distspmd.lower(numpy_program(ends_early, X))
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        with pytest.raises(ProgramIndexError):
            program(X * 0)
        with pytest.raises(ProgramRuntimeError, match="room for"):
            program(X)
        np.testing.assert_array_equal(program(X * 0.1), ends_early(X * 0.1))


def equals(x: Any) -> Any:
    known, mixed = np.array([3, 4, 4]).tolist(), [x[0], x[3], 0.9, x[4]]
    pairs = [(x[0], 2.0), (0.5, 2.0), (x[1], 2.0)]
    return (
        known.count(4),
        known.index(4),
        mixed.count(0.4),
        mixed.index(0.4),
        pairs.count((0.5, 2.0)),
        pairs.count(2.0),
    )


@pytest.mark.parametrize("program", [equals])
def test_equal_elements_are_counted_and_found_where_the_run_decides_them(program: Any) -> None:
    case = Case(program.__name__, program, "", "", lambda _: (X,), ())
    for found in (on_paper(case), run_here(case)):
        assert found.kind == RIGHT, found.reason
