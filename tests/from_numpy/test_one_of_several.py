"""What is one of several things that no array holds, as the run decides."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.endings import INPUTS, different_endings


def number_or_array(x):
    total, count = 0, 0
    for v in x:
        if v > 0.5:
            total = total + x[:2] * v
            count += 1
    return total + np.ones(2), count, np.sum(total * 3)


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


def written_where_not_none(x):
    y, z = x * 2, None
    for i in range(4):
        if z is not None:
            z[i] = 9
        if x[i] > 0.5:
            z = y
    return y


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
    *(functions_by_a_text, functions_by_an_index, objects_by_an_index, no_function_there),
    *(parts_that_are_none, written_where_not_none),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_what_may_be_none_or_is_called_by_a_key_is_compiled(program: Callable[..., Any]) -> None:
    assert not different_endings(program, INPUTS)


HOSTED = [
    *(results_of_functions, objects_of_two_classes, empty_or_filled, named_states),
    *(functions_of_the_run, text_or_number),
]


@pytest.mark.parametrize("program", HOSTED, ids=lambda each: each.__name__)
def test_python_runs_what_computes_with_one_of_several_things(program: Callable[..., Any]) -> None:
    assert not different_endings(program, INPUTS, is_hosted=True)


@pytest.mark.parametrize("program", [number_or_array, of_two_numbers_of_dimensions])
def test_arrays_of_other_forms_are_refused_with_what_to_write(program: Callable[..., Any]) -> None:
    told = "bind things of one kind, for 0 an array of zeros say"
    with pytest.raises(UnsupportedProgram, match=told):
        numpy_program(program, INPUTS[0])


@pytest.mark.parametrize("program", [cheapest_edges, *PROGRAMS], ids=lambda each: each.__name__)
def test_no_number_of_the_run_is_a_size(program: Callable[..., Any]) -> None:
    assert not numpy_program(program, INPUTS[0]).free_symbols
