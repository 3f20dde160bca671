"""Homes as variables: the layouts in which a container could live, and what each use then costs.

What :mod:`distspmd.placement.homes` decides for given tilings is stated here for all candidates at
once: a home is one more choice, and each of its uses is a pair.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.analysis.uses import Read
from distspmd.layouts import intervals
from distspmd.placement.homes import COPY
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.machine import Machine
from distspmd.scheduling import boxes, traffic
from distspmd.scheduling.boxes import Sides, Stack
from distspmd.scheduling.footprints import Slot
from distspmd.scheduling.traffic import Layouts, Moved

MOST_HOMES = 48
"""Layouts of a container that are weighed."""
Axes = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class UseArrays:
    """One use of a container under all candidates of its space.

    Attributes:
        space: name of the space.
        slot: the use.
        tiles: what it works on.
        written: what it writes.
        operands: of each element that is written; more than 1 where ranks write a reduction.
        parts: of the tiles, what is needed; none for all of it.
        axes: of a mesh that split each dimension, of each candidate.
        times: how often it happens.
    """

    space: str
    slot: Slot
    tiles: Stack
    written: Stack
    operands: NDArray[np.int64]
    parts: tuple[Stack, ...]
    axes: tuple[Axes, ...]
    times: int

    def at(self, candidate: int) -> UseArrays:
        """The use under one candidate alone."""
        return replace(
            self,
            tiles=self.tiles[[candidate]],
            written=self.written[[candidate]],
            operands=self.operands[[candidate]],
            parts=tuple(part[[candidate]] for part in self.parts),
            axes=(self.axes[candidate],),
        )

    @property
    def is_read(self) -> bool:
        """Whether it only reads."""
        return isinstance(self.slot.use, Read)

    @property
    def key(self) -> tuple[Any, ...]:
        """All that its costs depend on; tiles that are equal are one array, which is kept."""
        use = self.slot.use
        arrays = self.tiles, self.written, *self.parts
        kind: tuple[Any, ...] = type(use), use.needs_values
        if isinstance(use, Read):
            kind = *kind, bool(use.approximate), use.sweeps, use.inspection is None
        return tuple(map(id, arrays)), self.operands.tobytes(), self.axes, self.times, kind


Members = Sequence[tuple[UseArrays, int]]
"""Uses, each with one candidate of its space."""


@dataclass(frozen=True, eq=False)
class Lodging:
    """One layout in which a container could live.

    Attributes:
        bounds: its tiles: (ranks, dimensions, 2).
        core: what surely is up to date of each tile.
        fresh: what a write brings up to date.
    """

    bounds: NDArray[np.int64]
    core: NDArray[np.int64]
    fresh: tuple[NDArray[np.int64], ...]


@dataclass(eq=False)
class Costs:
    """What moves cost, as arrays of one shape.

    Attributes:
        seconds: predicted.
        nbytes: that all ranks receive.
        traffic: these, and bytes that ranks copy by weight: what homes are chosen by.
    """

    seconds: NDArray[np.float64]
    nbytes: NDArray[np.float64]
    traffic: NDArray[np.float64]

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Costs:
        """No costs."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape))

    @classmethod
    def of(cls, made: Moved) -> Costs:
        """Those of moves into a storage of their own."""
        return cls(
            made.seconds,
            made.nbytes.astype(np.float64),
            made.nbytes.astype(np.float64) + COPY * made.copied,
        )

    @classmethod
    def in_place(cls, made: Moved) -> Costs:
        """Those of moves within one storage."""
        seconds = np.where(made.nbytes > 0, made.in_place, 0.0)
        return cls(seconds, made.nbytes.astype(np.float64), made.nbytes.astype(np.float64))

    def turned(self) -> Costs:
        """Rows as columns."""
        return Costs(self.seconds.T, self.nbytes.T, self.traffic.T)

    def __getitem__(self, key: Any) -> Costs:
        return Costs(self.seconds[key], self.nbytes[key], self.traffic[key])

    def __mul__(self, times: float) -> Costs:
        return Costs(times * self.seconds, times * self.nbytes, times * self.traffic)

    def add(self, other: Costs, where: NDArray[np.bool_] | np.bool_) -> None:
        """Add costs in some places."""
        self.seconds += np.where(where, other.seconds, 0.0)
        self.nbytes += np.where(where, other.nbytes, 0.0)
        self.traffic += np.where(where, other.traffic, 0.0)


@dataclass(frozen=True)
class Settled:
    """What the home of a container costs, under one candidate of each space.

    Attributes:
        seconds: of all that it makes necessary in a run.
        nbytes: that all ranks receive.
        tile: bytes of the largest tile.
        bounds: its tiles: (ranks, dimensions, 2).
        is_given: whether the schedule has to say so, because the lowering would choose another.
    """

    seconds: float
    nbytes: float
    tile: int
    bounds: NDArray[np.int64] = field(repr=False)
    is_given: bool = False


@dataclass(eq=False)
class Dwelling:
    """A container whose home is to be chosen.

    Attributes:
        data: the container.
        itemsize: bytes of an element.
        uses: in program order.
        caller: tiles in which the caller holds it; None for what it never sees.
        is_distributed: whether the caller holds it in whatever layout its home has.
        is_loaded: whether the caller's values are needed.
        machine: what bytes and messages cost.
        is_settled: whether each use has one candidate, so that all are there together.
    """

    data: str
    itemsize: int
    extents: tuple[int, ...]
    uses: Sequence[UseArrays]
    caller: NDArray[np.int64] | None
    is_distributed: bool
    is_loaded: bool
    machine: Machine
    is_settled: bool = False
    sides: Sides = field(default_factory=Sides)
    lodgings: list[Lodging] = field(default_factory=list, init=False)
    _known: dict[tuple[int, ...], Settled] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.is_written = any(not use.is_read for use in self.uses)
        found = list(self._lodgings())
        if len(found) > MOST_HOMES:
            found = self._cheapest(found)
        self._set(found)

    def _set(self, lodgings: list[Lodging]) -> None:
        self.lodgings = lodgings
        self.layouts = Layouts(np.stack([each.bounds for each in lodgings]), self.sides)
        self.cores = self.layouts
        if any(each.core is not each.bounds for each in lodgings):
            self.cores = Layouts(np.stack([each.core for each in lodgings]), self.sides)
        most = max(len(each.fresh) for each in lodgings)
        nothing = np.zeros_like(lodgings[0].bounds)
        self.fresh = [
            Layouts(
                np.stack([e.fresh[k] if k < len(e.fresh) else nothing for e in lodgings]),
                self.sides,
            )
            for k in range(most)
        ]

    def settled(self, chosen: Mapping[str, int]) -> Settled:
        """The home that :mod:`distspmd.placement.homes` chooses: that of least traffic.

        Args:
            chosen: the candidate of each space.
        """
        key = tuple(chosen[use.space] for use in self.uses)
        if key not in self._known:
            self._known[key] = self._settled(chosen)
        return self._known[key]

    def _settled(self, chosen: Mapping[str, int]) -> Settled:
        uses = [use.at(chosen[use.space]) for use in self.uses]
        alone = replace(self, uses=uses, is_settled=True)
        costs = alone.own()
        for use in uses:
            costs.add(alone.pair(use)[:, 0], np.True_)
        at = int(costs.traffic.argmin())  # of equals the first
        tile = int(alone.layouts.volumes[at].max()) * self.itemsize
        bounds = alone.lodgings[at].bounds
        return Settled(float(costs.seconds[at]), float(costs.nbytes[at]), tile, bounds)

    def renamed(self, data: str, uses: Sequence[UseArrays]) -> Dwelling:
        """The same for another container that is used alike."""
        twin = copy.copy(self)
        twin.data, twin.uses = data, uses
        return twin

    def _cheapest(self, lodgings: list[Lodging]) -> list[Lodging]:
        """Those of least cost if each use had the candidate that suits it."""
        self._set(lodgings)
        seconds = self.own().seconds
        for use in self.uses:
            seconds = seconds + self.pair(use).seconds.min(axis=1)
        kept = np.sort(np.argsort(seconds, kind="stable")[:MOST_HOMES])
        return [lodgings[place] for place in kept]

    # -- layouts --------------------------------------------------------------------------------

    def _lodgings(self) -> Iterator[Lodging]:
        """Layouts that cover all uses, and that of the caller, each once."""
        needed = self._needed()
        covering: dict[bytes, bool] = {}
        seen: set[bytes] = set()
        for members in self._groups():
            for layout in self._layouts_of(members):
                key = layout.tobytes()
                if key not in covering:
                    covering[key] = self._covers(layout, needed)
                if covering[key] and key not in seen:
                    seen.add(key)
                    yield self._kept(layout, members)
        if self.caller is not None and self.caller.tobytes() not in seen:
            seen.add(self.caller.tobytes())
            yield Lodging(self.caller, self.caller, (self.caller,))
        if not seen:
            whole = np.zeros_like(self.uses[0].tiles[0])
            whole[..., 1] = self.extents
            yield Lodging(whole, whole, (whole,))

    def _groups(self) -> Iterable[Members]:
        """Uses, writes first, with those candidates that split the same dimensions alike."""
        if self.is_settled:
            uses = [use for use in self.uses if not use.is_read]
            return [[(use, 0) for use in [*uses, *(u for u in self.uses if u.is_read)]]]
        groups: dict[Axes, dict[tuple[bytes, ...], tuple[UseArrays, int]]] = {}
        for place, use in enumerate(sorted(self.uses, key=lambda use: use.is_read)):
            for number, axes in enumerate(use.axes):
                tiles = use.tiles[number].tobytes(), use.written[number].tobytes()
                key = (str(place).encode(), *tiles)
                groups.setdefault(axes, {}).setdefault(key, (use, number))
        return [list(group.values()) for group in groups.values()]

    def _layouts_of(self, members: Members) -> Iterator[NDArray[np.int64]]:
        """Tiles of uses that split the same dimensions, and what they lie in; also stretched."""
        alone = list({u.tiles[n].tobytes(): u.tiles[n] for u, n in members}.values())
        hulls = []
        if self.is_settled:
            values = [use for use, _ in members if (use.operands == 1).all()]
            meshes: dict[bool, list[NDArray[np.int64]]] = {}
            for use in values:
                meshes.setdefault(use.axes[0][:1] == (("0",),), []).append(use.tiles[0])
            hulls = [functools.reduce(boxes.hull, own) for own in meshes.values() if len(own) > 1]
        elif len(alone) > 1:
            hulls = [functools.reduce(boxes.hull, alone)]
        for bounds in [*alone, *hulls]:
            yield bounds
            yield self._stretched(bounds)

    def _needed(self) -> NDArray[np.int64]:
        """The box that all uses together lie in, whatever the tilings: (dimensions, 2)."""
        ends = [boxes.hull_of_ranks(use.tiles[:1]) for use in self.uses]
        found = ends[0]
        for other in ends[1:]:
            found = boxes.hull(found, other)
        if self.is_distributed:
            found[..., 0], found[..., 1] = 0, self.extents
        box: NDArray[np.int64] = found[0]
        return box

    def _covers(self, bounds: NDArray[np.int64], needed: NDArray[np.int64]) -> bool:
        """Whether tiles together have all elements of a box."""
        wanted = int(boxes.volumes(needed))
        if not wanted:
            return True
        once = boxes.different_tiles(bounds)
        if not len(once):
            return False
        sides = boxes.different_sides(once)
        if len(once) == np.prod([len(side) for side in sides]):
            return all(_spans(side, *ends) for side, ends in zip(sides, needed, strict=True))
        low = np.maximum(once[..., 0], needed[:, 0])
        high = np.minimum(once[..., 1], needed[:, 1])
        inside = boxes.emptied(np.stack([low, np.maximum(high, low)], axis=-1))
        tiles = [tuple((lo, hi) for lo, hi in box) for box in inside.tolist()]
        return intervals.union_volume(tiles) == wanted

    def _stretched(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """The layout with its outermost tiles stretched to the edges of the array."""
        found = bounds.copy()
        held = boxes.volumes(bounds) > 0
        if held.any():
            for d, extent in enumerate(self.extents):
                low, high = found[:, d, 0], found[:, d, 1]
                first, last = low[held].min(), high[held].max()
                low[held & (low == first)] = 0
                high[held & (high == last)] = extent
        return found

    def _kept(self, bounds: NDArray[np.int64], members: Members) -> Lodging:
        """The core of a home, and what is kept up to date: less than all where that is cheaper."""
        whole = Lodging(bounds, bounds, (bounds,))
        home = Layouts(bounds[None], self.sides)
        inside = [
            (use, number)
            for use, number in members
            if traffic.within(Layouts(use.tiles[number][None], self.sides), home)[0, 0]
        ]
        writes = [
            use.written[number]
            for use, number in inside
            if not use.is_read and use.operands[number] == 1
        ]
        if not writes:
            return whole
        held = boxes.hull_of_ranks(bounds[None])[0]
        cores = [*writes, *map(self._stretched, writes)]
        core = next((c for c in cores if self._covers(c, held) and _inside(c, bounds)), None)
        if core is None or (core == bounds).all():
            return whole
        needs = [
            part
            for use, number in inside
            if use.is_read or use.slot.use.needs_values
            for part in ([p[number] for p in use.parts] or [use.tiles[number]])
        ]
        fresh = _outermost([core, *needs])
        lacking = sum(_lacking(write, part) for write in writes for part in fresh)
        if lacking < sum(_lacking(write, bounds) for write in writes):
            return Lodging(bounds, core, tuple(fresh))
        return Lodging(bounds, core, (bounds,))

    # -- costs ----------------------------------------------------------------------------------

    def own(self) -> Costs:
        """What each home alone makes necessary, at the start and the end."""
        found = Costs.none((len(self.lodgings),))
        if self.caller is None or self.is_distributed:
            return found
        caller = Layouts(self.caller[None], self.sides)
        away = (self.layouts.bounds != self.caller[None]).any(axis=(1, 2, 3))
        if self.is_loaded:
            made = traffic.move(caller, self.layouts, self.itemsize, self.machine)
            found.add(Costs.of(made)[0], away)
        if self.is_written:
            made = traffic.move(self.cores, caller, self.itemsize, self.machine)
            found.add(Costs.of(made)[:, 0], away)
        return found

    def pair(self, use: UseArrays) -> Costs:
        """What a use costs: a home in each row, a candidate of its space in each column.

        Candidates with equal tiles share one computation.
        """
        together = [a.reshape(len(a), -1) for a in (use.tiles, use.written, use.operands)]
        _, of = boxes.distinct(np.concatenate(together, axis=1))
        _, first = np.unique(of, return_index=True)
        found = self._pair(use, first) * self._times(use)
        for layouts in (self.layouts, self.cores):
            layouts.forget()
        return found[:, of]

    def _times(self, use: UseArrays) -> float:
        """How often a use moves anything: of what is asked for, as far as that can be told."""
        times: float = use.times if self.is_written else 1
        read = use.slot.use
        if isinstance(read, Read) and read.is_asked_for(self.is_written):
            return times * HEURISTICS.inspected_share if read.approximate else read.sweeps
        return times

    def _pair(self, use: UseArrays, which: NDArray[np.int64]) -> Costs:
        tiles = Layouts(use.tiles[which], self.sides)
        held = traffic.within(tiles, self.layouts)
        total = Costs.none(held.shape)
        if use.is_read or use.slot.use.needs_values:
            made = traffic.move(self.cores, tiles, self.itemsize, self.machine)
            total.add(Costs.of(made), ~held)
        if use.is_read:
            return total
        written, operands = Layouts(use.written[which], self.sides), use.operands[which]
        is_value = np.broadcast_to(operands == 1, held.shape)
        for part in self.fresh:
            wanted = is_value & (part.holders > 0)[:, None]
            made = traffic.move(written, part, self.itemsize, self.machine)
            total.add(Costs.of(made).turned(), wanted & ~held)
            total.add(Costs.in_place(made).turned(), wanted & held)
        if not is_value.all():
            made = traffic.reduce(written, operands, self.layouts, self.itemsize, self.machine)
            total.add(Costs.of(made).turned(), ~is_value)
        return total


def _spans(side: NDArray[np.int64], low: int, high: int) -> bool:
    """Whether intervals in the order of their begins leave no gap in another one."""
    reached = low
    for lo, hi in side.tolist():
        if lo > reached:
            return False
        reached = max(reached, hi)
    return reached >= high


def _inside(inner: NDArray[np.int64], outer: NDArray[np.int64]) -> bool:
    held = boxes.volumes(inner) > 0
    low = (outer[..., 0] <= inner[..., 0]).all(axis=-1)
    high = (inner[..., 1] <= outer[..., 1]).all(axis=-1)
    return bool((low & high | ~held).all())


def _outermost(layouts: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """The layouts whose tiles no other one has within its own."""
    found: list[NDArray[np.int64]] = []
    for layout in layouts:
        if any(_inside(layout, other) for other in found):
            continue
        found = [other for other in found if not _inside(other, layout)]
        found.append(layout)
    return found


def _lacking(write: NDArray[np.int64], part: NDArray[np.int64]) -> int:
    """Elements that ranks receive to fill a part of their tiles after a write."""
    region = boxes.hull_of_ranks(write[None])
    wanted = boxes.common_with_one(part[None], region)[0, 0]
    kept = boxes.common(part[None], write[None])[0, 0]
    return int((wanted - kept).sum())
