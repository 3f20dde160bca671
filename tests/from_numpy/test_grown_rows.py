"""Arrays that are empty at first, and get rows where a condition of the run holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper


def rows(x):
    seen = np.zeros((0, 2))
    for i in range(4):
        if x[i] > 0.5:
            seen = np.vstack((seen, np.array([[x[i], i]])))
    total = 0.0
    for i in range(len(seen[:, 0])):
        total += seen[i, 1]
    return seen, total


def one_or_none(x):
    more = np.empty(0)
    if x[0] > 0.5:
        more = np.array([x[1]])
    less = np.zeros(1)
    if x[1] > 0.5:
        less = np.zeros(0)
    return np.hstack((x, more)), len(less), np.concatenate([less, more])


@pytest.mark.parametrize("function", [rows, one_or_none])
def test_rows_are_those_of_numpy(function: Any) -> None:
    for x in (np.array([0.3, 0.7, 1.2, 0.1]), np.array([0.9, 0.2, 0.4, 0.3]), np.zeros(4)):
        outcome = on_paper(Case(function.__name__, function, "", "", lambda _, x=x: [x], ()))
        assert outcome.kind == "right", outcome.reason
