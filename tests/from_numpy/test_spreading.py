"""Values that are broadcast: what is work is stored before, and what is cheap is computed again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program

MATRIX, ROW, ONE = np.ones((4, 5)), np.ones(5), np.float64(2)


def names(function: Callable[..., Any], *examples: Any) -> list[str]:
    return [space.name for space in distspmd.iteration_spaces(numpy_program(function, *examples))]


def power_of_a_number(s, x):
    return s**1.5 * x


def exponential_of_a_row(r, x):
    x[:] = np.exp(r)


def in_a_choice(s, x):
    return np.where(x > 0, np.exp(s), x)


def in_each_iteration(s, x):
    y = np.zeros_like(x)
    for n in range(3):
        y += s ** (n + 0.5) * x
    return y


@pytest.mark.parametrize(
    ("function", "small", "name"),
    [
        (power_of_a_number, ONE, "power_expr"),
        (exponential_of_a_row, ROW, "exp_expr"),
        (in_a_choice, ONE, "exp_expr"),
        (in_each_iteration, ONE, "power_expr"),
    ],
)
def test_work_is_done_once_for_all_elements_that_share_it(
    function: Callable[..., Any], small: Any, name: str
) -> None:
    assert names(function, small, MATRIX).count(name) == 1


def cheap(s, x):
    return (s * 2 + 1) / 3 * x


def of_one_shape(x, y):
    return np.exp(x) * y


def known(x):
    return np.exp(2.0) * x


def squared(s, x):
    return s**2 * x


@pytest.mark.parametrize(
    ("function", "examples"),
    [
        (cheap, (ONE, MATRIX)),
        (of_one_shape, (MATRIX, MATRIX)),
        (known, (MATRIX,)),
        (squared, (ONE, MATRIX)),
    ],
)
def test_what_costs_little_or_is_not_shared_is_one_space(
    function: Callable[..., Any], examples: Any
) -> None:
    assert names(function, *examples) == ["__return"]


def perhaps(s, x):
    if s > 0 and np.max(x) > np.log(s):
        x += 1
    return x


def test_what_may_not_be_read_is_not_computed_before() -> None:
    assert "log_expr" not in names(perhaps, ONE, MATRIX)
