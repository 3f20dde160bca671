"""Functions that call themselves: as often as is known, or as the run decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.endings import INPUTS, different_endings


def gcd(p, q):
    return p if q == 0 else gcd(q, p % q)


def by_a_choice(x):
    n = (x * 100).astype(int)
    return gcd(int(n[0]), int(n[1])), gcd(n[2], n[3])


def in_a_comprehension(x):
    def divisor(p, q):
        if q == 0:
            return p
        return divisor(q, p % q)

    n = (x * 100).astype(int)
    return np.array([divisor(int(a), int(b)) for a, b in zip(n, n[::-1], strict=True)])


def search(a, v, lo=0, hi=None):
    if hi is None:
        hi = len(a) - 1
    if lo > hi:
        return -1
    mid = (lo + hi) // 2
    if a[mid] == v:
        return mid
    if a[mid] < v:
        return search(a, v, mid + 1, hi)
    return search(a, v, lo, hi=mid - 1)


def with_defaults(x):
    s = np.array([x[0], x[0] + x[1], 2.0, 2.0 + x[3]])
    return search(s, s[0]), search(s, s[2]), search(s, 0.25)


def of_a_function(x):
    def root(f, x, n=0):
        y = x - f(x) / (2 * x)
        if abs(y - x) < 1e-8 or n > 50:
            return y, n
        return root(f, y, n + 1)

    return root(lambda t: t * t - x[0], 1.0)


def collatz(n, k=0):
    if n == 1:
        return k
    return collatz(n // 2, k + 1) if n % 2 == 0 else collatz(3 * n + 1, k + 1)


def of_two_calls(x):
    return collatz(int(x[1] * 30) + 1)


def through_a_tree(x):
    tree = {"least": 0.3, "low": {"least": 0.15, "low": {}, "high": {}}, "high": {}}

    def depth(node, v, n=0):
        if "least" not in node:
            return n
        if v < node["least"]:
            return depth(node["low"], v, n + 1)
        return depth(node["high"], v, n + 10)

    return [depth(tree, v) for v in x]


PROGRAMS = [
    by_a_choice,
    in_a_comprehension,
    with_defaults,
    of_a_function,
    of_two_calls,
    through_a_tree,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_the_last_call_of_itself_is_the_next_iteration(program: Callable[..., Any]) -> None:
    assert not different_endings(program, INPUTS)


def test_calls_that_are_not_the_last_and_that_the_run_decides_are_refused() -> None:
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    def program(x):
        return fibonacci(int(x[0] * 10))

    with pytest.raises(UnsupportedProgram, match=r"too deep|60 times deep"):
        numpy_program(program, INPUTS[0])
