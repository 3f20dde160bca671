"""Loops that return arrays which they write in place: they stay loops, as NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dace.sdfg.state import LoopRegion

from distspmd.frontend import numpy_program
from from_numpy.collections_of_cases import Case
from from_numpy.harness import on_paper


def _improved(x, v):
    for _ in range(20):
        before = x[0]
        x[0] = before + 1e-3
        moved = x[0] * x[0] - v[0]
        x[0] = before
        rest = x * x - v
        if np.max(np.abs(rest)) < 1e-3:
            return x
        x = x - rest / (2 * x)
        if np.max(np.abs(rest)) < 1e-3 * (1 + abs(moved)):
            return x
    return x


def returned_in_a_loop(x, v):
    return _improved(x, v)


def written_by_the_caller(x, v):
    y = _improved(x, v)
    y[1] = 50
    return y, x


def returned_at_once(x, v):
    y = _improved(x, x * x)
    y[1] = v[1]
    return y, x


def array_of_the_iteration_before(x, v):
    for _ in range(5):
        old = x
        x = x + v
        if x[0] > 3:
            return old
        x[1] = -1
    return x


def one_of_two(x, v):
    def within():
        for i in range(6):
            x[i] += 1
            if v[i] > 0.4:
                return x
        return v

    y = within()
    y[0] = 9
    return y, x, v


def changed_at_last(x, v):
    def within(x):
        for i in range(4):
            try:
                if v[0] > i - 2:
                    return x
            finally:
                x[0] += 1
            x = x + 1
        return x

    y = within(x)
    y[2] = 7
    return y, x


def changed_at_last_later(x, v):
    def within(x):
        for i in range(4):
            try:
                if v[0] < i:
                    return x
            finally:
                x[0] += 1
            x = x + 1
        return x

    y = within(x)
    y[2] = 7
    return y, x


def left_by_break(x, v):
    for i in range(6):
        x[i] += 1
        if np.sum(x) > 9:
            break
        x = x * 1.5
        if v[i] > 0.9:
            break
    x[0] = -1
    return x


PROGRAMS = [
    returned_in_a_loop,
    written_by_the_caller,
    returned_at_once,
    array_of_the_iteration_before,
    one_of_two,
    changed_at_last,
    changed_at_last_later,
    left_by_break,
]

X = np.array([0.9, 1.3, 0.2, 0.7, 1.8, 0.4, 1.1])
V = np.array([0.5, 0.3, 0.6, 0.2, 0.95, 0.1, 0.7])


OTHERS = [pytest.param(each, marks=pytest.mark.slow) for each in ((V, X), (X * 3, V))]


@pytest.mark.parametrize("given", [(X, V), (X, np.zeros(7)), *OTHERS])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_results_are_the_arrays_that_they_are_in_numpy(function: Any, given: Any) -> None:
    outcome = on_paper(
        Case(function.__name__, function, "", "", lambda _: [a.copy() for a in given], ())
    )
    assert outcome.kind == "right", outcome.reason
    assert not outcome.uncompared


def test_a_loop_that_returns_the_array_which_it_changes_stays_a_loop() -> None:
    sdfg = numpy_program(returned_in_a_loop, X, V)
    regions = list(sdfg.all_control_flow_regions())
    assert any(isinstance(region, LoopRegion) and region.loop_variable for region in regions)
    assert len(regions) < 60
