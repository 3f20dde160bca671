"""Augmented assignments to elements assign numbers of any type, those to arrays cast as NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.harness import RIGHT, Case, on_paper


def elements(x: Any) -> Any:
    a = np.array([1, 2, 3])
    a[0] += x[0] * 1.5
    a[-1] -= 2.7 * x[1]
    a[1] /= 3
    return a


def elements_in_loops(x: Any) -> Any:
    a = np.array([[1, 2], [3, 4]])
    for i in range(2):
        for j in range(2):
            a[i, j] += x[0] * (i - j) * 0.75
    return a


def elements_of_the_run(x: Any) -> Any:
    counts = np.zeros(3, dtype=np.int32)
    for value in x:
        counts[int(value) % 3] += value * 0.7
    return counts


def chosen_elements(x: Any) -> Any:
    counts = np.zeros(3, dtype=np.int64)
    for value in x:
        if value > 1.5:
            counts[int(value) - 1] *= 2.5
        counts[int(value) - 1] += 3.9
    return counts, counts.dtype == np.int64


@pytest.mark.parametrize(
    "function", [elements, elements_in_loops, elements_of_the_run, chosen_elements]
)
def test_elements_get_numbers_of_any_type(function: Callable[..., Any]) -> None:
    x = np.array([1.0, 2.0, 3.0])
    found = on_paper(Case(function.__name__, function, "", "", lambda _: [x.copy()], ()))
    assert found.kind == RIGHT, found


def a_part(x: Any) -> Any:
    a = np.array([1, 2, 3])
    a[:2] += x[:2]
    return a


def all_of_it(x: Any) -> Any:
    a = np.array([1, 2, 3])
    a += x
    return a


def of_a_mask(x: Any) -> Any:
    a = np.array([1, 2, 3])
    a[x > 1] += 0.5
    return a


def at_places(x: Any) -> Any:
    a = np.array([1, 2, 3])
    a[[0, 2]] *= x[:2]
    return a


def an_array_of_no_dimensions(x: Any) -> Any:
    a = np.array([1, 2, 3])
    a[0, ...] += x[0]
    return a


@pytest.mark.parametrize(
    "function", [a_part, all_of_it, of_a_mask, at_places, an_array_of_no_dimensions]
)
def test_arrays_are_not_changed_by_numbers_that_they_do_not_hold(
    function: Callable[..., Any],
) -> None:
    x = np.array([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="same_kind"):
        function(x.copy())
    with pytest.raises(UnsupportedProgram, match="same_kind"):
        numpy_program(function, x)
