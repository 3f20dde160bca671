"""Lengths that the run finds: of what masks choose, convolved and in grids, and numbers of bins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

RNG = np.random.default_rng(1)
X = np.concatenate([RNG.normal(size=60), RNG.normal(loc=3, size=23)])


def smoothed_chosen(x):
    y = x[x > 1]
    return np.convolve(y, np.ones(3) / 3, mode="same")


def windows_of_chosen(x):
    y = x[x > 1]
    return np.convolve(y, np.ones(3) / 3, mode="valid")


def of_each_pair(x):
    f = np.frompyfunc(lambda a, b: a * b + 1, 2, 1)
    return f(x, 2 * x).astype(float)


def of_each(x):
    f = np.frompyfunc(lambda a: max(a, 2.0), 1, 1)
    return np.sum(f(x))


def both_chosen(x):
    y, v = x[x > 1], x[x > 2.6]
    one = np.convolve(y, v, mode="same"), np.convolve(v, y, mode="same")
    return *one, np.convolve(v, y, mode="valid"), np.convolve(y, v, "valid")


def shorter_than_the_window(x):
    y, v = x[x > np.max(x) - 0.01], np.ones(4)
    one = np.convolve(y, v, mode="same"), np.convolve(v, y, mode="same")
    return *one, np.convolve(v, y, mode="valid"), np.convolve(y, v[:3], "same")


def by_auto(x):
    return np.histogram(x, bins="auto")


def by_auto_within(x):
    return np.histogram(x, bins="auto", range=(-1, 2))


def by_each_rule(x):
    rules = ("sqrt", "sturges", "rice", "scott", "doane", "fd")
    return tuple(np.histogram_bin_edges(x, bins=rule) for rule in rules)


def of_whole_numbers(x):
    k = (x * 3).astype(int)
    return np.histogram(k, bins="auto")


def as_density(x):
    return np.histogram(x, bins="fd", density=True)


def of_one_value(x):
    return np.histogram(x * 0, bins="auto")


def grid_of_masks(x):
    a = np.reshape(x[:81], (9, 9))
    m = a[0] > 0
    inner = a[np.ix_(m, m)], a[np.ix_(~m, [0, 2])], np.linalg.norm(a[np.ix_(m, m)])
    a = a.copy()
    a[np.ix_(m, m)] += 5
    return *inner, a


PROGRAMS = [
    grid_of_masks,
    smoothed_chosen,
    windows_of_chosen,
    of_each_pair,
    of_each,
    both_chosen,
    shorter_than_the_window,
    by_auto,
    by_auto_within,
    by_each_rule,
    of_whole_numbers,
    as_density,
    of_one_value,
]


@pytest.mark.parametrize("function", PROGRAMS)
def test_lengths_are_those_of_numpy(function: Any) -> None:
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [X.copy()], ()))
    assert outcome.kind == "right", outcome.reason


def test_weighted_histograms_have_no_rules() -> None:
    def program(x: Any) -> Any:
        return np.histogram(x, bins="auto", weights=x)

    with pytest.raises(UnsupportedProgram, match="not supported for weighted data"):
        numpy_program(program, X)
