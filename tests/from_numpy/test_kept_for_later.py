"""Arrays that functions, objects and iterators keep, whose names are bound anew meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

X = np.array([0.5, 0.2, 0.9])


class Holder:
    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value


class Least:
    def __init__(self):
        self.least = None

    def push(self, x):
        if self.least is None or x < self.least:
            self.least = x


def multiples(v):
    for i in range(3):
        yield v * i


def by_function(a):
    def make(v):
        def inner():
            return v

        return inner

    x = a * 2
    f = make(x)
    x = a * 3
    return f() + x


def by_default(a):
    x = a * 2
    f = lambda t=x: t  # noqa: E731
    x = a * 3
    return f() + x


def by_zip(a):
    x = a * 2
    pairs = zip(x, [1, 2, 3], strict=True)
    x = a * 3
    return sum(p * q for p, q in pairs) + x


def by_expression(a):
    x = a * 2
    values = (v * 2 for v in x)
    x = a * 3
    return sum(values) + x


def by_method(a):
    x = a * 2
    total = x.sum
    x = a * 3
    return total() + x


def by_generator(a):
    x = a * 2
    g = multiples(x)
    x = a * 3
    return sum(g) + x


def by_enumerate(a):
    x = a * 2
    pairs = enumerate(x)
    x = a * 3
    for i, v in pairs:
        x[i] += v
    return x


def by_iterator(a):
    x = a * 2
    values = iter(x)
    x = a * 3
    return next(values) + x


def by_object(a):
    x = a * 2
    held, get = Holder([x]), Holder(x).get
    x = a * 3
    return held.value[0] + x, get()


def by_attributes(a):
    every = Least()
    for x in a:
        every.push(x)
    return every.least


def a_type_of_python_at_first(c):
    a, b = 0.0, 2.0
    for _ in range(6):
        x = b - c[0]
        if x > 5:
            x = 0.5 * (a + b)
        if x < 0:
            b = x
        else:
            a = x
    return x


PROGRAMS = [
    *(by_function, by_default, by_zip, by_expression, by_method, by_generator, by_enumerate),
    *(by_iterator, by_object, by_attributes, a_type_of_python_at_first),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_they_keep_what_they_were_given(program: Callable[..., Any]) -> None:
    outcome = on_paper(Case(program.__name__, program, "own", "", lambda _: (X.copy(),), ()))
    assert outcome.kind == "right", outcome
    assert not outcome.uncompared
