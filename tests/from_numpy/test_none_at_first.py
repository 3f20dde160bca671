"""What is None at first, or again, and a value in other iterations and on other ways of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from from_numpy.endings import INPUTS, different_endings


def best(x):
    found, place, pair, row = None, None, None, None
    for i in range(4):
        if found is None or x[i] > found:
            found = x[i]
            place = i
            pair = (i, x[i] * 2)
            row = x[:2] + i
    return found, place, pair, row


def of_some(x):
    first = None
    for i, v in enumerate(x):
        if v > 0.5 and first is None:
            first = i
    return -1 if first is None else first, first


def previous(x):
    total, before = 0.0, None
    for v in x:
        if before is not None:
            total += v - before
        before = v
    return total


def taken_back(x):
    entry, gain, count = None, 0.0, 0
    for i in range(4):
        if entry is None and x[i] > 0.5:
            entry = x[i]
        elif entry is not None:
            gain += x[i] - entry
            entry = None
            count += 1
    return gain, count, entry


def computed_where_it_is_none(x):
    last, total = None, 0.0
    for i in range(4):
        if x[i] > 0.5:
            last = x[i]
        if x[i] < 0.35 and i > 0:
            total += last * 2
    return total


def ordered_where_it_is_none(x):
    last, count = None, 0
    for i in range(3):
        if x[i + 1] > 0.5:
            last = x[i]
        elif i == 1 and last < 0.5:
            count += 1
    return count


class Range:
    def __init__(self):
        self.least = None
        self.most = None
        self.count = 0

    def push(self, v):
        self.count += 1
        if self.least is None or v < self.least:
            self.least = v
        if v > 0.5:
            self.most = v


def attributes(x):
    every = Range()
    for v in x:
        every.push(v)
    return every.least, every.most, every.count


def of_an_entry(x):
    state = {"best": None, "n": 0}
    for v in x:
        if v > 0.35:
            state["best"] = v
            state["n"] += 1
    return state["n"], state["best"]


def nested(x):
    found = None
    for i in range(4):
        for j in range(i):
            if x[j] < x[i] and (found is None or x[i] - x[j] > found):
                found = x[i] - x[j]
    return found


def of_while(x):
    i, last = 0, None
    while i < 4 and x[i] < 0.5:
        last = x[i]
        i += 1
    return last, i


def flag_of_none(x):
    best_loss, best_w, bad = np.inf, None, 0
    w = x.copy()
    for _ in range(5):
        w = w * 0.9
        loss = abs(w.sum() - 1.1)
        if loss < best_loss:
            best_loss, best_w = loss, w.copy()
            bad = 0
        else:
            bad += 1
            if bad >= 2:
                break
    return best_loss, best_w, bad


class Node:
    def __init__(self, limit=None, value=None):
        self.limit = limit
        self.value = value

    def is_leaf(self):
        return self.value is not None

    def look_up(self, x):
        if self.is_leaf():
            return self.value
        return 1.0 if x > self.limit else 0.0


def of_a_tree(x):
    if x[0] > 0.5:  # noqa: SIM108
        tree = Node(value=x[1])
    else:
        tree = Node(limit=x[2])
    return np.array([tree.look_up(v) for v in x]), np.sum([tree.look_up(v) for v in x[:2]])


PROGRAMS = [
    of_a_tree,
    *(best, of_some, previous, taken_back, computed_where_it_is_none, ordered_where_it_is_none),
    *(attributes, of_an_entry, nested, of_while, flag_of_none),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_it_is_none_where_python_has_none(program: Callable[..., Any]) -> None:
    assert not different_endings(program, INPUTS)
