"""Functions that call themselves: as often as is known, or as the run decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.endings import INPUTS, different_endings


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


def through_a_tree(x):
    tree = {"least": 0.3, "low": {"least": 0.15, "low": {}, "high": {}}, "high": {}}

    def depth(node, v, n=0):
        if "least" not in node:
            return n
        if v < node["least"]:
            return depth(node["low"], v, n + 1)
        return depth(node["high"], v, n + 10)

    return [depth(tree, v) for v in x]


def fibonacci_numbers(x):
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    return fibonacci(int(x[1] * 6))


def halves(x):
    def integral(f, a, b, tolerance):
        c = (a + b) / 2
        whole, left, right = ((q - p) * (f(p) + f(q)) / 2 for p, q in ((a, b), (a, c), (c, b)))
        if abs(left + right - whole) < tolerance:
            return left + right
        return integral(f, a, c, tolerance / 2) + integral(f, c, b, tolerance / 2)

    return integral(lambda t: t**3, x[0], x[1] + 1, 0.05)


def sorted_in_place(x):
    def sort(a, first, last):
        if first < last:
            place = first
            for j in range(first, last):
                if a[j] < a[last]:
                    a[place], a[j] = a[j], a[place]
                    place += 1
            a[place], a[last] = a[last], a[place]
            sort(a, first, place - 1)
            sort(a, place + 1, last)

    y = x.copy()
    sort(y, 0, len(y) - 1)
    return y


WAYS = [(0, 1), (1, 0), (0, -1), (-1, 0)]


def filled(x):
    grid = (np.outer(x, x[::-1]) > 0.1).astype(int)

    def size(i, j):
        grid[i, j] = 2
        found = 1
        for down, right in WAYS:
            a, b = i + down, j + right
            if 0 <= a < 4 and 0 <= b < 4 and grid[a, b] == 1:
                found += size(a, b)
        return found

    return [size(i, 1) for i in range(4)], grid


class Groups:
    def __init__(self, n):
        self.parent = list(range(n))

    def find(self, i):
        if self.parent[i] != i:
            self.parent[i] = self.find(self.parent[i])
        return self.parent[i]


def paths_to_roots(x):
    groups = Groups(4)
    for i in range(1, 4):
        groups.parent[groups.find(i)] = groups.find(0 if x[i] > 0.5 else i - 1)
    return [groups.find(i) for i in range(4)], groups.parent


def left_in_loops(x):
    def first(i, total):
        for k in range(i + 1, 4):
            if x[k] > 0.25:
                if total > 1:
                    return total
                total = first(k, total + x[k])
                if total > 1.5:
                    break
        return total * 1.1

    return first(0, x[0])


def summed_for_all(x):
    total = 0

    def down(n):
        nonlocal total
        if n > 0:
            down(n - 1)
            total += n

    down(int(x[0] * 10))
    return total


def read_before_the_call(x):
    calls = 1

    def down(k):
        nonlocal calls
        if k < 0.2:
            return 1.0
        calls += 1
        return calls * 10 + down(k / 2)

    return down(x[2]), calls


def counted_by_others(x):
    total = 0

    def doubled(y):
        nonlocal total
        seen = {}
        for v in y:
            seen[int(v * 10)] = 1
        total += len(seen)
        return y * 2

    return doubled(doubled(x)), total


HOSTED = [
    *(in_a_comprehension, of_a_function, fibonacci_numbers, halves, sorted_in_place, filled),
    *(paths_to_roots, summed_for_all, read_before_the_call, counted_by_others),
]


@pytest.mark.parametrize("program", HOSTED, ids=lambda each: each.__name__)
def test_python_makes_calls_as_deep_as_the_run_decides(program: Callable[..., Any]) -> None:
    assert not different_endings(program, INPUTS, is_hosted=True)


@pytest.mark.parametrize("program", [with_defaults, through_a_tree, left_in_loops])
def test_calls_whose_depth_is_known_are_compiled(program: Callable[..., Any]) -> None:
    assert not different_endings(program, INPUTS)


def halved(x):
    def smooth(y):
        return y if y.max() < 0.1 else smooth(y * 0.5)

    return smooth(x)


def test_array_work_in_such_calls_is_refused() -> None:
    told = "'smooth', which calls itself as often as the run decides, is not covered: write a loop"
    with pytest.raises(UnsupportedProgram, match=told):
        numpy_program(halved, np.ones(1_000_000))
