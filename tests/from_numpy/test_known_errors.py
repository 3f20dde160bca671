"""Errors that are known when a program is read, and handlers that take them; warnings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper


def numbers_or_lists(x):
    found = []
    for given in (3, [1, 2]):
        try:
            n = len(given)
        except TypeError:
            n = given
        found.append(n)
    return x * found[0] + found[1]


def attributes_that_are_not_there(x):
    try:
        eps = np.finfo(x.type).eps
    except (AttributeError, ValueError):
        eps = 0.5
    try:
        n = len(x[0])
    except TypeError:
        n = 2
    return x * eps + n


def numbers_in_texts(x):
    try:
        one = int("3")
    except ValueError:
        one = 100
    try:
        other = int("a")
    except ValueError:
        other = 200
    return x + one * other


def a_handler_of_others(x):
    try:
        try:
            n = int("a")
        except TypeError:
            n = 1
    except ValueError:
        n = 2
    return x * n


def texts_of_arrays(x):
    labels = np.unique(x)
    if x.sum() < 0:
        raise AttributeError("labels " + np.array2string(labels) + np.array_repr(x))
    print(np.array_str(x))
    return labels


def texts_of_dictionaries(x):
    found = {"price": x[0], 3: [x.sum(), 2]}
    print(found, f"{found}")
    print({"a": {"b": x[1] * 2}})
    return x


def warns(x):
    if x[0] < 5:
        warnings.warn(f"small: {x[0]}", RuntimeWarning, stacklevel=2)
    warnings.warn(UserWarning("always"), stacklevel=2)
    return x + 1


PROGRAMS = [
    *(numbers_or_lists, attributes_that_are_not_there, numbers_in_texts, a_handler_of_others),
    *(texts_of_arrays, texts_of_dictionaries, warns),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", PROGRAMS)
def test_programs_mean_what_python_means(function: Any) -> None:
    x = np.array([0.3, 0.7, 1.2, 2.5])
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [x], ()))
    assert outcome.kind == "right", outcome.reason
