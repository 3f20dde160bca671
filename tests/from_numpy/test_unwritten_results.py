"""Results that no statement writes: arrays without elements, and those of ``np.empty``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper


def without_elements(x: Any) -> Any:
    boundary = np.full(3, np.nan)
    if x.shape[0] < 9:
        boundary = np.empty(0)
    return x + 1, boundary, np.zeros((0, 2)), x.sum()


def not_filled(x: Any) -> Any:
    room = np.empty(4)
    room[:] = np.empty(4) * 0 if x.shape[0] > 9 else 1.0
    unused = np.empty((0, 3))
    return unused, room, x * 2


@pytest.mark.parametrize("program", [without_elements, not_filled])
def test_results_that_nothing_writes_are_results(program: Any) -> None:
    made = lambda rng: (rng.random(3),)  # noqa: E731
    case = Case(program.__name__, program, "own", "", made, ())
    assert on_paper(case).kind == "right", on_paper(case)
