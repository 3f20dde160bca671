"""Loops over ranges of NumPy, what may be None as an index, and lengths that loops find anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from from_numpy.collections_of_cases import Case
from from_numpy.harness import on_paper


def downwards(x):
    found = np.zeros(9, np.float32)
    for i in np.arange(7, -1, -1):
        found[: i + 1] += x[1 : i + 2] * i
        typed = np.ones(3, np.float32) * i  # float64: i is NumPy's number
    return found, i, typed


def of_symbols(x, n):
    total = 0.0
    for i in np.arange(n):
        for j in np.arange(i, n):
            total += x[i:j].sum()
    return total, i, j


def from_what_the_loop_carries(x):
    first = 0
    for t in range(3):
        for i in np.arange(first, first + 2):
            x[i] += 1
        first = first + 2 if x[t] > 0.5 else first + 1
    return i, x


def of_an_array_that_changes(x):
    ends = np.arange(5)
    for i in ends:
        x[:i] += 1
        ends[4] = 2
    return x


def called_like_functions(x):
    for iter in range(1, 5):
        for id in range(iter, 5):
            x[id] += x[iter]
    return x, iter


class Best:
    def __init__(self):
        self.place = None


def none_at_first(x):
    best, place = Best(), None
    for i in range(9):
        if x[i] > 0.5:
            best.place = i
            place = i
    return x[best.place], x[place:]


def counted_in_a_loop(x):
    total = 0.0
    k = 0
    while k < 3 and total < 9:
        if x[k] > 0.2:
            counts = np.bincount((x * 4).astype(int) + k)
            total += len(counts) + np.sum(counts[k:] * 0.5)
        k += 1
    return total


FUNCTIONS = [
    downwards,
    of_symbols,
    from_what_the_loop_carries,
    of_an_array_that_changes,
    none_at_first,
    counted_in_a_loop,
    called_like_functions,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_numbers_of_loops_are_those_of_numpy(function: Any) -> None:
    def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
        values = np.array([0.9, 0.1, 0.7, 0.3, 0.6, 0.2, 0.8, 0.4, 0.95])
        return (values, 9)[: function.__code__.co_argcount]

    outcome = on_paper(Case(function.__name__, function, "own", "", arguments, ()))
    assert outcome.kind == "right", outcome
