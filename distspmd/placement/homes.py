"""Homes: the one layout in which each container lives between its uses.

A use whose box lies within the tile of the home works there in place; any other use gets a copy in
its own layout, through a redistribution. Tiles of a home may overlap. Each write is then followed
by an exchange, within the home, of the elements that other ranks hold as well (the halo of a
stencil), and only those parts of a tile are kept up to date that some use needs. A home does not
depend on the path that control flow took, so loops and branches need no special case.

The home is the candidate of least traffic among the layouts of the writers, of the readers, and of
the caller. If ranks write operands of a reduction, each may have a part of the value, where fewer
bytes move so; or the home may be partial: each rank adds to its own tile, and the operands are
reduced when the value is read. A value that enters such a home goes
to one of the ranks, and the others get the neutral element.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from distspmd.analysis.uses import Read, Update, Use, Write
from distspmd.errors import ScheduleError
from distspmd.layouts import intervals, relations
from distspmd.layouts.intervals import Numbers
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.layouts.relations import covers, leaves_stale, lies_within, shared_out, stretched
from distspmd.placement.live_halos import is_read_behind
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.machine import Machine
from distspmd.plans.redistribution import Redistribution


@dataclass(frozen=True, eq=False)
class Home:
    """Where a container lives, and how the caller's array gets there and back.

    Attributes:
        data: the container.
        layout: its layout between uses: the box of each rank's tile.
        core: what surely is up to date of each tile; values leave the home from there.
        fresh: what a write brings up to date, together; the whole tiles, if it is one layout.
        uses: all uses, in program order.
        caller: the layout in which the caller holds it; None for what it never sees.
        at_caller: whether the caller's array is the home itself.
        load: whether the caller's values must come to the home before the program starts.
        store: whether the values of the home must go to the caller when it ends.
        traffic: bytes that ranks receive because of the home, and those that they copy, by weight.
        over: the layouts that it was chosen over, each with its traffic.
        is_gathered: whether copies of it are freed after use, and made again.
    """

    data: str
    layout: Layout
    core: Layout
    fresh: tuple[Layout, ...]
    uses: tuple[Use, ...]
    caller: Layout | None
    at_caller: bool
    load: bool
    store: bool
    traffic: float = 0.0
    over: tuple[tuple[Layout, float], ...] = ()
    is_gathered: bool = False

    @property
    def entrance(self) -> Layout:
        """Where values come into the home: all of it, or of a partial one the first operands."""
        return _first_operands(self.layout) if self.layout.partial else self.layout

    def needs_neutral(self, use: Use | None) -> bool:
        """Whether the home is filled with the neutral element before a value comes into it.

        Args:
            use: which writes the value; None for the caller.
        """
        return self.layout.partial is not None and not (use and use.layout.partial)

    @property
    def is_written(self) -> bool:
        """Whether any space writes the container."""
        return _is_written(self.uses)

    @functools.cached_property
    def shared(self) -> dict[bytes, Layout]:
        """The first of the layouts of uses that work on the same tiles, on whatever grids.

        A copy of what nobody writes is made once for all of them.
        """
        found: dict[bytes, Layout] = {}
        for use in self.uses:
            found.setdefault(use.tiles.bounds.tobytes(), use.tiles)
        return found


def question(
    dtype: np.dtype[Any],
    uses: Sequence[Use],
    caller: Layout | None,
    distributed: bool = False,
    result: bool = False,
    parted: bool = False,
    given: Layout | None = None,
) -> tuple[Any, ...]:
    """All that decides :func:`choose`: containers of which it is the same have the same home."""
    return dtype, caller, distributed, result, parted, given, *map(_asked_of, uses)


def _asked_of(use: Use) -> tuple[Any, ...]:
    """What a use asks of a home."""
    common = type(use), use.layout, use.tiles, use.certain, use.times
    if isinstance(use, Read):
        asked = use.inspection is not None
        return *common, use.parts, use.approximate, bool(use.moved), use.repeats, asked
    return *common, use.exact, use.accumulates, use.needs


def _is_written(uses: Sequence[Use]) -> bool:
    return any(not isinstance(use, Read) for use in uses)


def _is_asked_for(use: Use, written: bool) -> bool:
    return isinstance(use, Read) and use.is_asked_for(written)


def _writes_of_values(uses: Sequence[Use]) -> list[Write | Update]:
    return [use for use in uses if not isinstance(use, Read) and not use.layout.partial]


def _reads_of_operands(uses: Sequence[Use]) -> list[Read]:
    return [use for use in uses if isinstance(use, Read) and use.layout.partial]


def choose(
    data: str,
    dtype: np.dtype[Any],
    uses: Sequence[Use],
    *,
    caller: Layout | None,
    distributed: bool = False,
    result: bool = False,
    parted: bool = False,
    given: Layout | None = None,
) -> Home:
    """The home of least traffic, or one that a schedule gives.

    Args:
        data: the container.
        dtype: of its elements.
        uses: its uses in program order, at least one.
        caller: the layout in which the caller holds it; None for a transient.
        distributed: whether the caller holds it in whatever layout its home has.
        result: whether it is made for the caller, so that it holds nothing before.
        parted: whether no two ranks shall hold the same element.
        given: the layout that a schedule gives; operands of a reduction may stay apart instead.

    Raises:
        ScheduleError: the layout that is given lacks what some use needs.
    """
    weighed: list[tuple[float, Home]] = []
    apart: list[tuple[float, Home]] = []
    partial = None if distributed else operand_layout(uses)
    if given is None:
        possible = list(_candidates(uses, caller, distributed))
        if all(holds_much(layout.volumes * dtype.itemsize) for layout in possible):
            possible.append(_blocks(uses))
    else:
        possible = [_checked(given, data, uses, distributed)]
    pieces = [] if given else [*_scattered(uses, distributed, possible)]
    if parted:
        possible = list(dict.fromkeys(shared_out(layout) for layout in possible))
    for layout in (*possible, *([partial] if partial else []), *pieces):
        if not all(works_in_place(use, layout) for use in _reads_of_operands(uses)):
            continue
        at_caller = caller is not None and layout.same_tiles(caller) and _has_one_stride(layout)
        whole_tiles = at_caller or layout.partial
        core, fresh = (layout, (layout,)) if whole_tiles else _kept(layout, uses, dtype)
        held = core if distributed else caller
        at_caller = at_caller or (distributed and core is layout and _has_one_stride(layout))
        outside = held is not None and not at_caller
        home = Home(
            data,
            layout,
            core,
            fresh,
            tuple(uses),
            held,
            at_caller,
            load=outside and not result and needs_load(layout, uses),
            store=outside and _is_written(uses),
        )
        (apart if layout in pieces else weighed).append((_traffic(home, dtype), home))
    traffic, chosen = min(weighed, key=lambda pair: pair[0])  # of equals the first
    if holds_much(chosen.layout.volumes * dtype.itemsize):
        even = [p for p in weighed if not holds_much(p[1].layout.volumes * dtype.itemsize)]
        cost, other = min(even, key=lambda pair: pair[0], default=(math.inf, chosen))
        if cost <= HEURISTICS.even_home * traffic:
            traffic, chosen = cost, other
    if apart:  # which begins with one step more
        cost, other = min(apart, key=lambda pair: pair[0])
        if _received(other, dtype) < _received(chosen, dtype) and cost < traffic:
            traffic, chosen = cost, other
    over = tuple((home.layout, cost) for cost, home in weighed if home is not chosen)
    return replace(chosen, traffic=traffic, over=over)


def _has_one_stride(layout: Layout) -> bool:
    """Whether all tiles, stored without gaps, have the same strides: so one kernel runs on them."""
    sides = layout.bounds[:, 1:, 1] - layout.bounds[:, 1:, 0]
    return len(np.unique(sides[layout.volumes > 0], axis=0)) <= 1


def _traffic(home: Home, dtype: np.dtype[Any]) -> float:
    """Bytes that ranks receive because of a home; one that a rank copies counts by its cost."""
    found = 0.0
    for times, move in moves(home, dtype):
        copied = 0 if move.in_place else int(relations.kept(move.source, move.target).sum())
        found += times * (move.bound.nbytes + copied * dtype.itemsize * COPY)
    return found


def _received(home: Home, dtype: np.dtype[Any]) -> float:
    """Bytes that ranks receive because of a home."""
    return sum(times * move.bound.nbytes for times, move in moves(home, dtype))


def holds_much(held: Numbers) -> tuple[int, float] | None:
    """The rank that holds much more than the average, and how many times as much; else None.

    Args:
        held: bytes of each rank; those that hold nothing do not count.
    """
    if not held.any():
        return None
    mean, rank = float(held[held > 0].mean()), int(held.argmax())
    is_much = held[rank] > _EVEN * mean and held[rank] - mean > _LITTLE
    return (rank, float(held[rank] / mean)) if is_much else None


_EVEN = 1.5
"""Times the average that a rank may hold."""
_LITTLE = 1 << 16
"""Bytes that a rank may hold more than others in any case."""
COPY = Machine().copy / Machine().beta
"""What a byte costs that is copied, against one that is received; the same on every machine, so
that homes are."""


def _kept(
    layout: Layout, uses: Sequence[Use], dtype: np.dtype[Any]
) -> tuple[Layout, tuple[Layout, ...]]:
    """Core and fresh parts of a home: less than whole tiles where that spares bytes.

    A stencil of five points reads no corners of its halo, so they need no exchange.
    """
    inside = [use for use in uses if lies_within(use.tiles, layout)]
    writes = [use.layout for use in _writes_of_values(inside)]
    held = layout.tiles.bounds
    wider = (stretched(write) for write in writes)
    cores = (c for c in (*writes, *wider) if lies_within(c, layout) and covers(c, held))
    core = next(cores, None)
    if core is None or core.same_tiles(layout):
        return layout, (layout,)
    needs = [need for use in inside if use.needs_values for need in use.needs]
    fresh = _outermost([core, *needs])
    parts = sum(_filling(write, part, dtype) for write in writes for part in fresh)
    whole = sum(_filling(write, layout, dtype) for write in writes)
    return (core, fresh) if parts < whole else (core, (layout,))


def _outermost(layouts: Sequence[Layout]) -> tuple[Layout, ...]:
    """The layouts whose tiles no other one has within its own."""
    found: list[Layout] = []
    for layout in layouts:
        if any(lies_within(layout, other) for other in found):
            continue
        found = [other for other in found if not lies_within(other, layout)]
        found.append(layout)
    return tuple(found)


def _filling(write: Layout, part: Layout, dtype: np.dtype[Any]) -> int:
    """Bytes that ranks receive to fill a part of their tiles after a write."""
    return Redistribution(write, part, dtype, in_place=True).bound.nbytes


def works_in_place(use: Use, home: Layout) -> bool:
    """Whether a use can work on the tiles of the home; a write may leave replicas of it stale."""
    if home.partial or use.layout.partial:
        return same_operands(use.layout, home)
    return lies_within(use.tiles, home)


def _candidates(uses: Sequence[Use], caller: Layout | None, whole: bool) -> Iterator[Layout]:
    """Writers' layouts, then readers', what all on one mesh use, then the caller's.

    Each covers all uses, and the whole array if that is wanted, and comes once. Of the layouts of
    single uses they are those that are used most.
    """
    written = _is_written(uses)
    ordered: list[Use] = [*_writes_of_values(uses)]
    ordered += [u for u in uses if isinstance(u, Read) and not u.is_asked_for(written)]
    ordered += [u for u in uses if u.layout.partial]
    extents, boxes = uses[0].layout.extents, _needed(uses, whole)
    weights: dict[Layout, float] = {}
    for use in ordered:
        layout = Layout.of_bounds(use.layout.mesh, extents, use.layout.bounds)
        weights[layout] = weights.get(layout, 0.0) + use.times * int(layout.volumes.max())
    seen: set[bytes] = set()
    plain = (*most_used(weights), *_hulls(uses))
    for layout in (c for own in plain for c in (own, stretched(own))):
        key = layout.bounds.tobytes()
        if key not in seen and covers(layout, boxes):
            seen.add(key)
            yield layout
    if caller is not None:
        yield caller
    elif not seen:
        mesh = uses[0].layout.mesh
        yield Layout.of_boxes(mesh, extents, [intervals.whole(extents)] * mesh.size)


MOST_USED = 32
"""Layouts of single uses in which a container may live, at most.

An unrolled loop can use a part of an array in each iteration that differs from all others. To weigh
each of them for all uses would take a time that grows with the square of the iterations.
"""
_L = TypeVar("_L")


def most_used(weights: Mapping[_L, float]) -> list[_L]:
    """The layouts that are used most, in the order in which they are given.

    Args:
        weights: of each layout, the elements of a tile of it that are used in a run.
    """
    heaviest = sorted(weights, key=lambda layout: -weights[layout])[:MOST_USED]
    kept = {*heaviest}
    return [layout for layout in weights if layout in kept]


def _blocks(uses: Sequence[Use]) -> Layout:
    """Blocks along the longest dimension, on all ranks that any use is on."""
    layout = max((use.layout for use in uses), key=lambda layout: layout.ranks)
    whole = np.array([intervals.whole(layout.extents)] * layout.ranks, np.int64)
    everywhere = whole.reshape(layout.ranks, -1, 2)
    return relations.shared_out(Layout.of_bounds(layout.mesh, layout.extents, everywhere))


def _scattered(uses: Sequence[Use], whole: bool, others: Sequence[Layout]) -> Iterator[Layout]:
    """Layouts into which operands that uses write are reduced in parts, one on each rank.

    None where a read is of what data or loops decide, of which ranks would ask each other then.
    """
    if any(_is_asked_for(use, True) for use in uses):
        return
    boxes, known = _needed(uses, whole), {layout.bounds.tobytes() for layout in others}
    for own in (layout for use in uses for layout in relations.scattered(use.layout)):
        for layout in (own, stretched(own)):
            key = layout.bounds.tobytes()
            if key not in known and covers(layout, boxes):
                known.add(key)
                yield layout


def _needed(uses: Sequence[Use], whole: bool) -> Numbers:
    """The boxes that a home must hold: those of all uses, and of the whole array if wanted."""
    found = [layout.tiles.bounds for layout in dict.fromkeys(use.tiles for use in uses)]
    if whole:
        found.append(np.array([intervals.whole(uses[0].layout.extents)], np.int64))
    return np.concatenate(found)


def _checked(given: Layout, data: str, uses: Sequence[Use], whole: bool) -> Layout:
    """The layout that a schedule gives, if an array can live in it.

    Raises:
        ScheduleError: it cannot.
    """
    extents = uses[0].layout.extents
    said = f"the schedule lets {data!r} live in {given}, but "
    leave = "Leave its home out, and one is chosen."
    if given.extents != extents:
        raise ScheduleError(f"{said}its extents are {extents}. {leave}")
    if given.partial or given.is_block_cyclic:
        raise ScheduleError(f"{said}tiles of a home are boxes of values. {leave}")
    if not covers(given, _needed(uses, whole)):
        where = uses[0].space.where
        raise ScheduleError(f"{where}: {said}its tiles lack elements that are used. {leave}")
    return given


def operand_layout(uses: Sequence[Use]) -> Layout | None:
    """The layout in which all operands are written, if each other write replaces all of it."""
    operands = [use for use in uses if isinstance(use, Write) and use.layout.partial]
    values = _writes_of_values(uses)
    if not operands or any(_is_asked_for(use, True) for use in uses):
        return None
    layout = operands[0].layout
    held = layout.tiles.bounds
    possible = (
        all(same_operands(use.layout, layout) for use in operands)
        and all(covers(layout, use.tiles.tiles.bounds) for use in uses)
        and all(use.exact and covers(use.layout, held) for use in values)
        and relations.are_tiles_disjoint(layout)
    )
    return layout if possible else None


def same_operands(layout: Layout, other: Layout) -> bool:
    """Whether each rank holds the same box of the same operand in both, to be reduced alike."""
    reductions = [of.partial and of.partial.reduction for of in (layout, other)]
    return (
        None not in reductions
        and reductions[0] == reductions[1]
        and layout.ranks == other.ranks
        and layout.same_boxes(other)
        and bool((layout.operands == other.operands).all())
    )


def _first_operands(layout: Layout) -> Layout:
    """The layout with each tile where the first of its operands lies, as a value."""
    nothing = intervals.empty(len(layout.extents))
    first = {box: layout.operand(ranks[0]) for box, ranks in layout.holders().items()}
    boxes = [
        box if first.get(box) == layout.operand(rank) else nothing
        for rank, box in enumerate(layout.boxes)
    ]
    return Layout.of_boxes(layout.mesh, layout.extents, boxes)


def _hulls(uses: Sequence[Use]) -> Iterator[Layout]:
    """On each mesh, what all uses of a rank lie in: the tile and all halos of it.

    First without what lies far off: reads of that are copies, which are small.

    Once without reads that are asked for, and once with those of them whose boxes are known: what
    a loop chooses of a tile may lie there before the loop begins.
    """
    written = _is_written(uses)
    values = [use for use in uses if not use.layout.partial]
    values.sort(key=lambda use: isinstance(use, Read))
    yield from _hulls_of(use for use in values if not _is_asked_for(use, written))
    if any(_is_asked_for(use, written) for use in values):
        yield from _hulls_of(u for u in values if not (isinstance(u, Read) and u.approximate))


def _hulls_of(uses: Iterable[Use]) -> Iterator[Layout]:
    by_mesh: dict[Mesh, list[Layout]] = {}
    for use in uses:
        own = by_mesh.setdefault(use.layout.mesh, [])
        own += [use.layout, use.tiles] if isinstance(use, Update) else [use.tiles]
    for mesh, layouts in by_mesh.items():
        if len(layouts) > 1:
            extents, boxes = layouts[0].extents, [layout.bounds for layout in layouts]
            yield Layout.of_bounds(mesh, extents, relations.near_hull(boxes))
            yield Layout.of_bounds(mesh, extents, functools.reduce(relations.hull, boxes))


def needs_load(home: Layout, uses: Sequence[Use]) -> bool:
    """Whether anything that the home held at the start can be seen later."""
    held = home.tiles.bounds
    written = np.zeros((0, len(home.extents), 2), np.int64)
    for use in uses:
        if isinstance(use, Read) or use.needs_values or use.accumulates:
            return True
        if use.exact and use.certain:
            written = np.concatenate([written, use.layout.tiles.bounds])
            if (relations.covered(held, written) == relations.volumes(held)).all():
                return False
    return True


def moves(home: Home, dtype: np.dtype[Any]) -> Iterator[tuple[float, Redistribution]]:
    """What the home makes necessary, and how often; reads of what nobody writes are shared.

    Of a read that is asked for it is all that could be fetched: of what data decide counted less
    often, because it is not known how much that is; of what loops choose once for each time that
    they run through.
    """
    yield from ((1, move) for move in (load(home, dtype), store(home, dtype)) if move)
    shared: set[bytes] = set()
    for use in home.uses:
        asked = use if isinstance(use, Read) and _is_asked_for(use, home.is_written) else None
        if not asked and not home.is_written and not works_in_place(use, home.layout):
            if (key := use.layout.bounds.tobytes()) in shared:
                continue
            shared.add(key)
        times: float = use.times if home.is_written else 1
        if asked:
            times = times * HEURISTICS.inspected_share if asked.approximate else asked.repeats
        before = plan_fetch(use, home, dtype)
        yield from ((times, move) for move in ([before] if before else []))
        yield from ((times, move) for move in stores(use, home, dtype))


def load(home: Home, dtype: np.dtype[Any]) -> Redistribution | None:
    """What brings the caller's values to the home before the program starts."""
    if not home.load or home.caller is None:
        return None
    return Redistribution(home.caller, home.entrance, dtype, at_caller=True)


def store(home: Home, dtype: np.dtype[Any]) -> Redistribution | None:
    """What brings the values of the home to the caller when the program ends."""
    if not home.store or home.caller is None:
        return None
    return Redistribution(home.core, home.caller, dtype)


def plan_fetch(use: Use, home: Home, dtype: np.dtype[Any]) -> Redistribution | None:
    """What brings a use that is not in place the values that it needs."""
    if works_in_place(use, home.layout) or not use.needs_values:
        return None
    tiles = use.tiles if home.is_written else home.shared[use.tiles.bounds.tobytes()]
    return Redistribution(home.core, tiles, dtype, at_caller=home.at_caller)


def stores(use: Use, home: Home, dtype: np.dtype[Any]) -> list[Redistribution]:
    """What brings the home up to date after a use: from its copy, or within the home itself."""
    if isinstance(use, Read) or (home.layout.partial and use.layout.partial):
        return []
    if home.layout.partial:
        return [Redistribution(use.layout, home.entrance, dtype)]
    if use.layout.partial:
        return [Redistribution(use.layout, home.layout, dtype, accumulate=use.accumulates)]
    if not works_in_place(use, home.layout):
        return [Redistribution(use.layout, part, dtype) for part in home.fresh]
    if not leaves_stale(use.layout, home.layout):
        return []
    in_tiles = home.caller is home.core  # which the caller holds, and whole copies beside them
    return [
        Redistribution(use.layout, part, dtype, in_place=True)
        for part in home.fresh
        if _filling(use.layout, part, dtype)
        and ((in_tiles and part is home.layout) or is_read_behind(use, part, home.core, home.uses))
    ]
