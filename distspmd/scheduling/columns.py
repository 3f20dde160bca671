"""Columns: what each rank has along one dimension, under any candidate; each kept once.

Tiles of many candidates consist of few different columns, and a column of few different intervals.
A tile that holds nothing has zeros for its bounds along all dimensions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.int64]
"""Bounds of each rank: (ranks, 2)."""
Numbers = NDArray[np.int64]
Intervals = NDArray[np.int64]
"""Different intervals: (intervals, 2)."""


def once(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose answers are kept by its arguments, as long as its object lives."""

    @functools.wraps(method)
    def asked(self: Any, *arguments: Any) -> Any:
        known = self.known.setdefault(method.__name__, {})
        if arguments not in known:
            known[arguments] = method(self, *arguments)
        return known[arguments]

    return asked


class Columns:
    """All columns of some ranks, by number.

    Attributes:
        ranks: how many there are.
        known: answers that were given.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.known: dict[str, dict[Any, Any]] = {}
        self._numbers: dict[bytes, int] = {}
        self._columns: list[Column] = []
        self._sides: dict[bytes, int] = {}
        self._intervals: list[Intervals] = []

    def number(self, column: Column) -> int:
        """The number of a column."""
        key = np.ascontiguousarray(column, np.int64).tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self._columns)
            self._columns.append(np.frombuffer(key, np.int64).reshape(self.ranks, 2))
        return self._numbers[key]

    def whole(self, extent: int) -> int:
        """The column of ranks that all have all of a dimension."""
        return self.number(np.broadcast_to(np.array([0, extent]), (self.ranks, 2)))

    def bounds(self, numbers: Numbers) -> NDArray[np.int64]:
        """Bounds of some columns: (..., ranks, 2)."""
        different, of = np.unique(numbers, return_inverse=True)
        if not len(different):
            return np.zeros((*numbers.shape, self.ranks, 2), np.int64)
        held = np.stack([self._columns[number] for number in different.tolist()])
        found: NDArray[np.int64] = held[of.reshape(numbers.shape)]
        return found

    # -- one column -----------------------------------------------------------------------------

    @once
    def intervals(self, number: int) -> tuple[Intervals, NDArray[np.int32]]:
        """Different intervals of a column, in the order of their begins, and that of each rank."""
        low, high = self._columns[number].T
        past = int(high.max(initial=0)) + 1
        keys, of = np.unique(low * past + high, return_inverse=True)
        return np.stack([keys // past, keys % past], axis=1), of.reshape(-1).astype(np.int32)

    @once
    def side(self, number: int) -> int:
        """A number for the intervals of a column that hold anything."""
        all_of_them, _ = self.intervals(number)
        held = all_of_them[all_of_them[:, 1] > all_of_them[:, 0]]
        if held.tobytes() not in self._sides:
            self._sides[held.tobytes()] = len(self._intervals)
            self._intervals.append(held)
        return self._sides[held.tobytes()]

    def intervals_of(self, side: int) -> Intervals:
        """The intervals of a side."""
        return self._intervals[side]

    def widths(self, sides: Numbers) -> Numbers:
        """Elements of the widest interval of some sides, and of what all of them lie in."""
        held = [self.intervals_of(side) for side in sides.tolist()]
        found = [
            ((own[:, 1] - own[:, 0]).max(), own[:, 1].max() - own[:, 0].min())
            if len(own)
            else (0, 0)
            for own in held
        ]
        return np.array(found, np.int64).reshape(-1, 2)

    @once
    def meeting(self, mine: int, other: int) -> int:
        """Most intervals of one side that one of another meets, by their numbers."""
        ours, others = self._intervals[mine], self._intervals[other]
        if not len(ours) or not len(others):
            return 0
        lows, highs = np.sort(ours[:, 0]), np.sort(ours[:, 1])
        begun = np.searchsorted(lows, others[:, 1], side="left")
        ended = np.searchsorted(highs, others[:, 0], side="right")
        return int((begun - ended).max())

    @once
    def idle(self, number: int) -> NDArray[np.bool_] | None:
        """Ranks that hold nothing; None where all hold something."""
        low, high = self._columns[number].T
        nothing: NDArray[np.bool_] = high <= low
        return nothing if nothing.any() else None

    @once
    def ends(self, number: int) -> tuple[int, int]:
        """The smallest interval with those of all ranks."""
        held = self._intervals[self.side(number)]
        return (int(held[:, 0].min()), int(held[:, 1].max())) if len(held) else (0, 0)

    @once
    def spans(self, number: int, low: int, high: int) -> bool:
        """Whether the intervals of all ranks leave no gap in another one."""
        reached = low
        for first, past in self._intervals[self.side(number)].tolist():
            if first > reached:
                return False
            reached = max(reached, past)
        return reached >= high

    @once
    def stretched(self, number: int, extent: int) -> int:
        """The column with its outermost intervals stretched to the edges of the array."""
        found = self._columns[number].copy()
        low, high = found.T
        held = high > low
        if held.any():
            first, last = low[held].min(), high[held].max()
            low[held & (low == first)] = 0
            high[held & (high == last)] = extent
        return self.number(found)

    @once
    def without(self, number: int, idle: bytes) -> int:
        """The column with zeros for some ranks, given as the bytes of a mask."""
        return self.number(
            np.where(np.frombuffer(idle, np.bool_)[:, None], 0, self._columns[number])
        )

    def table(
        self, function: Callable[[int, int], Any], mine: Numbers, theirs: Numbers
    ) -> NDArray[Any]:
        """What a function says of each pair of two lists of numbers, of which few are different."""
        (ours, at), (others, to) = (self._different(n.tobytes()) for n in (mine, theirs))
        known = self.known.setdefault("table", {})
        key = function, ours.tobytes(), others.tobytes()
        if key not in known:
            known[key] = np.array(
                [[function(a, b) for b in others.tolist()] for a in ours.tolist()]
            )
        found: NDArray[Any] = known[key][np.ix_(at, to)]
        return found

    @once
    def _different(self, numbers: bytes) -> tuple[Numbers, Numbers]:
        """The different ones of some numbers, and which of them each one is."""
        found, of = np.unique(np.frombuffer(numbers, np.int64), return_inverse=True)
        return found, of.reshape(-1)

    # -- two columns ----------------------------------------------------------------------------

    @once
    def hull(self, a: int, b: int) -> int:
        """The column of the smallest intervals with those of both, where all hold something."""
        (low, high), (other_low, other_high) = self._columns[a].T, self._columns[b].T
        found = np.minimum(low, other_low), np.maximum(high, other_high)
        return self.number(np.stack(found, axis=1))

    @once
    def inside(self, inner: int, outer: int) -> bool:
        """Whether each rank has its interval of one column in that of another."""
        (low, high), (first, past) = self._columns[inner].T, self._columns[outer].T
        return bool(((first <= low) & (high <= past) | (high <= low)).all())
