"""Loops whose variables are of another kind in the first iteration than in the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here


def number_then_array(x, least):
    total = 0
    largest = np.inf
    while largest > least:
        total = total + x
        x = x * 0.5
        largest = np.max(x)
    return total


def left_early(x, least):
    best = None
    n = 0
    while np.max(x) > least:
        best = x + 1 if best is None else best + x
        x = x / 2
        n += 1
        if n > 2:
            break
    if best is None:
        return x
    return best


def never_entered(x, least):
    total = 0
    while np.max(x) > least + 10:
        total = total + x
        x = x / 2
    return x


class Solver:
    def solve(self, x, least):
        self.x, self.change = x, np.inf
        while self.change > least:
            self.step()
        return self.x, self.gradient

    def step(self):
        self.gradient = self.x * 2
        self.x = self.x - 0.25 * self.gradient
        self.change = np.max(self.x)


def attributes_of_the_first(x, least):
    return Solver().solve(x, least)


def in_place_at_first(x, least):
    while x[0] < 20 + least:
        x += 0.75
        x = x * 1.5
    return x


def of_many_iterations(x, least):
    total = 0
    for _ in range(600):
        total = total * 0.5 + x
    return total


def of_many_until(x, least):
    best = None
    for i in range(600):
        best = x if best is None else np.maximum(best, x * i)
        if np.max(best) > 5 + least:
            break
    return best, i


def of_unknown_rows(x, least):
    total = None
    for row in x[: int(x[0] * 0 + 4)]:
        total = row if total is None else total + row
    return np.zeros(()) if total is None else total


def of_an_inner_loop(x, least):
    total, part = np.zeros(3), 0.0
    for i in range(600):
        for k in range(int(x[i % 7])):
            part = np.bitwise_xor(i, k)
            total[k] += part
    return total


def ended_by_the_first(x, least):
    table, n, total = {}, 0, least
    while True:
        table["entry"] = x[n] * 2
        n += 1
        total += table["entry"]
        if total > 2:
            break
    return total, n


def ended_by_the_first_of_the_run(x, least):
    table, n = {}, int(x[0] * 0)
    while n < 7:
        table["entry"] = x[n]
        n += 1
        if x[n - 1] > least:
            break
    return n


FUNCTIONS = [
    ended_by_the_first,
    ended_by_the_first_of_the_run,
    of_an_inner_loop,
    number_then_array,
    left_early,
    never_entered,
    attributes_of_the_first,
    in_place_at_first,
    of_many_iterations,
    of_many_until,
    of_unknown_rows,
]


def case_of(function: Callable[..., Any]) -> Case:
    return Case(function.__name__, function, "own", "", lambda rng: (rng.random(7) + 1, 0.1), ())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_first_iteration_is_read_by_itself(function: Callable[..., Any]) -> None:
    outcome = on_paper(case_of(function))
    assert outcome.kind == "right", outcome
    assert not outcome.uncompared


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_first_iterations_on_ranks(function: Callable[..., Any]) -> None:
    assert run_here(case_of(function)).kind == "right"
