"""Arrays that become elements of lists of the run, and change in place before or after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

X = np.random.default_rng(5).random(6)


def simplex(x: Any) -> Any:
    """Each iteration makes the array that it changes before it becomes an element."""
    found = [[x[:2] * 2, x.sum()]]
    for i in range(2):
        y = np.copy(x[:2])
        y[i] = y[i] + 0.5
        y += 1
        found.append([y, y.sum()])
    while found[0][1] < 9 and len(found) < 9:
        z = x[:2] * len(found)
        z[0] = -1
        found.append([z, z.sum()])
        found.sort(key=lambda pair: -pair[1])
    return [pair[1] for pair in found], found[0][0], len(found)


def test_arrays_that_are_made_anew_may_change_before() -> None:
    found = on_paper(Case("simplex", simplex, "own", "", lambda _: (X.copy(),), ()))
    assert found.kind == "right", found


def made_before_the_loop(x: Any) -> Any:
    found, y, i = [], np.zeros(2), 0
    while x[i] < 0.9 and i < 5:
        y[0] = i
        found.append(y)
        i += 1
    return found


def changed_behind(x: Any) -> Any:
    found, i = [], 0
    while x[i] < 0.9 and i < 5:
        y = np.zeros(2)
        found.append(y)
        y[0] = i
        i += 1
    return found


def with_another_name(x: Any) -> Any:
    found, i, z = [], 0, np.zeros(2)
    while x[i] < 0.9 and i < 5:
        y = z
        y[0] = i
        found.append(y)
        i += 1
    return found


@pytest.mark.parametrize("program", [made_before_the_loop, changed_behind, with_another_name])
def test_arrays_that_change_behind_are_refused(program: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=r"Put a copy"):
        numpy_program(program, X)
