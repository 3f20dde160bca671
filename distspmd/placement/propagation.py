"""Tilings for the iteration spaces that a schedule does not name, from those that it names.

A space follows its neighbours. If it indexes a dimension that a tiled space has split, it takes the
same mesh and splits that parameter along the same axes; axes that split nothing replicate it. A
reduction follows the spaces that produce its input before those that read its result. A space that
only makes arguments and has nothing to split runs on rank 0, where the arguments live. What all
ranks have of the caller is no reason to split: who reads only that follows those who read it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from distspmd.analysis.constraints import Touched, touched_by, uses
from distspmd.analysis.control_values import runs_once
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.uses import Read, Use
from distspmd.errors import UnsupportedProgram
from distspmd.layouts import intervals, relations
from distspmd.layouts.intervals import Box
from distspmd.layouts.mesh import Mesh
from distspmd.layouts.relations import are_tiles_disjoint, stretched
from distspmd.lowering import Choice, Reason


@dataclass(frozen=True, eq=False)
class Tiled:
    """A space with its tiling, the constraints that follow, and what gave it the tiling."""

    tiling: Tiling
    uses: list[Use]
    chosen_by: Choice


Splits = tuple[tuple[str, ...], ...]
Rating = tuple[int, ...]
Offer = tuple[Rating, IterationSpace, Mesh, Splits, Choice]


def propagate(
    spaces: Sequence[IterationSpace],
    tilings: Mapping[str, Tiling],
    replicated: Collection[str] = (),
    as_far: Collection[str] = (),
) -> dict[str, Tiled]:
    """Tile all spaces: as given, else after a neighbour, else on rank 0.

    Args:
        spaces: in program order.
        tilings: of the spaces that the schedule names.
        replicated: containers that the caller holds whole on every rank.
        as_far: spaces that are split as far as they can be: no user named them.

    Returns:
        Each space by name, tiled, in program order.
    """
    known = {space.name: touched_by(space) for space in spaces}
    done: dict[str, Tiled] = {}
    for space in sorted(spaces, key=lambda space: space.is_placed):  # which lie beside others
        if space.name in tilings:
            tiling, own = tilings[space.name], known[space.name]
            if space.is_placed and any(tiling.splits):
                tiling = _beside(space, tiling, uses(space, _alone(space), own), done.values())
            why = Choice(Reason.ONCE if runs_once(space.node) else Reason.SCHEDULE)
            as_asked = _as_far_as_possible if space.name in as_far else _exactly
            done[space.name] = as_asked(space, own, tiling, why)
    waiting = {
        space.name: (space, uses(space, _alone(space), known[space.name]))
        for space in spaces
        if space.name not in done
    }
    neighbours = _Neighbours(spaces, done, replicated)
    while waiting:
        offer = neighbours.best_offer(waiting.values())
        if offer:
            _, space, mesh, splits, why = offer
            tiling = Tiling.of(space.ranges, mesh, splits)
            if why.neighbour and space.is_placed:
                near = [done[why.neighbour], *done.values()]
                tiling = _beside(space, tiling, waiting[space.name][1], near)
            made = _tiled(space, known[space.name], tiling, why)
        else:
            space, _ = next(iter(waiting.values()))
            why = Choice(Reason.NO_NEIGHBOUR)
            made = _tiled(space, known[space.name], _alone(space), why)
        done[space.name] = made
        neighbours.add(space.name, made)
        del waiting[space.name]
    return {space.name: done[space.name] for space in spaces}


class _Neighbours:
    """Uses of the tiled spaces, and what they offer to the others."""

    def __init__(
        self,
        spaces: Sequence[IterationSpace],
        done: Mapping[str, Tiled],
        replicated: Collection[str],
    ) -> None:
        self.uses: dict[str, list[tuple[str, Tiled, Use]]] = {}
        """By container, in the order in which the spaces were tiled."""
        self.read: set[str] = set()
        self._replicated = replicated
        self._places = {space.name: place for place, space in enumerate(spaces)}
        self._known: dict[str, _Known] = {}
        self._touching: dict[str, set[str]] = {}
        """Waiting spaces that touch each container."""
        self._offers: dict[str, Offer | None] = {}
        """The best offer to each waiting space; none where a neighbour of it is new."""
        for name, tiled in done.items():
            self.add(name, tiled)

    def add(self, name: str, tiled: Tiled) -> None:
        """One more space is tiled."""
        for use in tiled.uses:
            self.uses.setdefault(use.data, []).append((name, tiled, use))
            if isinstance(use, Read):
                self.read.add(use.data)
            for waiting in self._touching.get(use.data, ()):
                self._offers.pop(waiting, None)

    def is_before(self, name: str, space: IterationSpace) -> bool:
        """Whether a space stands before another one in the program."""
        return self._places[name] < self._places[space.name]

    def best_offer(self, waiting: Iterable[tuple[IterationSpace, Sequence[Use]]]) -> Offer | None:
        """The first offer of most shared axes to any of the spaces."""
        offers = []
        for space, own in waiting:
            if space.name not in self._offers:
                self._offers[space.name] = self._best_of(space, own)
                for use in own:
                    self._touching.setdefault(use.data, set()).add(space.name)
            offers.append(self._offers[space.name])
        return max((offer for offer in offers if offer), key=_rating, default=None)

    def _best_of(self, space: IterationSpace, own: Sequence[Use]) -> Offer | None:
        """The first offer of most shared axes to a space; each neighbour is asked once."""
        counts = [len(self.uses.get(use.data, ())) for use in own]
        known = self._known.setdefault(space.name, _Known([0] * len(own), [{} for _ in own]))
        if known.counts != counts:  # else no neighbour of it is new
            known.ask(space, own, self)
            known.counts, known.final = counts, self._is_final(space, own)
            known.local = self._is_local(space, own)
            known.best = max(_offers(space, own, known), key=_rating, default=None)
        return known.best

    def _is_final(self, space: IterationSpace, own: Sequence[Use]) -> bool:
        """Whether a space makes arguments that no tiled space reads."""
        arrays = space.state.sdfg.arrays
        written = {use.data for use in own if not isinstance(use, Read)}
        return not written & self.read and not any(arrays[name].transient for name in written)

    def _is_local(self, space: IterationSpace, own: Sequence[Use]) -> bool:
        """Whether all ranks have what a space reads, of which it makes an element an iteration."""
        read = {use.data for use in own if isinstance(use, Read)}
        if not read or not read <= set(self._replicated):
            return False
        iterations = math.prod(-(-(r.end - r.begin) // r.step) for r in space.ranges)
        written = [use.layout.box(0) for use in own if not isinstance(use, Read)]
        return int(iterations) <= max(map(intervals.volume, written), default=0)


@dataclass
class _Known:
    """What neighbours suggested to a space."""

    counts: list[int]
    """How many of the neighbours of each use of the space were asked."""
    suggested: list[dict[tuple[Mesh, Splits], str]]
    """By each use what was suggested, and by which space first."""
    made: dict[tuple[Mesh, Splits], set[str]] = field(default_factory=dict)
    """What the space reads that was made before it, by what its makers suggest."""
    final: bool = False
    """Whether the space makes arguments that no tiled space reads."""
    local: bool = False
    """Whether all ranks have all that the space reads, and it makes no sums of it."""
    best: Offer | None = None

    def ask(self, space: IterationSpace, own: Sequence[Use], neighbours: _Neighbours) -> None:
        """Ask neighbours that are new."""
        for use, asked, suggested in zip(own, self.counts, self.suggested, strict=True):
            for name, tiled, neighbour in neighbours.uses.get(use.data, ())[asked:]:
                found = follow(space, use, neighbour, tiled.tiling)
                suggested.setdefault(found, name)
                is_written = not isinstance(neighbour, Read) and isinstance(use, Read)
                if is_written and neighbours.is_before(name, space):
                    self.made.setdefault(found, set()).add(use.data)


def _rating(offer: Offer) -> Rating:
    return offer[0]


def _exactly(space: IterationSpace, known: Touched, tiling: Tiling, why: Choice) -> Tiled:
    """The space with this tiling."""
    return Tiled(tiling, uses(space, tiling, known), why)


def _as_far_as_possible(
    space: IterationSpace, known: Touched, tiling: Tiling, why: Choice
) -> Tiled:
    """The space with this tiling, or without the split of one parameter, or whole on each rank."""
    split = [n for n, axes in enumerate(tiling.splits) if axes]
    for left in (None, *(split if len(split) > 1 else ())):
        splits = tuple(() if n == left else axes for n, axes in enumerate(tiling.splits))
        asked = tiling if left is None else Tiling.of(space.ranges, tiling.mesh, splits)
        with contextlib.suppress(UnsupportedProgram):
            return _exactly(space, known, asked, why)
    return _tiled(space, known, tiling, why)


def _tiled(space: IterationSpace, known: Touched, tiling: Tiling, why: Choice) -> Tiled:
    """The space with this tiling; whole on each rank where it cannot be, for nobody asked."""
    try:
        return _exactly(space, known, tiling, why)
    except UnsupportedProgram:
        if not any(tiling.splits):
            raise
    tiling = Tiling.of(space.ranges, tiling.mesh, _whole(space))
    return _exactly(space, known, tiling, replace(why, whole=True))


def _beside(
    space: IterationSpace, even: Tiling, own: Sequence[Use], neighbours: Iterable[Tiled]
) -> Tiling:
    """Tiles whose borders are those of a neighbour: so who holds an element computes it.

    What a neighbour reads may overlap, as halos do: then no rank alone holds an element.
    """
    wanted = even.mesh, even.splits
    pairs = (
        (use, layout)
        for neighbour in neighbours
        for use in own
        for other in neighbour.uses
        if use.data == other.data and follow(space, use, other, neighbour.tiling) == wanted
        if are_tiles_disjoint(layout := stretched(other.layout))
    )
    all_of_it = tuple((int(extent.begin), int(extent.end)) for extent in space.ranges)
    for use, layout in pairs:
        places = {name: d for d, name in enumerate(use.index) if name is not None}
        boxes = [
            tuple(
                intervals.intersect((whole,), (tile[places[name]],))[0] if name in places else whole
                for name, whole in zip(space.parameters, all_of_it, strict=True)
            )
            for tile in layout.boxes
        ]
        if _share_out(all_of_it, boxes) and _are_replicas(even, boxes):
            return Tiling.of_boxes(even.mesh, even.splits, boxes)
    return even


def _share_out(whole: Box, boxes: Sequence[Box]) -> bool:
    """Whether boxes have each iteration once, but for boxes that are alike: blocks of a diagonal
    are apart, and leave out what is beside it."""
    own = np.array([*dict.fromkeys(boxes)], np.int64)
    held = int(relations.volumes(own).sum())
    return held == intervals.volume(whole) and relations.are_disjoint(own)


def _are_replicas(tiling: Tiling, boxes: Sequence[Box]) -> bool:
    """Whether ranks that differ along axes alone that split nothing have the same box."""
    axes = [axis for each in tiling.splits for axis in each]
    found: dict[tuple[int, ...], Box] = {}
    for rank, box in enumerate(boxes):
        at = tiling.mesh.coordinates(rank)
        if found.setdefault(tuple(at[axis] for axis in axes), box) != box:
            return False
    return True


def _whole(space: IterationSpace) -> Splits:
    return ((),) * len(space.ranges)


def _alone(space: IterationSpace) -> Tiling:
    return Tiling.of(space.ranges, Mesh(), _whole(space))


def _offers(space: IterationSpace, own: Sequence[Use], known: _Known) -> Iterator[Offer]:
    """What the tiled neighbours suggest, with the number of axes that the space could share.

    Of as many, a reduction follows those in which most of what it reads was made: a gradient is
    summed where its batch is, whoever wants the sum. Then those come first with more axes that have
    one part, and that split what the space writes, and not what it reduces; then who reads its
    results, before who writes its operands later.
    """
    reduces = any(_reduced(space, own))
    for use, suggested in zip(own, known.suggested, strict=True):
        for (mesh, splits), name in suggested.items():
            axes = [axis for split in splits for axis in split]
            shared = sum(mesh[axis] > 1 for axis in axes)
            kept = sum(mesh[axis] > 1 for axis in _of_results(space, own, splits))
            lying = len(known.made.get((mesh, splits), ())) if reduces else 0
            if known.local and isinstance(use, Read):  # its readers would wait for the other parts
                yield (0,), space, mesh, splits, Choice(Reason.NEIGHBOUR, name)
            elif known.final and not shared:
                yield (0,), space, Mesh(), _whole(space), Choice(Reason.RESULTS)
            else:
                ready = lying > 0 or not reduces  # others wait until what they read is tiled
                rating = (shared, ready, lying, len(axes), kept, not isinstance(use, Read))
                yield rating, space, mesh, splits, Choice(Reason.NEIGHBOUR, name)


def _of_results(
    space: IterationSpace, own: Sequence[Use], splits: Sequence[tuple[str, ...]]
) -> Iterator[str]:
    """Axes of parameters that index results: along others there would be partial results."""
    reduced = set(_reduced(space, own))
    pairs = zip(space.parameters, splits, strict=True)
    return (axis for parameter, axes in pairs if parameter not in reduced for axis in axes)


def _reduced(space: IterationSpace, own: Sequence[Use]) -> Iterator[str]:
    """Parameters that index no result."""
    kept = {p for use in own if not isinstance(use, Read) for p in use.index}
    return (parameter for parameter in space.parameters if parameter not in kept)


def follow(space: IterationSpace, use: Use, neighbour: Use, tiling: Tiling) -> tuple[Mesh, Splits]:
    """The mesh of a neighbour, and its axes for the parameters that index what it splits.

    An axis splits one parameter: that of a diagonal, ``a[i, i]``, splits two dimensions of ``a``.
    """
    splits: dict[str, tuple[str, ...]] = {}
    for axes, parameter in zip(axes_of(neighbour, tiling), use.index, strict=False):
        taken = {axis for each in splits.values() for axis in each}
        if parameter is not None and axes and parameter not in splits and not taken & {*axes}:
            splits[parameter] = axes
    return neighbour.layout.mesh, tuple(splits.get(name, ()) for name in space.parameters)


def axes_of(use: Use, tiling: Tiling) -> list[tuple[str, ...]]:
    """Axes that split each dimension of a container: those of its parameter, else of its tiles.

    The tiles of a map over a part of an array are no even blocks, and tell no axes.
    """
    by_name = dict(zip(use.space.parameters, tiling.splits, strict=True))
    extents = use.layout.extents
    found = [split.axes for split in use.layout.splits or ()] or [()] * len(extents)
    for d, parameter in enumerate(use.index):
        if parameter is not None:
            found[d] = by_name[parameter]
    return found
