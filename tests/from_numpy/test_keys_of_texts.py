"""Dictionaries by texts of which the run decides which one it is: labels, states and modes."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from from_numpy.endings import different_endings
from from_numpy.harness import RIGHT, Case, on_paper


def counted(x: Any) -> Any:
    counts = {"pos": 0, "neg": 0}
    for v in x:
        label = "pos" if v > 1.5 else "neg"
        counts[label] += 1
    return counts["pos"], counts["neg"]


def collected(x: Any) -> Any:
    found = {}
    for v in x:
        key = "big" if v > 1.5 else "small"
        if key not in found:
            found[key] = 0
        found[key] += v
    return found["big"], len(found)


def asked_with_default(x: Any) -> Any:
    found = {}
    for v in x:
        key = "big" if v > 1.5 else "small"
        found[key] = found.get(key, 0) + v
    return found["big"], len(found)


def of_a_default(x: Any) -> Any:
    found = collections.defaultdict(float)
    for v in x:
        found["big" if v > 1.5 else "small"] += v
    return found["big"], len(found)


def states(x: Any) -> Any:
    table = {"S": "I", "I": "R", "R": "S"}
    state = "S"
    for k in range(6):
        if x[k % 3] > 1.5:
            state = table[state]
    return state


def modes(x: Any) -> Any:
    rate = {"slow": 0.5, "fast": 2.0}
    mode, y, steps = "slow", 0.0, 0
    while y < x[2]:
        y += rate[mode]
        mode = "fast" if y > x[0] else "slow"
        steps += 1
    return y, steps, mode


def moves(x: Any) -> Any:
    steps = {"N": (0, 1), "S": (0, -1), "E": (1, 0)}
    px = py = 0
    for k in range(5):
        way = "N" if x[k % 3] > 2.5 else ("S" if x[k % 3] > 1.5 else "E")
        dx, dy = steps[way]
        px += dx
        py += dy
    return px, py


class Machine:
    def __init__(self) -> None:
        self.state = "idle"
        self.times = {"idle": 0, "busy": 0}

    def step(self, v: Any) -> None:
        self.times[self.state] += 1
        self.state = "busy" if v > 1.5 else "idle"


@pytest.mark.parametrize(
    "function",
    [
        collected,
        asked_with_default,
        of_a_default,
        states,
        modes,
    ],
)
def test_entries_are_found_by_texts_of_the_run(function: Callable[..., Any]) -> None:
    x = np.array([1.0, 2.0, 3.0])
    found = on_paper(Case(function.__name__, function, "", "", lambda _: [x.copy()], ()))
    assert found.kind == RIGHT, found


@pytest.mark.parametrize("function", [counted, moves])
def test_python_writes_entries_by_texts_of_the_run(function: Callable[..., Any]) -> None:
    assert not different_endings(function, [np.array([1.0, 2.0, 3.0])], is_hosted=True)
