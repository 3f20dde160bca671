"""Python's ``bisect`` in NumPy programs: the places that Python finds."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper


def of_lists(x: Any, t: Any) -> Any:
    sums = [0.0]
    for v in x:
        sums.append(sums[-1] + v)
    equal = bisect.bisect_left(sums, sums[2]), bisect.bisect_right(sums, sums[2], lo=1, hi=5)
    return bisect.bisect(sums, t[0]) - 1, equal, bisect.bisect(sums, 100.0), sums


def of_arrays(x: Any, t: Any) -> Any:
    twice = np.repeat(np.cumsum(x), 2)
    first, last = bisect.bisect_left(twice, twice[4]), bisect.bisect_right(twice, twice[4])
    return first, last, bisect.bisect_left(np.cumsum(x), t[1], 1), bisect.bisect(twice, -1.0)


def of_known_values(x: Any, t: Any) -> Any:
    known = [1, 2, 2, 3]
    return x[bisect.bisect_left(known, 2)], x[bisect.bisect([3, 2, 1], -2, key=lambda v: -v)]


def inserted(x: Any, t: Any) -> Any:
    ordered = [0.25, 0.5]
    for v in x:
        bisect.insort(ordered, v)
    return np.array(ordered)


@pytest.mark.parametrize("function", [of_lists, of_arrays, of_known_values, inserted])
def test_places_are_those_of_python(function: Callable[..., Any]) -> None:
    made = lambda rng: (rng.random(6), rng.random(2))  # noqa: E731
    outcome = on_paper(Case(function.__name__, function, "own", "", made, ()))
    assert outcome.kind == "right", outcome


REFUSED: list[tuple[str, Callable[..., Any]]] = [
    ("lo must be non-negative", lambda x: bisect.bisect(x, 0.5, -1)),
    ("missing a required argument: 'x'", lambda x: bisect.bisect(x)),  # type: ignore[call-arg]
]


@pytest.mark.parametrize(("said", "function"), REFUSED)
def test_what_python_does_not_take_is_refused(said: str, function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedProgram, match=said):
        numpy_program(function, np.arange(3.0))
