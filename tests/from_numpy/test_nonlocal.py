"""Variables of a function around that inner functions bind: all of them see the change at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.endings import INPUTS, different_endings
from from_numpy.harness import on_paper


def of_siblings(x: Any, n: int = 2) -> Any:
    def sums() -> Any:
        return np.zeros(n + 1) + x[0]

    def linear() -> Any:
        nonlocal n
        n = 1
        return sums()

    return linear(), sums(), n


def counted(x: Any) -> Any:
    calls, last = 0, x[0]

    def f(v: Any) -> Any:
        nonlocal calls, last
        calls += 1
        last = v
        return v * v

    def twice(v: Any) -> Any:
        first = f(v)
        before = calls
        return first + f(v + 1) * last + before + 10 * calls

    return twice(x[1]), calls, last


def through_two(x: Any) -> Any:
    total = x[0]

    def outer() -> Any:
        def inner() -> None:
            nonlocal total
            total = total * 2

        inner()
        inner()
        return total

    return outer() + 1, total


def local_of_the_same_name(x: Any) -> Any:
    n = 1

    def change() -> None:
        nonlocal n
        n = 5

    def own() -> Any:
        n = 3
        change()
        return n * x[0]

    return own(), n


def in_a_condition(x: Any) -> Any:
    calls = 0

    def f(t: Any) -> Any:
        nonlocal calls
        calls += 1
        return t - x[1]

    low, high = 0.0, 2.0
    for _ in range(5):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return low, calls


def test_a_condition_of_a_choice_is_read_once() -> None:
    assert not different_endings(in_a_condition, INPUTS)


@pytest.mark.parametrize(
    "program",
    [of_siblings, counted, through_two, local_of_the_same_name],
    ids=lambda each: each.__name__,
)
def test_inner_functions_share_variables(program: Any) -> None:
    made = lambda rng: (rng.random(3),)  # noqa: E731
    case = Case(program.__name__, program, "own", "", made, ())
    assert on_paper(case).kind == "right", on_paper(case)
