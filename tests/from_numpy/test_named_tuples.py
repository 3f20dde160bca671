"""Named tuples: results of programs, values of loops and branches, and of arrays that change."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.runtime.calls.form import call_form_of
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper


class Root(NamedTuple):
    """What a search finds."""

    x: Any
    iterations: Any
    converged: Any


def newton(x: Any) -> Root:
    at, n = x[0], 0
    for n in range(9):
        step = (at * at - 2) / (2 * at)
        at = at - step
        if abs(step) < 1e-9:
            return Root(at, n, True)
    return Root(at, n, False)


def settled(x: Any) -> Any:
    pair = Root(x[1:], 2 * x, x.sum())
    x += 1
    return pair.iterations, pair


def chosen(x: Any) -> Any:
    found = Root(x, 0, x[0]) if x[0] > 0 else Root(-x, 1, x[1])
    for n in range(3):
        found = Root(found.x * 2, n, found.converged + n)
    return found


@pytest.mark.parametrize("function", [newton, settled, chosen])
def test_named_tuples_are_rebuilt(function: Any) -> None:
    case = Case(function.__name__, function, "own", "", lambda rng: (rng.random(5) + 0.5,), ())
    outcome = on_paper(case)
    assert outcome.kind == "right", outcome


def of_a_class_in_it(x: Any) -> Any:
    pair = namedtuple("pair", "low high")

    class Ends(NamedTuple):
        first: Any
        last: Any

    return pair(x.min(), x.max()), Ends(x[0], pair(x[-1], 3))


def with_a_method(x: Any) -> Any:
    class Ends(NamedTuple):
        first: Any
        last: Any

        def width(self) -> Any:
            return self.last - self.first

    return Ends(x[0], x[-1])


def test_a_named_tuple_of_a_class_that_a_function_makes_is_made_anew() -> None:
    form = call_form_of(numpy_program(of_a_class_in_it, np.arange(3.0)))
    pair, ends = form.arrange([np.array(n)[()] for n in (0.0, 2.0, 0.0, 2.0, 3)])
    assert (pair.low, pair.high, ends.first, ends.last.low) == (0, 2, 0, 2)
    assert (type(ends).__name__, ends.last._fields) == ("Ends", ("low", "high"))
    case = Case("of_a_class_in_it", of_a_class_in_it, "own", "", lambda rng: (rng.random(5),), ())
    assert on_paper(case).kind == "right"


def test_a_named_tuple_with_methods_of_a_class_that_a_function_makes_is_refused() -> None:
    with pytest.raises(
        UnsupportedProgram, match="a Ends is returned, whose class a function makes"
    ):
        numpy_program(with_a_method, np.ones(3))


def test_results_are_named_tuples_of_their_class() -> None:
    form = call_form_of(numpy_program(settled, np.ones(3))).returned
    assert type(form[1]) is Root
    whole = call_form_of(numpy_program(lambda x: Root(x, x[0], x.sum()), np.ones(3))).returned
    assert type(whole) is Root
