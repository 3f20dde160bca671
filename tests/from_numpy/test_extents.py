"""What loops and maps know of numbers that are no multiples of their variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

from distspmd.frontend.from_numpy.reader.sharing import collide
from distspmd.frontend.tensor_ir.whole_numbers import direction, floor_divide, symbol
from from_numpy.collections_of_cases import Case
from from_numpy.harness import on_paper

K, N = symbol("k"), symbol("n")
BOUNDS = {"k": (1, 7)}


def twice_as_many(x):
    found = np.zeros(5)
    for i in range(1, 5):
        found[i] = sum(x[0] * k for k in range(2 ** (i - 1)))
    return found


def as_many_as_squares(x):
    found = np.zeros(5)
    for i in range(1, 5):
        found[i] = sum([x[0] * k for k in range(i * i - 3 * i + 3)])
    return found


def fewer_and_fewer(x):
    found = np.zeros(5)
    for i in range(5):
        found[i] = sum(x[0] * k for k in range((9 - i) // 2, -1, -1))
    return found


def shorter_than_at_the_end(x):
    for i in range(4):
        factor = x[i + 1 :] / x[i]
        x[i + 1 :] -= factor
    return x


FUNCTIONS = [twice_as_many, as_many_as_squares, fewer_and_fewer, shorter_than_at_the_end]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_lists_have_room_for_what_loops_around_let_them_get(function: Any) -> None:
    case = Case(function.__name__, function, "own", "", lambda rng: (rng.random(4) + 1,), ())
    outcome = on_paper(case)
    assert outcome.kind == "right", outcome
    assert not outcome.uncompared


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**K / 2, 1),
        (N - 2**K, -1),
        (floor_divide(9 - K, 2), -1),
        (K**2 * N, 1),
        (sympy.Max(K, 3 - N), 1),
        (N + 1, 0),
        (K**2 - 3 * K, None),
        (K - 2 * floor_divide(K, 2), None),
    ],
)
def test_directions(value: Any, expected: int | None) -> None:
    assert direction(value, K, BOUNDS) == expected


def test_only_multiples_of_a_parameter_are_another_place_for_each() -> None:
    assert not collide((3 * K + 1,), ("k",))
    assert collide((K**2 - 4 * K,), ("k",))
    assert collide((K - 2 * floor_divide(K, 2),), ("k",))
