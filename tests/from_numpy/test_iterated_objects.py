"""Objects with ``__next__``, which loops and branches of the run read in parts."""

# ruff: noqa: B007

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from from_numpy.endings import INPUTS, different_endings


class Count:
    def __init__(self, n):
        self.n, self.i = n, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.i >= self.n:
            raise StopIteration
        self.i += 1
        return self.i


class Lcg:
    def __init__(self, s):
        self.s = s

    def __iter__(self):
        return self

    def __next__(self):
        self.s = (self.s * 16807) % 2147483647
        return self.s / 2147483647


def next_in_loop(x):
    c = Lcg(3)
    s = 0.0
    for i in range(50):
        s += next(c) * x[0]
    return s, c.s


def next_in_branch(x):
    c = Lcg(3)
    s = 0.0
    if x[0] > 0.5:
        s += next(c)
    return s, c.s


def for_in_branch(x):
    c = Count(3)
    s = 0
    if x[0] > 0.5:
        for v in c:
            s += v
    return s, c.i


def for_break_run(x):
    c = Count(4)
    s = 0.0
    for v in c:
        s += v * x[0]
        if s > 2:
            break
    return s, c.i


def list_in_loop(x):
    s = 0
    c = Count(200)
    for i in range(20):
        for v in c:
            s += v
            if v > 5 * i:
                break
    return s + x


class Seq:
    def __init__(self, v):
        self.v = v
        self.calls = 0

    def __getitem__(self, i):
        self.calls += 1
        if i >= 3:
            raise IndexError
        return self.v[i]

    def __len__(self):
        return 3


def getitem_calls(x):
    s = Seq([1, 2, 3])
    t = 0
    for v in s:
        t += v
    return t + x, s.calls


class Bag:
    def __init__(self):
        self.items = []

    def add(self, v):
        self.items.append(v)

    def __iter__(self):
        return iter(self.items)

    def __len__(self):
        return len(self.items)

    def __contains__(self, v):
        return v in self.items

    def __bool__(self):
        return len(self.items) > 0

    def __hash__(self):
        return 3

    def __eq__(self, o):
        return self.items == o.items


def yields_by_values(x):
    def positive():
        for value in x:
            if value > 0.5:
                yield value

    return 1.0 * sum(positive())


PROGRAMS = [
    yields_by_values,
    next_in_loop,
    next_in_branch,
    for_in_branch,
    for_break_run,
    list_in_loop,
    getitem_calls,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_objects_and_generators_give_their_values_in_turn(program: Any) -> None:
    assert different_endings(program, (*INPUTS, np.array([1.2, 2.5, 0.3, 0.1]))) == []
