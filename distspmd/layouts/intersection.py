"""Intersections: which tiles of a source layout meet which tiles of a target layout, and where.

Ranks that hold the same box share one *tile*. Blocks meet dimension by dimension, so their
intersections are a product; arbitrary boxes are compared pair by pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts.intervals import Numbers
from distspmd.layouts.layout import Layout, Tiles

_AT_ONCE = 1 << 22  # comparisons of boxes in one call of NumPy


@dataclass(frozen=True)
class Overlaps:
    """Pairs of tiles that have elements in common.

    Attributes:
        source: number of the source tile of each pair.
        target: number of the target tile.
        bounds: the common box: (pairs, dimensions, 2).
    """

    source: Numbers
    target: Numbers
    bounds: Numbers

    @property
    def volumes(self) -> Numbers:
        """Elements that each pair has in common."""
        volumes: Numbers = (self.bounds[:, :, 1] - self.bounds[:, :, 0]).prod(axis=1)
        return volumes


def overlaps(source: Layout, target: Layout) -> Overlaps:
    """Pairs of tiles of two layouts of one array that have elements in common."""
    a, b = source.tiles, target.tiles
    first, second = _meeting(a, b)
    left, right = a.bounds[first], b.bounds[second]
    lows = np.maximum(left[:, :, 0], right[:, :, 0])
    highs = np.minimum(left[:, :, 1], right[:, :, 1])
    return Overlaps(first, second, np.stack([lows, highs], axis=2))


def _meeting(a: Tiles, b: Tiles) -> tuple[Numbers, Numbers]:
    if a.sides is not None and b.sides is not None:
        return _meeting_grids(a.sides, b.sides)
    found: list[tuple[Numbers, Numbers]] = []
    rows = max(1, _AT_ONCE // max(1, len(b.bounds)))
    for start in range(0, len(a.bounds), rows):
        meet = np.ones((len(a.bounds[start : start + rows]), len(b.bounds)), dtype=bool)
        for dimension in range(a.bounds.shape[1]):
            meet &= _meet(a.bounds[start : start + rows, dimension], b.bounds[:, dimension])
        first, second = np.nonzero(meet)
        found.append((first + start, second))
    empty = np.zeros(0, dtype=np.int64)
    firsts, seconds = zip(*found, strict=True) if found else ((empty,), (empty,))
    return np.concatenate(firsts), np.concatenate(seconds)


def _meet(a: Numbers, b: Numbers) -> NDArray[np.bool_]:
    """Which intervals have an index in common: (len(a), len(b))."""
    lows = np.maximum(a[:, None, 0], b[None, :, 0])
    highs = np.minimum(a[:, None, 1], b[None, :, 1])
    meet: NDArray[np.bool_] = lows < highs
    return meet


def _meeting_grids(a: Sequence[Numbers], b: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
    first = second = np.zeros(1, dtype=np.int64)
    for mine, other in zip(a, b, strict=True):
        here, there = _met(mine, other)
        first = (first[:, None] * len(mine) + here).ravel()
        second = (second[:, None] * len(other) + there).ravel()
    return first, second


def _met(a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """Pairs of intervals that have an index in common, in order."""
    if not (_ascend(a) and _ascend(b)):
        here, there = np.nonzero(_meet(a, b))
        return here, there
    begin, counts = _reach(a, b)
    return np.repeat(np.arange(len(a)), counts), np.repeat(begin, counts) + ranges(counts)


def _reach(a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """Of intervals that ascend the first of ``b`` that meets each of ``a``, and how many do."""
    begin = np.searchsorted(b[:, 1], a[:, 0], side="right")
    end = np.searchsorted(b[:, 0], a[:, 1], side="left")
    return begin, np.maximum(end - begin, 0)


def _ascend(a: Numbers) -> bool:
    """Whether intervals have elements, and both ends of each are no less than those before."""
    return bool((a[:, 0] < a[:, 1]).all() and (a[1:] >= a[:-1]).all())


def ranges(counts: Numbers) -> Numbers:
    """``0, 1, ..., count - 1`` for each count, one after the other."""
    total = int(counts.sum())
    starts = np.cumsum(counts) - counts
    return np.arange(total) - np.repeat(starts, counts)


def most_meeting(source: Layout, target: Layout) -> int:
    """Most source tiles that meet one target tile, if both are grids; else 0."""
    if source.tiles.sides is None or target.tiles.sides is None:
        return 0
    return int(meeting(source, target).max(initial=0))


def meeting(source: Layout, target: Layout) -> Numbers:
    """How many source tiles meet each target tile of two grids."""
    a, b = source.tiles.sides, target.tiles.sides
    assert a is not None
    assert b is not None
    found = np.ones(1, dtype=np.int64)
    for mine, other in zip(a, b, strict=True):
        both = _ascend(mine) and _ascend(other)
        counts = _reach(other, mine)[1] if both else _meet(mine, other).sum(axis=0)
        found = np.multiply.outer(found, counts).ravel()
    return found
