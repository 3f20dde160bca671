"""Tiles of all ranks under many candidates at once, and what tiles of two of them have in common.

Ranks are told apart only as far as a pair of candidates does: those whose tiles have as many
elements, and have as many in common, are one class. A pair along one dimension puts the ranks into
classes by a *pattern*, of which a program has few; what several dimensions do together follows from
their patterns, once for each combination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.scheduling import boxes
from distspmd.scheduling.boxes import Stack
from distspmd.scheduling.columns import Columns, Numbers, once

Counts = NDArray[np.int64]
_AT_ONCE = 1 << 18
"""Classes of all pairs that are compared in one call of NumPy."""
_COMMON, _WANTED, _MINE, _THEIRS = range(4)


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tiles of all ranks under some candidates.

    Attributes:
        columns: those of the ranks.
        numbers: of the columns of each candidate: (candidates, dimensions).
    """

    columns: Columns
    numbers: Numbers

    @classmethod
    def of(cls, columns: Columns, bounds: Stack) -> Tiles:
        """Those with some bounds."""
        numbers = [[columns.number(each[:, d]) for d in range(each.shape[1])] for each in bounds]
        return cls(columns, np.array(numbers, np.int64).reshape(len(bounds), bounds.shape[2]))

    @classmethod
    def stacked(cls, columns: Columns, each: Sequence[tuple[int, ...]]) -> Tiles:
        """Those with columns of some numbers."""
        return cls(columns, np.array(each, np.int64).reshape(len(each), -1))

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, which: Any) -> Tiles:
        return Tiles(self.columns, self.numbers[which])

    def key(self, candidate: int) -> tuple[int, ...]:
        """Equal for candidates with equal tiles."""
        return tuple(self.numbers[candidate].tolist())

    @property
    def keys(self) -> list[tuple[int, ...]]:
        """Those of all candidates."""
        return list(map(tuple, self.numbers.tolist()))

    @cached_property
    def asked(self) -> tuple[tuple[int, ...], bytes]:
        """Equal for tiles that are equal under all candidates."""
        return self.numbers.shape, self.numbers.tobytes()

    @property
    def bounds(self) -> Stack:
        """Bounds: (candidates, ranks, dimensions, 2)."""
        return np.moveaxis(self.columns.bounds(self.numbers), 1, 2)

    @property
    def volumes(self) -> Counts:
        """Elements of each tile: (candidates, ranks)."""
        found = np.ones((len(self), self.columns.ranks), np.int64)
        for own in self.numbers.T:
            held = self.columns.bounds(own)
            found *= held[..., 1] - held[..., 0]
        return found

    @cached_property
    def whole(self) -> NDArray[np.int64]:
        """The smallest box with the tiles of all ranks: (candidates, dimensions, 2)."""
        ends = [[self.columns.ends(number) for number in own] for own in self.numbers.tolist()]
        return np.array(ends, np.int64).reshape(*self.numbers.shape, 2)

    @cached_property
    def _census(self) -> Counts:
        found = [census(self.columns, key) for key in self.keys]
        return np.array(found, np.int64).reshape(-1, 4)

    @property
    def holders(self) -> Counts:
        """Ranks that hold anything, under each candidate."""
        return self._census[:, 0]

    @property
    def count(self) -> Counts:
        """Different tiles that hold anything."""
        return self._census[:, 1]

    @property
    def different(self) -> Counts:
        """Elements of the different tiles together."""
        return self._census[:, 2]

    @property
    def largest(self) -> Counts:
        """Elements of the largest tile."""
        return self._census[:, 3]

    @property
    def copies(self) -> NDArray[np.float64]:
        """Ranks that hold each tile, on the average."""
        return self.holders / np.maximum(self.count, 1)

    @cached_property
    def sides(self) -> list[tuple[int, ...]]:
        """The intervals along each dimension, by number."""
        return [tuple(self.columns.side(number) for number in own) for own in self.keys]

    @property
    def has_one_stride(self) -> NDArray[np.bool_]:
        """Whether all tiles of a candidate, stored without gaps, have the same strides."""
        within = [[self.columns.intervals_of(side) for side in own[1:]] for own in self.sides]
        return np.array(
            [all(len(np.unique(i[:, 1] - i[:, 0])) <= 1 for i in own) for own in within], bool
        )

    def hull(self, other: Tiles) -> Tiles:
        """The smallest tiles with those of both, of each candidate."""
        pairs = zip(self.keys, other.keys, strict=True)
        return Tiles.stacked(self.columns, [hull(self.columns, *pair) for pair in pairs])


def hull(columns: Columns, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The columns of the smallest tiles with those of two candidates."""
    if all(columns.idle(number) is None for number in (*a, *b)):
        return tuple(columns.hull(*pair) for pair in zip(a, b, strict=True))
    both = Tiles.stacked(columns, [a, b]).bounds
    return Tiles.of(columns, boxes.hull(both[:1], both[1:])).key(0)


def inside(columns: Columns, inner: tuple[int, ...], outer: tuple[int, ...]) -> bool:
    """Whether each rank has its tile of one candidate in that of another."""
    return all(columns.inside(*pair) for pair in zip(inner, outer, strict=True))


def census(columns: Columns, key: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Holders, different tiles, their elements together, and those of the largest."""
    found: tuple[int, int, int, int] = _census(columns, key)
    return found


@once
def _census(columns: Columns, key: tuple[int, ...]) -> tuple[int, int, int, int]:
    place = np.zeros(columns.ranks, np.int64)
    for number in key:
        intervals, of = columns.intervals(number)
        place = _renumbered(place * len(intervals) + of)
    _, first, ranks = np.unique(place, return_index=True, return_counts=True)
    volumes = np.ones(len(first), np.int64)
    for number in key:
        intervals, of = columns.intervals(number)
        volumes *= (intervals[:, 1] - intervals[:, 0])[of[first]]
    held = volumes > 0
    return int(ranks[held].sum()), int(held.sum()), int(volumes.sum()), int(volumes.max(initial=0))


def _renumbered(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Small numbers, equal where keys are."""
    if int(keys.max(initial=0)) < 1 << 31:
        return keys
    return np.unique(keys, return_inverse=True)[1].reshape(-1)


# -- pairs --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of ranks, for some pairs of candidates; the last ones may repeat, of no ranks.

    Attributes:
        first, second: the candidates of each pair: (pairs,).
        ranks: of each class: (pairs, classes).
        common: elements that tiles of both have in common.
        wanted: elements of the second's tile within the hull of all tiles of the first.
        mine, theirs: elements of the tiles.
    """

    first: Numbers
    second: Numbers
    ranks: Counts
    common: Counts
    wanted: Counts
    mine: Counts
    theirs: Counts


class _Pairs:
    """What pairs of columns have in common, of all that were asked for.

    Attributes:
        numbers: of pairs, by those of both columns.
        pattern: the pattern of each pair.
        begin: where its values begin.
        values: elements in common, wanted, and of both: (classes of all pairs, 4).
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.numbers: dict[tuple[int, int], int] = {}
        self.pattern, self.begin, self.values = (_Grown(shape) for shape in ((), (), (4,)))
        self._patterns: list[NDArray[np.int32]] = []
        self._known: dict[bytes, int] = {}
        self._joints: dict[int, _Joints] = {}

    def joints(self, dimensions: int) -> _Joints:
        """Combinations of the patterns of so many dimensions."""
        if dimensions not in self._joints:
            joints = _Joints(dimensions, self.columns.ranks, self._patterns)
            self._joints[dimensions] = joints
        return self._joints[dimensions]

    def number(self, a: int, b: int) -> int:
        """The number of a pair of columns."""
        found = self.numbers.get((a, b))
        if found is None:
            found = self.numbers[a, b] = len(self.numbers)
            values, of = self._classes(a, b)
            self.pattern.extend([self._pattern(of)])
            self.begin.extend([len(self.values)])
            self.values.extend(values)
        return found

    def _pattern(self, of: NDArray[np.int32]) -> int:
        """The number of a pattern: the class of each rank."""
        key = of.tobytes()
        if key not in self._known:
            self._known[key] = len(self._patterns)
            self._patterns.append(of)
        return self._known[key]

    def _classes(self, a: int, b: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The different values of a pair, and those of each rank."""
        (mine, my), (theirs, their) = (self.columns.intervals(number) for number in (a, b))
        low, high = self.columns.ends(a)
        meetings, of = np.unique(my * np.int64(len(theirs)) + their, return_inverse=True)
        own, other = mine[meetings // len(theirs)], theirs[meetings % len(theirs)]
        values = np.empty((len(meetings), 4), np.int64)
        values[:, _COMMON] = _shared(*own.T, *other.T)
        values[:, _WANTED] = _shared(low, high, *other.T)
        values[:, _MINE] = own[:, 1] - own[:, 0]
        values[:, _THEIRS] = other[:, 1] - other[:, 0]
        different, kind = _different(values)
        return different, kind[of.reshape(-1)].astype(np.int32)


def _shared(low: Any, high: Any, other_low: Any, other_high: Any) -> Any:
    """Elements that intervals have in common."""
    return np.maximum(np.minimum(high, other_high) - np.maximum(low, other_low), 0)


def _different(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different rows, and the number of each one among them."""
    if (rows == rows[0]).all():
        return rows[:1], np.zeros(len(rows), np.int64)
    packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
    _, first, of = np.unique(packed.reshape(-1), return_index=True, return_inverse=True)
    return rows[first], of.reshape(-1)


class _Grown:
    """Rows of numbers to which others are added."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._held = np.zeros((64, *shape), np.int64)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, rows: Any) -> None:
        """Add some rows."""
        end = self._length + len(rows)
        if end > len(self._held):
            more = np.zeros((max(end, 2 * len(self._held)), *self._held.shape[1:]), np.int64)
            more[: self._length] = self._held[: self._length]
            self._held = more
        self._held[self._length : end] = rows
        self._length = end

    def __getitem__(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return self._held[places]


class _Joints:
    """Classes of ranks that patterns of some dimensions make together.

    Attributes:
        begin: where the classes of a combination begin.
        count: how many these are.
        ranks: of each class.
        places: the class in each of the patterns.
    """

    def __init__(self, dimensions: int, ranks: int, patterns: list[NDArray[np.int32]]) -> None:
        self._patterns = patterns
        self._known: dict[tuple[int, ...], int] = {}
        self._ranks = ranks
        self.begin, self.count, self.ranks = (_Grown(()) for _ in range(3))
        self.places = _Grown((dimensions,))

    def number(self, patterns: tuple[int, ...]) -> int:
        """The number of a combination of patterns."""
        if patterns not in self._known:
            self._known[patterns] = len(self._known)
            own = [self._patterns[pattern] for pattern in patterns]
            place = np.zeros(self._ranks, np.int64)
            for of in own:
                place = _renumbered(place * (int(of.max(initial=0)) + 1) + of)
            _, first, ranks = np.unique(place, return_index=True, return_counts=True)
            self.begin.extend([len(self.ranks)])
            self.count.extend([len(first)])
            self.ranks.extend(ranks)
            places = np.zeros((len(first), len(patterns)), np.int64)
            for d, of in enumerate(own):
                places[:, d] = of[first]
            self.places.extend(places)
        return self._known[patterns]


def classes(source: Tiles, target: Tiles) -> Iterator[Classes]:
    """Classes of ranks of all pairs of two sets of candidates, some pairs at a time."""
    pairs: _Pairs = source.columns.known.setdefault("pairs", {}).setdefault(
        (), _Pairs(source.columns)
    )
    rows, columns = len(source), len(target)
    numbers = _numbers(pairs, source, target)
    joints = pairs.joints(numbers.shape[1])
    combinations = _combinations(pairs, joints, numbers)
    counts = joints.count[combinations]
    order = np.argsort(counts, kind="stable")
    counts, begin = counts[order], 0
    while begin < rows * columns:
        most = 2 * int(counts[begin])  # pairs with up to twice as many classes go together
        end = int(np.searchsorted(counts, most, side="right"))
        which = order[begin : min(end, begin + max(1, _AT_ONCE // most))]
        at = which // columns, which % columns
        yield _some(pairs, joints, at, numbers[which], combinations[which])
        begin += len(which)


def _numbers(pairs: _Pairs, source: Tiles, target: Tiles) -> Numbers:
    """The pair of columns of each pair of candidates along each dimension: (pairs, dimensions)."""
    found = [
        pairs.columns.table(pairs.number, mine, theirs).reshape(-1)
        for mine, theirs in zip(source.numbers.T, target.numbers.T, strict=True)
    ]
    return np.stack(found, axis=1) if found else np.zeros((len(source) * len(target), 0), np.int64)


def _combinations(pairs: _Pairs, joints: _Joints, numbers: Numbers) -> Numbers:
    """The combination of patterns of each pair of candidates."""
    patterns = pairs.pattern[numbers]
    if not patterns.size:
        return np.full(len(patterns), joints.number(()))
    different, of = _different(patterns)
    each = [joints.number(tuple(own)) for own in different.tolist()]
    return np.array(each, np.int64)[of]


def _some(
    pairs: _Pairs, joints: _Joints, at: tuple[Numbers, Numbers], numbers: Numbers, which: Numbers
) -> Classes:
    """Classes of ranks of some pairs of candidates."""
    count = joints.count[which][:, None]
    inner = np.arange(int(count.max()))[None]
    places = joints.begin[which][:, None] + np.minimum(inner, count - 1)
    ranks = np.where(inner < count, joints.ranks[places], 0)
    values = np.ones((*places.shape, 4), np.int64)
    classes_of = joints.places[places]
    for d, own in enumerate(numbers.T):
        values *= pairs.values[pairs.begin[own][:, None] + classes_of[:, :, d]]
    return Classes(*at, ranks, *np.moveaxis(values, 2, 0))


def tabled(
    source: Tiles, target: Tiles, each: Callable[[Classes], Sequence[NDArray[Any]]]
) -> list[NDArray[Any]]:
    """What is found of the classes of each pair, as tables: a source in each row."""
    found: list[NDArray[Any]] = []
    for own in classes(source, target):
        answers = each(own)
        if not found:
            found = [np.zeros((len(source), len(target)), a.dtype) for a in answers]
        for table, answer in zip(found, answers, strict=True):
            table[own.first, own.second] = answer
    return found
