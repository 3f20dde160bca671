"""Values that a loop goes through are what stands there when their turn comes, as in Python."""

# ruff: noqa: B007, PERF102, PERF401, PERF402

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.endings import INPUTS, different_endings


def list_grows(x):
    values = [1]
    n = 0
    for v in values:
        n += v
        if len(values) < 5:
            values.append(v + 1)
    return n + x, len(values)


def list_shrinks(x):
    values = [1, 2, 3, 4]
    for v in values:
        if v == 2:
            values.remove(v)
    n = 0
    for v in values:
        n += v
    return n + x


def list_grows_shrinks(x):
    values = [1, 2, 3, 4]
    seen = []
    for v in values:
        seen.append(v)
        if v % 2:
            values.remove(v)
    return len(seen) + x


def bfs(x):
    order = [0]
    g = {0: [1, 2], 1: [3], 2: [3, 4], 3: [], 4: []}
    for u in order:
        for v in g[u]:
            if v not in order:
                order.append(v)
    return np.array(order) * x[0]


def enum_grows(x):
    values = [1, 2]
    n = 0
    for i, v in enumerate(values):
        n += i
        if i < 4:
            values.append(v)
    return n + x


def zip_grows(x):
    values = [1, 2]
    n = 0
    for v, w in zip(values, x, strict=False):
        n += v
        values.append(3)
    return n + x


def rev_grows(x):
    values = [1, 2]
    for v in reversed(values):
        values.append(v)
    return len(values) + x


def elem_changes(x):
    values = [1, 2, 3]
    n = 0
    for i, v in enumerate(values):
        n = n * 10 + v
        if i < 2:
            values[i + 1] = v
    return n + x


def elem_changes_run(x):
    values = [x[0], x[1], x[2]]
    n = 0.0
    for i, v in enumerate(values):
        n = n * 10 + v
        if i < 2:
            values[i + 1] = v
    return n


def dict_values_change(x):
    d = {"a": 1, "b": 2}
    s = 0
    for k in d:
        d[k] = 5
        s += d[k]
    return s + x


def dict_items_change(x):
    d = {"a": 1, "b": 2}
    s = 0
    for k, v in d.items():
        d["b"] = 7
        s += v
    return s + x


def dict_list_del(x):
    d = {"a": 1, "b": 2}
    for k in list(d):
        del d[k]
    return x + len(d)


def array_changes(x):
    y = x.copy()
    s = 0.0
    for i, v in enumerate(y):
        s = s * 2 + v
        if i < 4:
            y[i + 1] = v + 1
    return s


def found_in_turn(x):
    order = [0]
    for u in order:
        for v in range(len(x)):
            if abs(x[u] - x[v]) < 0.6 and v not in order:
                order.append(v)
    return order, len(order)


def left_by_a_break(x):
    values = [x[0]]
    for v in values:
        if v < 0.05:
            break
        if v > 2:
            continue
        values.append(v / 2)
    return values[-1], len(values), v


def sieve_like(x):
    todo = []
    for v in x:
        if v > 0.25:
            todo.append(v)
    total = 0.0
    for v in todo:
        total += v
        if v > 0.3:
            todo.append(v * 0.5)
    return total, len(todo)


def in_a_function(x):
    def closure(start):
        reached = [start]
        for u in reached:
            for v in range(len(x)):
                if x[v] > x[u] and v not in reached:
                    reached.append(v)
        return reached

    return [len(closure(s)) for s in range(3)]


def two_loops(x):
    total = 0
    for s in range(len(x)):
        order = [s]
        for u in order:
            w = (u + 1) % len(x)
            if x[w] < x[u] and w not in order:
                order.append(w)
        total += len(order)
    return total


def grows_while_iterated(x):
    values = [v for v in x if v > 0.45]
    for v in values:
        if v > 0.6:
            values.append(v / 2)
    return values


RIGHT = [
    grows_while_iterated,
    *(found_in_turn, left_by_a_break, sieve_like, two_loops),
    *(list_grows, list_shrinks, list_grows_shrinks, bfs, enum_grows, zip_grows, rev_grows),
    *(elem_changes, elem_changes_run, dict_values_change, dict_items_change, dict_list_del),
    array_changes,
]


@pytest.mark.parametrize("program", RIGHT)
def test_lists_may_change_while_a_loop_goes_through_them(program: Any) -> None:
    assert different_endings(program, INPUTS) == []


def test_python_runs_a_function_whose_list_grows_under_its_loop() -> None:
    assert different_endings(in_a_function, INPUTS, is_hosted=True) == []


def dict_del(x):
    d = {"a": 1, "b": 2}
    for k in d:
        del d[k]
    return x


def dict_items_del(x):
    d = {"a": 1, "b": 2}
    for k, v in d.items():
        d[k + "q"] = 2
    return x


def set_grows(x):
    s = {1, 2}
    for v in s:
        s.add(v + 10)
    return x


def deque_grows(x):
    d = deque([1, 2])
    for v in d:
        d.append(v)
    return x


@pytest.mark.parametrize("program", [dict_del, dict_items_del, set_grows, deque_grows])
def test_others_may_not_get_another_length(program: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=r"RuntimeError: .* during iteration"):
        numpy_program(program, INPUTS[0])
