"""Lists of numbers of several types, of which the run decides, and orders of sets."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here
from from_numpy.outcomes import RIGHT

X = np.array([0.5, 0.1, 0.9, 0.4, 0.4, 0.8, 0.7])


def grows(x: Any) -> Any:
    values = [0]
    while values[-1] < x.sum():
        values.append(values[-1] + x[0])
    print(values, values[0], values[-1])
    return values


def distances(x: Any) -> Any:
    n = len(x)
    distance: list[Any] = [float("inf")] * n
    first = int(x[0] * 4)
    distance[first] = 0
    queue = [(0, first)]
    while queue:
        d, u = heapq.heappop(queue)
        if d > distance[u]:
            continue
        for v in range(n):
            if v != u and d + x[v] + 0.25 < distance[v]:
                distance[v] = d + x[v] + 0.25
                heapq.heappush(queue, (distance[v], v))
    print("distances", distance, distance[first])
    return distance, distance[first], distance[-1], distance[:3], sorted(distance), [*distance]


def levels(x: Any) -> Any:
    level: list[Any] = [float("inf")] * len(x)
    level[int(x[0] * 4)] = 0
    for _ in range(len(x)):
        for v in range(1, len(x)):
            if level[v - 1] + 1 < level[v] and x[v] > 0.2:
                level[v] = level[v - 1] + 1
    return level, level[-1] * 2, level[0] - 1, level[3] / 2


def values_of_keys(x: Any) -> Any:
    found = {}
    for v in x:
        found[int(v * 4)] = v if v > 0.5 else 0
    return found, list(found.values()), found[2]


def as_arrays(x: Any) -> Any:
    values = [0]
    for v in x:
        if v > 0.4:
            values.append(v)  # noqa: PERF401
    return np.array(values), np.sum(values), max(values), values[1:], float(values[0])


def solved(x: Any) -> Any:
    a: list[Any] = [[0] * 3 for _ in range(3)]
    k = int(x[0] * 4)
    a[k][1] = 0.5
    a[0][k - 1] += x[1]
    y: list[Any] = [0] * 3
    for i in range(3):
        for j in range(3):
            y[i] += a[i][j] * x[j]
    return a, y


def of_python_and_numpy(x: Any) -> Any:
    values = [0.0]
    while values[-1] < 3:
        values.append(values[-1] + x[0])
    print(values)
    return values, values[0], values[1]


def nearest_first(x: Any) -> Any:
    reached = {2}
    total = 0.0
    while len(reached) < len(x):
        best, which = np.inf, -1
        for u in reached:
            for v in range(len(x)):
                if v not in reached and abs(x[u] - x[v]) < best:
                    best, which = abs(x[u] - x[v]), v
        total += best
        reached.add(which)
    return total, len(reached)


PROGRAMS = [
    grows,
    distances,
    levels,
    values_of_keys,
    as_arrays,
    solved,
    of_python_and_numpy,
    nearest_first,
]


def _case(function: Callable[..., Any]) -> Case:
    return Case(function.__name__, function, "lists", "test", lambda _: (X.copy(),), ())


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_numbers_have_the_types_that_they_have_in_python(function: Callable[..., Any]) -> None:
    outcome = on_paper(_case(function))
    assert (outcome.kind, outcome.reason) == (RIGHT, "")


@pytest.mark.slow
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_compiled_programs_have_them_too(function: Callable[..., Any]) -> None:
    outcome = run_here(_case(function))
    assert (outcome.kind, outcome.reason) == (RIGHT, "")


def summed(x: Any) -> Any:
    values = [0]
    values[int(x[0])] = x[0]
    return sum(values)


def of_both(x: Any) -> Any:
    values: list[Any] = [0, 1]
    values[int(x[0])] = x[0]
    return values[0] + values[1]


@pytest.mark.parametrize("function", [summed, of_both])
def test_what_depends_on_more_types_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedProgram, match="numbers of several types"):
        numpy_program(function, X, host="refuse")


def rounded(x: Any) -> Any:
    values: list[Any] = [0.5] * 3
    values[int(x[0] * 4)] = 2**53 + 1 + int(x[0])
    return values


@pytest.mark.parametrize(
    ("function", "said"),
    [(rounded, "may be rounded")],
)
def test_runs_end_where_python_has_another_number(function: Any, said: str) -> None:
    outcome = on_paper(_case(function))
    assert outcome.kind != RIGHT
    assert said in outcome.reason
