"""Lists that have two names, of which a loop binds one to the same list in each iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper


def in_place(x):
    new = [0.0] * 5
    new[0] = 1.0
    old = new
    time = 0.0
    while time <= x[0]:
        for i in range(1, 4):
            new[i] = 0.2 * old[i + 1] + 0.6 * old[i] + 0.2 * old[i - 1]
        time = time + 0.1
        old = new
    return new, old[2]


def grows(x):
    a = [0.0, x[0]]
    b = a
    time = 0.0
    while time <= x[0]:
        time = time + 0.1
        b = a
        b.append(time)
    return a, len(b)


@pytest.mark.parametrize("function", [in_place, grows])
def test_both_names_stand_for_one_list(function: Any) -> None:
    x = np.array([0.3, 0.7])
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [x], ()))
    assert outcome.kind == "right", outcome.reason
