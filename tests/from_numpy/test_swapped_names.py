"""Names that change their arrays in each iteration, which writes to them in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.collections_of_cases import Case
from from_numpy.harness import on_paper


def until_large(x, c):
    u, v = np.zeros(6), x * 1.0
    n = 0
    while v.sum() < c[0]:
        u[1:-1] = 2 * v[:-2] + 0.1 * v[2:] + n
        u, v = v, u
        n += 1
        if n == c[1]:
            break
    return u, v, n


def until_large_of_three(x, c):
    u, v, w = np.zeros(6), x * 1.0, x + 1
    n = 0
    while v.sum() < c[0]:
        u[1:-1] = 2 * v[:-2] + 0.1 * v[2:] + 0.1 * w[1:-1]
        w, v, u = v, u, w
        n += 1
        if n == c[1]:
            break
    return u, v, w


def with_snapshots(x, c):
    u, v, w = np.zeros(6), x * 1.0, x + 1
    kept = [v.copy()]
    for n in range(int(c[1])):
        u[1:-1] = 2 * v[:-2] + 0.1 * v[2:] + 0.1 * w[1:-1] + n
        kept.append(u.copy())
        w, v, u = v, u, w
    return v, np.array(kept)


def relaxed(x, c):
    old, new = x * 1.0, np.zeros(6)
    change = 1e3
    n = 0
    while change > 1 / c[0] and n < c[1]:
        for i in range(6):
            new[i] = old[i] if i in (0, 5) else (old[i - 1] + old[i + 1]) / 2
        change = abs(old - new).max()
        old, new = new, old
        n += 1
    return old


def returned_within(x, c):
    u, v = np.zeros(6), x * 1.0
    n = 0
    while True:
        if v.sum() >= c[0]:
            return v
        u[1:-1] = 2 * v[:-2] + 0.1 * v[2:] + n
        v, u = u, v
        n += 1
        if n == c[1]:
            return u


def with_a_callback(x, c):
    seen = []

    def look(u):
        seen.append(np.abs(u).max())

    u, v = np.zeros(6), x * 1.0
    look(v)
    for _ in range(int(c[1])):
        u[:] = v / 2
        u[1:] += v[:-1]
        look(u)
        v, u = u, v
    return v, np.array(seen)


def one_of_another_name(x, c):
    z, u, v = x + 1, np.zeros(6), x * 1.0
    for n in range(int(c[1])):
        u[0] += 1
        u[1:-1] = 2 * v[:-2] + 0.1 * v[2:] + n
        u, v = v, u
        if n == 2:
            u = z
    return u, v, z


def both_written(x, c):
    z, u, v = x + 1, np.zeros(6), x * 1.0
    for n in range(int(c[1])):
        u[0] += 1
        v[3] += 2
        u, v = v, u
        if n == 2:
            v = z
    return u, v, z


OWN = [
    *(until_large, until_large_of_three, with_snapshots, relaxed, returned_within),
    with_a_callback,
]


def _outcome(function: Any, most: float, count: float) -> Any:
    def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
        return rng.random(6), np.array([most, count])

    return on_paper(Case(function.__name__, function, "own", "", arguments, ()))


@pytest.mark.parametrize("function", OWN)
@pytest.mark.parametrize(("most", "count"), [(0.0, 1.0), (1e9, 1.0), (1e9, 2.0), (1e9, 5.0)])
def test_names_are_those_of_the_last_iteration(function: Any, most: float, count: float) -> None:
    outcome = _outcome(function, most, count)
    assert outcome.kind == "right", outcome
    assert not outcome.uncompared


@pytest.mark.parametrize("function", [one_of_another_name, both_written])
@pytest.mark.parametrize("count", [0, 3, 4, 5, 6, 7])
def test_swapped_names_may_be_an_array_of_another_name(function: Any, count: int) -> None:
    outcome = _outcome(function, 0.0, count)
    assert outcome.kind == "right", outcome
    assert not outcome.uncompared


def in_two_loops(x, c):
    z, u, v = x + 1, np.zeros(6), x * 1.0
    for j in range(5):
        for n in range(int(c[1])):
            u[0] += 1
            u, v = v, u
            if n == 2:
                u = z
        u[j] += 1
    return u, v, z


def test_loops_around_them_are_refused_that_would_lose_writes() -> None:
    with pytest.raises(UnsupportedProgram, match=r"write u = u\.copy\(\) before the loop"):
        numpy_program(in_two_loops, np.zeros(6), np.zeros(2))


def written_behind(x, c):
    z, u, v, w = x + 1, np.zeros(6), x * 1.0, x + 3
    n = 0
    while n < c[1]:
        if n == 0:
            u = z
        u, v, w = v, w, u
        n += 1
    u[1] += 1
    return u, v, w, z


def test_writes_behind_a_loop_that_would_be_lost_under_a_moved_name_are_refused() -> None:
    with pytest.raises(UnsupportedProgram, match="may be the one that 'w' stands for"):
        numpy_program(written_behind, np.zeros(6), np.zeros(2))
