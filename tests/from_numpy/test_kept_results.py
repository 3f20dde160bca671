"""What programs keep and ask for first, what they have computed before, and what they yield."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

X = np.array([0.5, 0.2, 0.9, 0.4, 0.1])


class _Transform:
    def __init__(self):
        self.bases = {}

    def prepare(self, key):
        try:
            self.bases[key]
        except KeyError:
            self.bases[key] = np.arange(key[1][0]) * key[0] + len(self.bases)

    def of(self, x, scale):
        key = (scale, x.shape)
        self.prepare(key)
        return x * self.bases[key]


def asked_for_first(x):
    made = _Transform()
    return made.of(x, 2.5) + made.of(x, 3.5), made.of(x[:3], 2.5), made.of(x, 2.5)


def of_several_kinds(x):
    table, found, seen = {"a": 1}, 7, []
    for key in ("a", "b", 3):
        try:
            try:
                found = table[key] + x[0]
            except IndexError:
                seen.append("no")
            seen.append(key)
        except (KeyError, TypeError) as problem:  # noqa: PERF203
            seen.append(str(problem))
    try:
        rate = 1 / (len(seen) - 3)
    except ZeroDivisionError:
        rate = x.sum()
    return found, seen, rate


class _Plain:
    size = 2


def without_an_attribute(x):
    try:
        return _Plain().width * x
    except AttributeError:
        return _Plain().size * x


@lru_cache(100)
def _first(n):
    return 2 if n == 0 else np.sqrt(n * (n + 1) - _second(n - 1) ** 2)


@lru_cache(100)
def _second(n):
    return -1 / 2 if n == 0 else -(1 + _second(n - 1) * _first(n - 1)) / _first(n)


def by_recurrence(x):
    one, other = x, 2 * x
    for n in range(2, 30):
        one, other = other, (2 * x * other - _second(n - 1) * one) / _first(n)
    return other


def extents_in_arrays(x):
    shape = np.broadcast_to(5, (2,))
    ones = np.ones(shape) * x
    return ones, np.zeros(np.array([2, 3])), ones.reshape(np.array([1, 25]))


def yields(x):
    yield x
    for k in range(2):
        x = x + k
        yield x.sum()


def yields_as_many_as_given(x):
    for each in x:
        yield 2 * each


def _bound_anew(x):
    found = np.ones_like(x)
    yield found
    found = 2 * x
    yield found
    for _ in range(3):
        found = found + x
        yield found


def listed_of_what_is_bound_anew(x):
    one, *others = _bound_anew(x)
    return list(_bound_anew(x)), one, others


def assigned_in_expressions(x):
    y = x
    both = [y, (y := y * 2), (y := y + 1)]
    for _ in range(3):
        z = (y := y - x) * (y := y / 2)
    return both, y, z


@pytest.mark.parametrize(
    "program",
    [
        assigned_in_expressions,
        listed_of_what_is_bound_anew,
        asked_for_first,
        of_several_kinds,
        without_an_attribute,
        by_recurrence,
        extents_in_arrays,
        yields,
        yields_as_many_as_given,
    ],
    ids=lambda f: f.__name__,
)
def test_what_authors_write_is_what_numpy_computes(program: Callable[..., Any]) -> None:
    outcome = on_paper(Case(program.__name__, program, "own", "", lambda rng: (X.copy(),), ()))
    assert outcome.kind == "right", outcome


def test_errors_that_each_run_has_are_refused_behind_a_condition_of_the_run() -> None:
    def program(x):
        table, found = {}, x
        try:
            if x[0] > 0:
                found = table["a"] + x
        except KeyError:
            found = x + 1
        return found

    with pytest.raises(UnsupportedProgram, match="KeyError"):
        numpy_program(program, X)


def test_results_that_are_kept_are_no_reason_to_print_less() -> None:
    @lru_cache
    def said(n):
        print("computing", n)
        return n + 1.0

    def program(x):
        return x * said(2)

    case = Case("said", program, "own", "", lambda rng: (X.copy(),), ())
    assert on_paper(case).kind == "right"
