"""Names that get one another's lists in a loop, and the room that lists have for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from from_numpy.harness import RIGHT, Case, on_paper


def swapped(x: Any) -> Any:
    a = [0.0]
    b = [1.0]
    for k in range(int(x[1] * 3)):
        a, b = b, a
        if x[0] > 0:
            a.append(k * 1.0)
    return len(a), len(b), np.array(a), np.array(b)


def swapped_while(x: Any) -> Any:
    a = [0.0]
    b = [1.0]
    k = 0
    while k < x[1] * 3:
        a, b = b, a
        a.append(k * 1.0)
        k = k + 1
    return len(a), len(b), np.array(a), np.array(b)


def swapped_last(x: Any) -> Any:
    a = [0.0]
    b = [1.0]
    k = 0
    while k < x[1] * 3:
        if x[0] > 0:
            a.append(k * 1.0)
        a, b = b, a
        k = k + 1
    return len(a), len(b), np.array(a), np.array(b)


def rotated(x: Any) -> Any:
    a = [0.0]
    b = [1.0]
    c = [2.0, 3.0]
    for k in range(int(x[1] * 4)):
        a, b, c = b, c, a
        if x[0] > k - 2:
            c.append(k * 1.0)
    return np.array(a), np.array(b), np.array(c)


def followed(x: Any) -> Any:
    old = [0.0]
    for _ in range(int(x[1] * 4)):
        new = []
        for v in old:
            if v < x[2] * 3:
                new.extend([v + 1, v + 2])
        old = new
    new.append(7.0)
    return np.array(old), len(new)


def shot(x: Any) -> Any:
    points = np.arange(1500) * 1.0
    slope = 7.0
    track = []
    for c in points:
        track.append(slope * c)  # noqa: PERF401
    while track[1400] > 2000 * x[0]:
        slope = slope - 1
        track = []
        for c in points:
            track.append(slope * c)
    return slope, len(track), track[1499]


def restarted(x: Any) -> Any:
    kept = [0.0]
    k = 0
    while k < x[1] * 300:
        if x[2] > k:
            kept = [2.0]
        kept.append(k * 1.0)
        k = k + 1 if x[0] > 0 else k + 2
    return len(kept), kept[-1]


@pytest.mark.parametrize(
    "function",
    [swapped, swapped_while, swapped_last, rotated, followed, shot, restarted],
)
def test_names_that_get_other_lists_are_right(function: Callable[..., Any]) -> None:
    found = on_paper(Case(function.__name__, function, "", "", lambda _: [np.ones(3)], ()))
    assert found.kind == RIGHT, found
