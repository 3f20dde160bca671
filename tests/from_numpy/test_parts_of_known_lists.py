"""A part of a known list that ends at a place which a loop or the run decides is a list, too."""

# ruff: noqa: RUF005

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from from_numpy.endings import INPUTS, different_endings


def one_changed(x):
    used = [False] * 3
    s = 0
    for i in range(3):
        u = used[:i] + [True] + used[i + 1 :]
        if u[2]:
            s += 1
    return s + x


def passed_on(x):
    used = [False] * 3
    s = 0

    def go(u, k):
        t = 0
        for i in range(3):
            if not u[i]:
                t += 1 + k
        return t

    for i in range(3):
        s += go(used[:i] + [True] + used[i + 1 :], i)
    return s + x


def in_loops_in_loops(x):
    used = [False] * 3
    s = 0
    for i in range(3):
        u = used[:i] + [True] + used[i + 1 :]
        for j in range(3):
            if not u[j]:
                v = u[:j] + [True] + u[j + 1 :]
                for k in range(3):
                    if not v[k]:
                        s += 1
    return s + x


def longer_by_one(x):
    used = [False] * 3
    s = 0
    for i in range(3):
        u = used[:i] + [True]
        s += len(u)
    return s + x


def longer_in_front(x):
    used = [False] * 3
    s = 0
    for i in range(3):
        u = [True] + used[i + 1 :]
        s += len(u)
    return s + x


def permutations(x):
    def perm(k, used):
        if k == 3:
            return 1
        s = 0
        for i in range(3):
            if not used[i]:
                s += perm(k + 1, used[:i] + [True] + used[i + 1 :])
        return s

    return perm(0, [False] * 3) + x


def in_a_long_loop(x):
    used = [0] * 300
    s = 0
    for i in range(300):
        u = used[:i] + [1]
        s += len(u)
    return s + x


def up_to_a_place_of_the_run(x):
    w = [1, 2, 3, 4]
    k = int(x[0] * 4)
    return len(w[:k]), sum(w[:k]) + x


def put_in_at_a_place_of_the_run(x):
    w = [1, 2, 3, 4]
    k = int(x[0] * 4)
    u = w[:k] + [9] + w[k:]
    return np.array(u)


def of_a_tuple(x):
    w = (1.0, 2.0, 3.0)
    s = 0.0
    for i in range(3):
        s += sum(w[i:]) * x[i]
    return s


PROGRAMS = [
    one_changed,
    passed_on,
    in_loops_in_loops,
    longer_by_one,
    longer_in_front,
    permutations,
    in_a_long_loop,
    up_to_a_place_of_the_run,
    put_in_at_a_place_of_the_run,
    of_a_tuple,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_parts_of_lists_are_lists(program: Any) -> None:
    assert different_endings(program, INPUTS) == []
