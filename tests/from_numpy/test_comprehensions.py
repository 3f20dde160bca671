"""Values that a comprehension has found stay what they were while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper
from from_numpy.outcomes import RIGHT


def in_lists(x: Any, y: Any) -> Any:
    return [p * 1.0 for p in (x + 1, y * 2)], [p[1:] for p in map(np.negative, (x, y))]


def in_dictionaries(x: Any, y: Any) -> Any:
    return {k: p * 2 for k, p in [("a", x + 1), ("b", y + 1)]}


def in_loops_of_loops(x: Any, y: Any) -> Any:
    nested = [[p * q for q in (x + 1, y * 2)] for p in (x - 1, y + 3)]
    return nested, [p + q for p in (x + 1, y * 2) for q in [x - p.sum()]]


def in_generators(x: Any, y: Any) -> Any:
    return sum(p * 2 for p in (x + 1, y + 2)), tuple(p * 2 for p in (x + 1, y * 2))


def in_a_loop(x: Any, y: Any) -> Any:
    for i in range(3):
        one, other = [p * 1.0 for p in (x + i, y * 2)]
        x = one + other
    return x


@pytest.mark.parametrize(
    "function", [in_lists, in_dictionaries, in_loops_of_loops, in_generators, in_a_loop]
)
def test_arrays_of_a_comprehension_do_not_take_each_others_place(
    function: Callable[..., Any],
) -> None:
    case = Case(function.__name__, function, "", "", lambda rng: (rng.random(5), rng.random(5)), ())
    assert on_paper(case).kind == RIGHT, on_paper(case)


def of_shapes(x):
    shapes = [("one", (1,)), ("none", ()), ("two", (2, 1))]
    return [len(shape) + x[0] for _, shape in shapes], [len(shape) for shape in [(3,), ()]]


def test_an_empty_tuple_is_bound_as_others_are() -> None:
    case = Case("of_shapes", of_shapes, "own", "", lambda rng: (rng.random(3),), ())
    assert on_paper(case).kind == RIGHT
