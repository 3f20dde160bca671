"""Lists of the run that are compared with others, and lists that a loop fills with arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

X = np.random.default_rng(3).random(6)


def compared_lists(x):
    k = [i for i, v in enumerate(x) if v > 0.5]
    j = [i for i, v in enumerate(x) if not v <= 0.5]
    m = [i for i, v in enumerate(x) if v > 0.7]
    same = k == j, k == m, k != m, k == (1, 2), [] == k, m == [1.0], k != []  # noqa: SIM300
    return same, m == [2, 3]


def filled_lists(x):
    n = len(x)
    rows, numbers, mixed = [[None]] * (n + 1), [None] * n, [0] * 3
    rows[n] = np.eye(2)
    for i in range(n):
        rows[i] = np.eye(2) * x[i]
        numbers[i] = x[i] * 2
    for i in range(3):
        mixed[i] = np.outer(x, x[:2]) + i
    y = np.zeros(2)
    for i in range(n - 1, -1, -1):
        y = rows[i + 1] @ (y + x[i])
    return y, numbers, mixed


def filled_tables(x):
    n = 4
    dx, dy, i, j = 1, 0, 0, 0
    spiral = [[None] * n for _ in range(n)]
    for k in range(n**2):
        spiral[i][j] = k
        ni, nj = i + dx, j + dy
        if not (0 <= ni < n and 0 <= nj < n and spiral[ni][nj] is None):
            dx, dy = -dy, dx
            ni, nj = i + dx, j + dy
        i, j = ni, nj
    table = [[None] * 3 for _ in range(2)]
    for i in range(2):
        for j in range(3):
            table[i][j] = x[i] * j
    return spiral, table


def compared_arrays(x):
    more = x[x > 0.5]
    same = np.array_equal(more, x[x > 0.6]), np.array_equal(more, x[x >= 0.5])
    return same, np.array_equal(None, x), np.array_equal(x, x)


def asked_for_in_arrays(x):
    flags = x > 0.5
    y = x * 2 if True in flags else x
    if x[2] in x:
        y = y + 1
    if 3.0 not in x:
        y = y + 10
    return y


PROGRAMS = [compared_lists, filled_lists, filled_tables, compared_arrays, asked_for_in_arrays]


@pytest.mark.parametrize("function", PROGRAMS)
def test_programs_mean_what_python_means(function: Any) -> None:
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [X], ()))
    assert outcome.kind == "right", outcome.reason


def test_orders_of_such_lists_are_refused() -> None:
    def ordered(x: Any) -> Any:
        k = [i for i, v in enumerate(x) if v > 0.5]
        return k < [1, 2]

    with pytest.raises(UnsupportedProgram, match="an order of lists whose content the run decides"):
        numpy_program(ordered, X)
