"""Decorators of users are called; those that keep results or compile change nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

X = np.array([0.5, 0.2, 0.9])


def twice(func):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return 2 * func(*args, **kwargs)

    return wrapper


def scaled(by):
    def decorate(func):
        def wrapper(*args, **kwargs):
            return by * func(*args, **kwargs)

        return wrapper

    return decorate


@scaled(3)
def shifted(a):
    return a + 1


@twice
def the_program(a, b=3.0, *, shift=0.5):
    return a + b - shift


def inside(a):
    @twice
    @scaled(by=2)
    def first(x):
        return x + 1

    @functools.lru_cache(maxsize=64)
    def second(x):
        return x + 1

    @functools.wraps(first)
    def third(x):
        return first(x)

    def plus_one(func):
        return lambda x: func(x) + 1

    @plus_one
    def fourth(x):
        return x * 2

    return first(a) + shifted(a) + second(1) + third(a) + fourth(a)


class Methods:
    @staticmethod
    def of_class(x):
        return x * 2

    @twice
    def doubled(self, x):
        return x + 1

    @classmethod
    def with_class(cls, x):
        return x * 4


def methods(a):
    one = Methods()
    return one.doubled(a) + Methods.of_class(a) + one.with_class(a) + Methods.with_class(a)


@functools.lru_cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def cached(a):
    return a * fibonacci(12)


PROGRAMS = [the_program, inside, methods, cached]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_what_is_decorated_is_what_python_calls(program: Callable[..., Any]) -> None:
    outcome = on_paper(Case(program.__name__, program, "own", "", lambda _: (X.copy(),), ()))
    assert outcome.kind == "right", outcome
    assert not outcome.uncompared
