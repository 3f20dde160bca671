"""Variables that a loop changes in place first, and binds anew then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dace.sdfg.state import LoopRegion

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.collections_of_cases import Case
from from_numpy.harness import on_paper


def argument(x):
    for _ in range(4):
        x += 0.75
        x = x * 1.5
    return x


def part_of_an_argument(x):
    part = x[1:]
    for _ in range(4):
        part += 0.75
        part = part * 1.5
    return part


def other_name(x):
    kept = x + 1
    changed = kept
    for _ in range(4):
        changed += 0.75
        changed = changed * 1.5
    return changed, kept


def by_the_other_name(x):
    kept = x + 1
    changed = kept
    for _ in range(4):
        kept += 0.75
        changed = changed * 1.5
    return changed, kept


def swapped(x):
    other = x.copy()
    for i in range(7):
        other[1:-1] = (x[2:] + x[:-2]) / 2 + i
        x, other = other, x
    return x


def swapped_down(x, y):
    for i in range(9, 1, -2):
        x[i - 5 :] += y[i - 5 :] * i
        x, y = y, x
    return x - y


def swapped_in_both(x):
    other = x.copy()
    for _ in range(5):
        for i in range(7):
            other[1:-1] = (x[2:] + x[:-2]) / 2 + i
            x, other = other, x
    return x


def until(x, y):
    while x[0] < 20:
        x += 0.75
        x, y = y, x
    return x


FUNCTIONS = [
    argument,
    part_of_an_argument,
    other_name,
    by_the_other_name,
    swapped,
    swapped_down,
    swapped_in_both,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_arrays_that_others_see_are_changed_by_each_iteration_that_does(function: Any) -> None:
    count = function.__code__.co_argcount

    def arguments(rng: np.random.Generator) -> tuple[Any, ...]:
        return tuple(rng.random(5) for _ in range(count))

    case = Case(function.__name__, function, "own", "", arguments, ())
    outcome = on_paper(case)
    assert outcome.kind == "right", outcome
    assert not outcome.uncompared


@pytest.mark.parametrize(("function", "loops"), [(argument, 1), (swapped, 1)])
def test_loops_stay_loops(function: Any, loops: int) -> None:
    sdfg = numpy_program(function, np.zeros(5))
    found = [r for r in sdfg.all_control_flow_regions() if isinstance(r, LoopRegion)]
    assert len(found) == loops


def test_loops_of_unknown_length_are_refused() -> None:
    with pytest.raises(UnsupportedProgram, match=r"write x = x\.copy\(\) before the loop"):
        numpy_program(until, np.zeros(600), np.zeros(600))
