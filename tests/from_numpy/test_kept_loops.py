"""Loops that fill lists stay loops if they are long, and are written out where that covers more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dace.sdfg.state import LoopRegion

from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.settling import SHORT
from from_numpy.collections_of_cases import Case
from from_numpy.harness import on_paper

X = np.linspace(0.5, 2.0, 7)


def descended(x: Any) -> Any:
    w, losses = 3.0, []
    for _ in range(400):
        losses.append(np.mean((x - w) ** 2))
        w -= 0.01 * np.mean(w - x)
    return w, np.array(losses)


def descended_while(x: Any) -> Any:
    w, losses, i = 3.0, [], 0
    while i < 300:
        losses.append(np.mean((x - w) ** 2))
        w -= 0.01 * np.mean(w - x)
        i += 1
    return losses, losses[-1] < losses[0]


def few(x: Any) -> Any:
    found = []
    for i in range(SHORT):
        found.append(x[i % 7] * i)  # noqa: PERF401
    return found


def parts_of_other_lengths(x: Any) -> Any:
    parts = []
    for i in range(SHORT + 8):
        parts.append(x[: i % 3 + 1] * i)  # noqa: PERF401
    return np.concatenate(parts)


def loops(function: Callable[..., Any]) -> int:
    """How many loops the program of a function has."""
    sdfg = numpy_program(function, X)
    return sum(isinstance(r, LoopRegion) for r in sdfg.all_control_flow_regions(recursive=True))


@pytest.mark.parametrize("function", [descended, descended_while, few, parts_of_other_lengths])
def test_the_lists_are_those_of_numpy(function: Any) -> None:
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [X.copy()], ()))
    assert outcome.kind == "right", outcome.reason
    assert not outcome.uncompared


def test_long_loops_stay_and_short_ones_are_written_out() -> None:
    assert loops(descended) == 1
    assert loops(descended_while) == 1
    assert loops(few) == 0


def test_what_lists_of_the_run_cannot_hold_is_written_out() -> None:
    assert loops(parts_of_other_lengths) == 0
