"""What is one of several things that no array holds, as the run decides: each is computed with."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pytest

from distspmd.frontend import numpy_program
from from_numpy.endings import INPUTS, different_endings


def number_or_array(x):
    total, count = 0, 0
    for v in x:
        if v > 0.5:
            total = total + x[:2] * v
            count += 1
    return total + np.ones(2), count, np.sum(total * 3)


def number_or_array_at_once(x):
    y = x[0] if x[1] > 0.5 else x[:2] * 2
    z = y + 1
    return z * x[:2], np.ndim(y), np.size(z)


def empty_or_filled(x):
    best, gain = {}, 0.3
    for i, v in enumerate(x):
        if v > gain:
            gain = v
            best = {"place": i, "value": v}
    return best["place"], best["value"] * 2


def parts_that_are_none(x):
    best = (None, None, np.inf)
    for i in range(1, 4):
        cost = abs(x[i] - x[i - 1])
        if x[i] > 0.15 and cost < best[2]:
            best = (i, x[:i].sum(), cost)
    place, total, _ = best
    return place, total


class Way(Enum):
    UP = 1
    DOWN = 2
    NONE = 3


def named_states(x):
    way, turns = Way.NONE, 0
    for a, b in zip(x[:-1], x[1:], strict=True):  # noqa: RUF007
        new = Way.UP if b > a + 0.15 else Way.DOWN if b < a - 0.15 else Way.NONE
        if new is not way:
            turns += 1
            way = new
    return turns, way is Way.UP, way == Way.DOWN


def functions_of_the_run(x):
    rule, total = np.sin, 0.0
    for v in x:
        total += rule(v)
        rule = np.cos if v > 0.5 else np.tanh
    return total


def ways_that_fail(x):
    found = {"n": 1} if x[1] > 0.5 else {}
    return found["n"]


def text_or_number(x):
    y = "none" if x[1] < 0.5 else x[1]
    if isinstance(y, str):
        return -1.0
    return y * 2


def entries_of_alternatives(x):
    state = {"n": 0} if x[1] > 0.5 else {"m": 5}
    for v in x:
        if "n" in state and v > 0.15:
            state["n"] += 1
    return state["n"] if "n" in state else state["m"]


def written_alternatives(x):
    y = x * 2
    z = y if x[1] > 0.5 else 7
    if np.ndim(z):
        z[0] = 9
    return y, z


def written_in_loops(x):
    y, z = x * 2, 0
    for i in range(4):
        if np.ndim(z):
            z[i] = 9
        if x[i] > 0.5:
            z = y
    return y


def written_where_not_none(x):
    y, z = x * 2, None
    for i in range(4):
        if z is not None:
            z[i] = 9
        if x[i] > 0.5:
            z = y
    return y


def written_on_both_sides(x):
    y, z = x * 2, 0
    for i in range(4):
        if x[i] > 0.5:
            z = y
        y[i] -= 1
        if np.ndim(z):
            z[0] += 1
            y[1] += z[0]
    return y, z


def written_before_and_after(x):
    y, z = x * 2, 3.5
    if x[1] > 0.5:
        z = y
    for i in range(4):
        if np.ndim(z):
            z[i] = i
        if x[i] < 0.15:
            z = -1
    y[3] = 7
    return y, z


def objects_of_two_classes(x):
    state = Counted(1) if x[1] > 0.5 else Doubled(2)
    for v in x:
        if v > 0.15:
            state.add(v)
    return state.total


def of_two_numbers_of_dimensions(x):
    y = x
    if x[1] > 0.5:
        y = x.reshape(2, 2)
    return y + 1


class Counted:
    def __init__(self, total):
        self.total = total

    def add(self, v):
        self.total += 1


class Doubled:
    def __init__(self, total):
        self.total = total

    def add(self, v):
        self.total = self.total * 2 + v


RULES = {"high": np.sin, "low": lambda t: t + 1}


def functions_by_a_text(x):
    found = []
    for v in x:
        kind = "high" if v > 0.5 else "low"
        found.append(RULES[kind](v))
    return np.array(found)


def functions_by_an_index(x):
    rules, total = [np.sin, np.cos, lambda t: t**2], 0.0
    for v in x:
        k = int(v * 3)
        total += rules[k](v)
    return total, rules[int(x[1] * 3) - 3](total)


class Scaled:
    def __init__(self, scale):
        self.scale, self.count = scale, 0

    def __call__(self, v):
        self.count += 1
        return self.scale * v


def objects_by_an_index(x):
    every, total = [Scaled(1.0), Scaled(2.0)], 0.0
    for v in x:
        total += every[int(v > 0.5)](v)
    return total, [each.count for each in every]


def no_function_there(x):
    rules = [np.sin, np.cos]
    return rules[int(x[1] * 3)](x)


def results_of_functions(x):
    def found(limit):
        for i in range(4):
            if x[i] > limit:
                return x[:2] * i
        return "nothing"

    y = found(0.5)
    if isinstance(y, str):
        return -1.0, len(y)
    return y.sum(), y.size


def cheapest_edges(x):
    """Prim's tree: the best edge is a tuple with None at first."""
    table = np.abs(x[:, None] - 2 * x)
    inside, total = {0}, 0.0
    while len(inside) < len(x):
        best = (np.inf, None)
        for u in inside:
            for v in range(len(x)):
                if v not in inside and table[u, v] < best[0]:
                    best = (table[u, v], v)
        if best[1] is None:
            break
        total += best[0]
        inside.add(best[1])
    return total


PROGRAMS = [
    results_of_functions,
    *(functions_by_a_text, functions_by_an_index, objects_by_an_index, no_function_there),
    of_two_numbers_of_dimensions,
    *(written_on_both_sides, written_before_and_after, objects_of_two_classes),
    *(number_or_array, number_or_array_at_once, empty_or_filled, parts_that_are_none),
    *(named_states, functions_of_the_run, ways_that_fail, text_or_number),
    *(entries_of_alternatives, written_alternatives, written_in_loops, written_where_not_none),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_each_alternative_is_computed_with(program: Callable[..., Any]) -> None:
    assert not different_endings(program, INPUTS)


@pytest.mark.parametrize("program", [cheapest_edges, *PROGRAMS], ids=lambda each: each.__name__)
def test_no_number_of_the_run_is_a_size(program: Callable[..., Any]) -> None:
    assert not numpy_program(program, INPUTS[0]).free_symbols
