"""Numbers of which the run decides the type: what they are, and of which class, they are asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from from_numpy.endings import INPUTS, different_endings
from from_numpy.harness import RIGHT, Case, on_paper


def is_false_number(x):
    def find(t):
        for v in x:
            if v > t:
                return v
        return False

    r = find(9.0)
    if r is False:
        return -1.0
    return r


def is_false_int(x):
    r = False
    for i, v in enumerate(x):
        if v > 1:
            r = i
    return -1 if r is False else r


def is_true_mixed(x):
    r = 2.5 if x[0] > 0.5 else True
    return 1 if r is True else 0


def classes(x):
    found = 1 if x[0] > 0.5 else 2.5
    other = x[1] if x[0] > 0.5 else True
    return isinstance(found, int), isinstance(found, float), isinstance(other, bool)


@pytest.mark.parametrize("program", [is_false_number, is_false_int, is_true_mixed, classes])
def test_the_type_is_asked_in_the_run(program: Any) -> None:
    assert different_endings(program, INPUTS) == []


def first_that_decides(x):
    return x[0] - 1 or 5, x[1] and 2, x[0] - 1 and 7, x[1] or 3, (x[2] > 1) and 4


def test_and_and_or_give_a_number_with_its_type() -> None:
    case = Case("first", first_that_decides, "", "", lambda _: [np.array([1.0, 2, 3])], ())
    found = on_paper(case)
    assert found.kind == RIGHT, found
