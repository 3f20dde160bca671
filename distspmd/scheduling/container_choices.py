"""Homes as variables: the layouts in which a container could live, and what each use then costs.

What :mod:`distspmd.placement.homes` decides for given tilings is stated here for all candidates at
once: a home is one more choice, and each of its uses is a pair.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.analysis.uses import Read
from distspmd.layouts import intervals
from distspmd.placement.homes import most_used
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.machine import Kind, Machine
from distspmd.scheduling import boxes, traffic
from distspmd.scheduling.costs import Costs
from distspmd.scheduling.footprints import Slot
from distspmd.scheduling.tiles import Tiles, census, hull, inside

MOST_HOMES = 48
"""Layouts of a container that are weighed."""
MOST_OF_A_GROUP = 12
"""The same, of those that suit one loop best."""
Axes = tuple[tuple[str, ...], ...]
Key = tuple[int, ...]
"""The columns of one layout."""


@dataclass(frozen=True, eq=False)
class UseArrays:
    """One use of a container under all candidates of its space.

    Attributes:
        space: name of the space.
        slot: the use.
        tiles: what it works on.
        written: what it writes.
        operands: of each element that is written; more than 1 where ranks write a reduction.
        pieces: of each candidate, columns of tiles in which each rank has a part of the result.
        parts: of the tiles, what is needed; none for all of it.
        axes: of a mesh that split each dimension, of each candidate.
        times: how often it happens.
        asked: elements that the busiest rank asks for each time, of each candidate, where data
            decide which.
    """

    space: str
    slot: Slot
    tiles: Tiles
    written: Tiles
    operands: NDArray[np.int64]
    pieces: tuple[tuple[Key, ...], ...]
    parts: tuple[Tiles, ...]
    axes: tuple[Axes, ...]
    times: int
    asked: NDArray[np.float64]

    def at(self, candidate: int) -> UseArrays:
        """The use under one candidate alone."""
        return replace(
            self,
            tiles=self.tiles[[candidate]],
            written=self.written[[candidate]],
            operands=self.operands[[candidate]],
            pieces=(self.pieces[candidate],),
            parts=tuple(part[[candidate]] for part in self.parts),
            axes=(self.axes[candidate],),
            asked=self.asked[[candidate]],
        )

    @property
    def is_read(self) -> bool:
        """Whether it only reads."""
        return isinstance(self.slot.use, Read)

    @functools.cached_property
    def key(self) -> tuple[Any, ...]:
        """All that its costs depend on."""
        use = self.slot.use
        tiles = tuple(t.numbers.tobytes() for t in (self.tiles, self.written, *self.parts))
        kind: tuple[Any, ...] = type(use), use.needs_values
        if isinstance(use, Read):
            kind = *kind, bool(use.approximate), use.repeats, use.inspection is None
            kind = *kind, self.asked.tobytes()
        return tiles, self.operands.tobytes(), self.pieces, self.axes, self.times, kind


Members = Sequence[tuple[UseArrays, int]]
"""Uses, each with one candidate of its space."""


@dataclass(frozen=True)
class LayoutCandidate:
    """One layout in which a container could live.

    Attributes:
        tiles: columns of its tiles.
        core: of what surely is up to date of each tile.
        fresh: of what a write brings up to date.
    """

    tiles: Key
    core: Key
    fresh: tuple[Key, ...]


@dataclass(frozen=True)
class ChoiceCost:
    """What the home of a container costs, under one candidate of each space.

    Attributes:
        seconds: of all that it makes necessary in a run.
        nbytes: that all ranks receive.
        tile: bytes of the largest tile.
        tiles: of all ranks, of this home alone.
        is_given: whether the schedule has to say so, because the lowering would choose another.
    """

    seconds: float
    nbytes: float
    tile: int
    tiles: Tiles = field(repr=False)
    is_given: bool = False


@dataclass(eq=False)
class ContainerChoice:
    """A container whose home is to be chosen.

    Attributes:
        data: the container.
        itemsize: bytes of an element.
        uses: in program order.
        caller: tiles in which the caller holds it; None for what it never sees.
        is_distributed: whether the caller holds it in whatever layout its home has.
        is_loaded: whether the caller's values are needed.
        machine: what bytes and messages cost.
        is_decided: whether each use has one candidate, so that all are there together.
        groups: uses for which the container may live elsewhere than for the others.
        beyond: boxes of what no use counts for, and which a home has as well.
    """

    data: str
    itemsize: int
    extents: tuple[int, ...]
    uses: Sequence[UseArrays]
    caller: Tiles | None
    is_distributed: bool
    is_loaded: bool
    machine: Machine
    is_decided: bool = False
    groups: Sequence[Sequence[UseArrays]] = ()
    beyond: Sequence[NDArray[np.int64]] = ()
    candidates: list[LayoutCandidate] = field(default_factory=list, init=False)
    _known: dict[tuple[int, ...], ChoiceCost] = field(default_factory=dict, init=False)
    _pairs: dict[tuple[Any, ...], Costs] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.is_written = any(not use.is_read for use in self.uses)
        self.columns = self.uses[0].tiles.columns
        found = list(self._layout_candidates())
        if len(found) > MOST_HOMES:
            found = self._cheapest(found)
        self._set(found)

    def _set(self, candidates: list[LayoutCandidate]) -> None:
        self.candidates = candidates
        self._pairs.clear()
        columns = self.columns
        self.layouts = Tiles.stacked(columns, [each.tiles for each in candidates])
        self.cores = Tiles.stacked(columns, [each.core for each in candidates])
        self.at_caller = self._at_caller()
        most = max(len(each.fresh) for each in candidates)
        nothing = self._nothing(len(self.extents))
        self.fresh = [
            Tiles.stacked(
                columns, [e.fresh[k] if k < len(e.fresh) else nothing for e in candidates]
            )
            for k in range(most)
        ]

    def _at_caller(self) -> NDArray[np.bool_]:
        """Whether the caller's memory is the home itself, for each layout.

        A caller who holds the array as it lives has tiles that do not overlap, of one stride.
        """
        held = self.cores.numbers if self.is_distributed else np.full((1, len(self.extents)), -1)
        if self.caller is not None:
            held = self.caller.numbers
        found: NDArray[np.bool_] = (self.layouts.numbers == held).all(axis=1)
        return found & self.layouts.has_one_stride

    def _nothing(self, dimensions: int) -> Key:
        return (self.columns.whole(0),) * dimensions

    def cost_of(self, chosen: Mapping[str, int]) -> ChoiceCost:
        """The home that :mod:`distspmd.placement.homes` chooses: that of least traffic.

        Args:
            chosen: the candidate of each space.
        """
        key = tuple(chosen[use.space] for use in self.uses)
        if key not in self._known:
            self._known[key] = self._cost_of(chosen)
        return self._known[key]

    def _cost_of(self, chosen: Mapping[str, int]) -> ChoiceCost:
        return self._decided(chosen)._least()

    def _decided(self, chosen: Mapping[str, int]) -> ContainerChoice:
        """The same with the one candidate of each space that is chosen."""
        uses = [use.at(chosen[use.space]) for use in self.uses]
        return replace(self, uses=uses, is_decided=True)

    def _least(self) -> ChoiceCost:
        costs = self.own()
        for use in self.uses:
            costs.add(self.pair(use)[:, 0], np.True_)
        at = int(costs.traffic.argmin())  # of equals the first
        home = self.layouts[[at]]
        tile = int(home.largest[0]) * self.itemsize
        return ChoiceCost(float(costs.seconds[at]), float(costs.nbytes[at]), tile, home)

    def cost_of_given(self, layout: int, chosen: Mapping[str, int]) -> ChoiceCost:
        """What a layout costs that the lowering is given, which keeps up to date what uses need.

        Args:
            layout: one of the candidates.
            chosen: the candidate of each space.
        """
        decided = self._decided(chosen)
        (members,) = decided._groups()
        decided._set([decided._kept(self.candidates[layout].tiles, members)])
        return decided._least()

    @property
    def is_whole(self) -> bool:
        """Whether ranks have all of it or nothing in each layout."""
        return bool((self.layouts.largest == math.prod(self.extents)).all())

    def renamed(self, data: str, uses: Sequence[UseArrays]) -> ContainerChoice:
        """The same for another container that is used alike."""
        twin = copy.copy(self)
        twin.data, twin.uses = data, uses
        return twin

    def _cheapest(self, candidates: list[LayoutCandidate]) -> list[LayoutCandidate]:
        """Those of least cost if each use had the candidate that suits it, of all and of groups."""
        self._set(candidates)
        least = {id(use): self.pair(use).seconds.min(axis=1) for use in self.uses}
        kept: set[int] = set()
        for most, group in ((MOST_HOMES, self.uses), *((MOST_OF_A_GROUP, g) for g in self.groups)):
            seconds = self.own().seconds if group is self.uses else np.zeros(len(candidates))
            for use in group:
                seconds = seconds + least[id(use)]
            kept |= {*np.argsort(seconds, kind="stable")[:most].tolist()}
        return [candidates[place] for place in sorted(kept)]

    # -- layouts --------------------------------------------------------------------------------

    def _layout_candidates(self) -> Iterator[LayoutCandidate]:
        """Layouts that cover all uses, and that of the caller, each once."""
        needed = self._needed()
        covering: dict[Key, bool] = {}
        seen: set[Key] = set()
        for members in self._groups():
            for layout in self._layouts_of(members):
                if layout not in covering:
                    covering[layout] = self._covers(layout, needed)
                if covering[layout] and layout not in seen:
                    seen.add(layout)
                    yield self._kept(layout, members)
        if self.caller is not None and (caller := self.caller.key(0)) not in seen:
            seen.add(caller)
            yield LayoutCandidate(caller, caller, (caller,))
        if not seen:
            whole = tuple(map(self.columns.whole, self.extents))
            yield LayoutCandidate(whole, whole, (whole,))

    def _groups(self) -> Iterable[Members]:
        """Uses, writes first, with those candidates that split the same dimensions alike."""
        if self.is_decided:
            uses = [use for use in self.uses if not use.is_read]
            return [[(use, 0) for use in [*uses, *(u for u in self.uses if u.is_read)]]]
        groups: dict[Axes, dict[tuple[Any, ...], tuple[UseArrays, int]]] = {}
        for place, use in enumerate(sorted(self.uses, key=lambda use: use.is_read)):
            for number, axes in enumerate(use.axes):
                key = place, use.tiles.key(number), use.written.key(number)
                groups.setdefault(axes, {}).setdefault(key, (use, number))
        return [list(group.values()) for group in groups.values()]

    def _layouts_of(self, members: Members) -> Iterator[Key]:
        """Tiles of uses that split the same dimensions, and what they lie in; also stretched.

        Last of all come parts of tiles of results, which ranks reduce for each other.
        """
        weights: dict[Key, float] = {}
        for use, number in members:
            key = use.tiles.key(number)
            weights[key] = weights.get(key, 0.0) + use.times * int(use.tiles.largest[number])
        alone, hulls = [*weights], []
        if self.is_decided:
            values = [use for use, _ in members if (use.operands == 1).all()]
            meshes: dict[bool, list[Key]] = {}
            for use in values:
                meshes.setdefault(use.axes[0][:1] == (("0",),), []).append(use.tiles.key(0))
            hulls = [each for own in meshes.values() if len(own) > 1 for each in self._hulls(own)]
        elif len(alone) > 1:
            hulls = self._hulls(alone)
        uses = [use.slot.use for use in self.uses]
        asked = any(isinstance(use, Read) and use.is_asked_for(True) for use in uses)
        pieces = [] if asked else [piece for use, n in members for piece in use.pieces[n]]
        for layout in [*most_used(weights), *hulls, *pieces]:
            yield layout
            yield self._stretched(layout)

    def _hulls(self, keys: Sequence[Key]) -> list[Key]:
        """The hull of tiles, first without those that lie far off; as homes have it."""
        near = keys[0]
        for other in keys[1:]:
            both = hull(self.columns, near, other)
            held = Tiles.stacked(self.columns, [near, other, both]).volumes.sum(axis=1)
            near = both if held[2] <= held[0] + held[1] else near
        return [near, functools.reduce(functools.partial(hull, self.columns), keys)]

    def _needed(self) -> NDArray[np.int64]:
        """The box that all uses together lie in, whatever the tilings: (dimensions, 2)."""
        ends = [*(use.tiles[:1].whole for use in self.uses), *self.beyond]
        found = ends[0]
        for other in ends[1:]:
            found = boxes.hull(found, other)
        if self.is_distributed:
            found[..., 0], found[..., 1] = 0, self.extents
        box: NDArray[np.int64] = found[0]
        return box

    def _covers(self, layout: Key, needed: NDArray[np.int64]) -> bool:
        """Whether tiles together have all elements of a box."""
        wanted = int(boxes.volumes(needed))
        if not wanted:
            return True
        _, count, _, _ = census(self.columns, layout)
        if not count:
            return False
        columns = self.columns
        sides = [len(columns.intervals_of(columns.side(number))) for number in layout]
        if count == np.prod(sides):
            pairs = zip(layout, needed.tolist(), strict=True)
            return all(columns.spans(number, *ends) for number, ends in pairs)
        once = boxes.different_tiles(Tiles.stacked(columns, [layout]).bounds[0])
        low = np.maximum(once[..., 0], needed[:, 0])
        high = np.minimum(once[..., 1], needed[:, 1])
        inside = boxes.emptied(np.stack([low, np.maximum(high, low)], axis=-1))
        tiles = [tuple((lo, hi) for lo, hi in box) for box in inside.tolist()]
        return intervals.union_volume(tiles) == wanted

    def _stretched(self, layout: Key) -> Key:
        """The layout with its outermost tiles stretched to the edges of the array."""
        pairs = zip(layout, self.extents, strict=True)
        return tuple(self.columns.stretched(*pair) for pair in pairs)

    def _kept(self, layout: Key, members: Members) -> LayoutCandidate:
        """The core of a home, and what is kept up to date: less than all where that is cheaper."""
        whole = LayoutCandidate(layout, layout, (layout,))
        within = [(u, n) for u, n in members if inside(self.columns, u.tiles.key(n), layout)]
        writes = [
            use.written.key(number)
            for use, number in within
            if not use.is_read and use.operands[number] == 1
        ]
        if not writes:
            return whole
        held = Tiles.stacked(self.columns, [layout]).whole[0]
        cores = [*writes, *map(self._stretched, writes)]
        core = next(
            (c for c in cores if self._covers(c, held) and inside(self.columns, c, layout)), None
        )
        if core is None or core == layout:
            return whole
        needs = [
            part.key(number)
            for use, number in within
            if use.is_read or use.slot.use.needs_values
            for part in (use.parts or (use.tiles,))
        ]
        fresh = self._outermost([core, *needs])
        if self._lacking(writes, fresh) < self._lacking(writes, [layout]):
            return LayoutCandidate(layout, core, tuple(fresh))
        return LayoutCandidate(layout, core, (layout,))

    def _outermost(self, layouts: Sequence[Key]) -> list[Key]:
        """The layouts whose tiles no other one has within its own."""
        found: list[Key] = []
        for layout in layouts:
            if any(inside(self.columns, layout, other) for other in found):
                continue
            found = [other for other in found if not inside(self.columns, other, layout)]
            found.append(layout)
        return found

    def _lacking(self, writes: Sequence[Key], parts: Sequence[Key]) -> int:
        """Elements that ranks receive to fill parts of their tiles after each write."""
        sides = (Tiles.stacked(self.columns, each) for each in (writes, parts))
        return int(traffic.lacking(*sides).sum())

    # -- costs ----------------------------------------------------------------------------------

    def own(self) -> Costs:
        """What each home alone makes necessary, at the start and the end."""
        found = Costs.none((len(self.candidates),))
        if self.is_distributed:
            return self._own_of_tiles(found)
        if self.caller is None:
            return found
        caller, away = self.caller, ~self.at_caller
        if self.is_loaded:
            made = traffic.move(caller, self.layouts, self.itemsize, self.machine, True)
            found.add(Costs.of(made)[0], away)
        if self.is_written:
            made = traffic.move(self.cores, caller, self.itemsize, self.machine)
            found.add(Costs.of(made)[:, 0], away)
        return found

    def _own_of_tiles(self, found: Costs) -> Costs:
        """The same where the caller holds what is up to date of each tile.

        Of homes that several ranks have whole it is not counted, for readers may share a copy of
        tiles instead, which is not foreseen either.
        """
        has_halos = ~self.at_caller & (self.layouts.count == self.layouts.holders)
        for place in np.flatnonzero(has_halos).tolist():
            held, own = self.cores[[place]], found[place : place + 1]
            if self.is_loaded:
                home = self.layouts[[place]]
                made = traffic.move(held, home, self.itemsize, self.machine, True)
                own.add(Costs.of(made)[0], np.True_)
            if self.is_written:
                made = traffic.move(held, held, self.itemsize, self.machine)
                own.add(Costs.of(made)[0], np.True_)
        return found

    def pair(self, use: UseArrays) -> Costs:
        """What a use costs: a home in each row, a candidate of its space in each column.

        Candidates with equal tiles share one computation, and uses that are alike one answer.
        """
        if use.key not in self._pairs:
            self._pairs[use.key] = self._pair_of(use)
        return self._pairs[use.key]

    def _pair_of(self, use: UseArrays) -> Costs:
        asked = np.unique(use.asked, return_inverse=True)[1].reshape(-1, 1)
        together = use.tiles.numbers, use.written.numbers, use.operands[:, None], asked
        _, first, of = np.unique(
            np.concatenate(together, axis=1), axis=0, return_index=True, return_inverse=True
        )
        return self._often(use, self._pair(use, first), use.asked[first])[:, of.reshape(-1)]

    def _often(self, use: UseArrays, once: Costs, asked: NDArray[np.float64]) -> Costs:
        """What a use costs in a run: of what is asked for, as far as that can be told.

        Args:
            asked: elements, of each candidate.
        """
        times: float = use.times if self.is_written else 1
        read = use.slot.use
        if not isinstance(read, Read) or not read.is_asked_for(self.is_written):
            return once * times
        if read.approximate:
            found = once * (times * HEURISTICS.inspected_share)
            asking = times * self.machine.asking(asked)
            found.seconds = found.seconds + np.where(found.nbytes > 0, asking, 0.0)
            return found
        found = once * read.repeats
        waiting = np.where(found.nbytes > 0, self.machine.passing(use.times, 0), 0.0)
        found.seconds = waiting + found.nbytes * self.machine.beta
        return found

    def _pair(self, use: UseArrays, which: NDArray[np.int64]) -> Costs:
        tiles = use.tiles[which]
        total = Costs.none((len(self.candidates), len(which)))
        if use.is_read or use.slot.use.needs_values:
            total.add(self.reading(tiles), np.True_)
        if use.is_read:
            return total
        written, operands = use.written[which], use.operands[which]
        is_value = np.broadcast_to(operands == 1, total.seconds.shape)
        total.add(self.writing(written, traffic.within(tiles, self.layouts)), is_value)
        if not is_value.all():
            made = traffic.reduce(written, operands, self.layouts, self.itemsize, self.machine)
            total.add(Costs.of(made).turned(), ~is_value)
        return total

    def reading(self, tiles: Tiles) -> Costs:
        """What it takes to have values in some tiles: a home in each row, tiles in each column."""
        total = Costs.none((len(self.candidates), len(tiles)))
        made = traffic.move(self.cores, tiles, self.itemsize, self.machine, self.at_caller)
        total.add(Costs.of(made), ~traffic.within(tiles, self.layouts))
        return total

    def writing(self, written: Tiles, held: NDArray[np.bool_]) -> Costs:
        """What it takes to bring homes up to date with what tiles have.

        Args:
            written: the tiles, one of each column.
            held: whether they lie in a home, which is written in place then.
        """
        total = Costs.none(held.shape)
        for part in self.fresh:
            wanted = np.broadcast_to((part.holders > 0)[:, None], held.shape)
            made = traffic.move(written, part, self.itemsize, self.machine)
            total.add(Costs.of(made).turned(), wanted & ~held)
            total.add(Costs.in_place(made).turned(), wanted & held)
        return total

    def copying(self, is_written: bool) -> Costs:
        """What it takes to work on a copy once: a home of the copy in each row, of all in columns.

        The copy is made in the tiles of its home, and given back if it is written. Where both are
        one, there is no copy.
        """
        tiles, own = self.cores, np.arange(len(self.candidates))
        held = traffic.within(tiles, self.layouts)
        filled = self.writing(tiles, held)[own, own]
        total = Costs.none(held.shape)
        total.add(self.reading(tiles).turned(), np.True_)
        if is_written:
            total.add(self.writing(tiles, held).turned(), np.True_)
        largest = tiles.largest.astype(np.float64)
        each = self.machine.computing(
            largest, 2 * largest * self.itemsize, Kind.LOOP, np.maximum(tiles.holders, 1)
        )
        total.seconds += (filled.seconds + (1 + is_written) * each)[:, None]
        total.nbytes += filled.nbytes[:, None]
        total.traffic += filled.traffic[:, None]
        none = Costs.none(held.shape)
        none.add(total, own[:, None] != own)
        return none
