"""Homes: the one layout in which each container lives between its uses.

A use that finds its box within the tile of the home works there in place; any other use gets a copy
in its own layout, and a redistribution. Because a home does not depend on the path that control
flow took, loops and branches need no special case. The home is the candidate of least traffic: the
layouts of the writers, of the readers, and rank 0 for what the caller holds there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from distspmd import intervals
from distspmd.constraints import Use
from distspmd.intervals import Box
from distspmd.layout import Layout
from distspmd.redistribution import Redistribution


@dataclass(frozen=True, eq=False)
class Home:
    """Where a container lives, and how the caller's array gets there and back.

    Attributes:
        data: the container.
        layout: its layout between uses.
        uses: all uses, in program order.
        at_root: whether the caller's array on rank 0 is the home itself.
        load: whether the caller's values must come to the home before the program starts.
        store: whether the values of the home must go to the caller when it ends.
    """

    data: str
    layout: Layout
    uses: tuple[Use, ...]
    at_root: bool
    load: bool
    store: bool

    @property
    def is_written(self) -> bool:
        """Whether any space writes the container."""
        return any(use.is_write for use in self.uses)


def choose(
    data: str, dtype: np.dtype, uses: Sequence[Use], *, argument: bool, result: bool
) -> Home:
    """The home of least traffic.

    Args:
        data: the container.
        dtype: of its elements.
        uses: its uses in program order, at least one.
        argument: whether the caller passes or receives it (else it is a transient).
        result: whether it is made for the caller, so that it holds nothing before.
    """
    extents = uses[0].layout.extents
    root = Layout.root(extents)
    best: tuple[int, Home] | None = None
    for layout in _candidates(uses, root if argument else None):
        at_root = argument and layout.same_tiles(root)
        outside = argument and not at_root
        home = Home(
            data,
            layout,
            tuple(uses),
            at_root,
            load=outside and not result and _needs_load(layout, uses),
            store=outside and any(use.is_write for use in uses),
        )
        traffic = sum(
            times * sum(map(move.bound.received, range(move.ranks)))
            for times, move in moves(home, dtype)
        )
        if best is None or traffic < best[0]:
            best = traffic, home
    assert best is not None
    return best[1]


def in_place(use: Use, home: Layout) -> bool:
    """Whether a use can work on the tiles of the home, without a copy.

    Each rank must hold its box there; and of what a rank writes, each other rank that holds it must
    write it too, or its replica would be stale.
    """
    if use.layout.partial:
        return False
    if not all(intervals.contains(home.box(rank), box) for rank, box in enumerate(use.tiles.boxes)):
        return False
    if not use.is_write:
        return True
    written = use.layout.holders()
    held = home.holders()
    return all(
        intervals.contains(use.layout.box(holder), common)
        for box in written
        for other, ranks in held.items()
        for common in (intervals.intersect(box, other),)
        if not intervals.is_empty(common)
        for holder in ranks
    )


def _candidates(uses: Sequence[Use], root: Layout | None) -> Iterator[Layout]:
    """Writers' layouts, then readers', then rank 0; each that covers all uses, once."""
    ordered = [u for u in uses if u.is_write and not u.layout.partial]
    ordered += [u for u in uses if not u.is_write]
    ordered += [u for u in uses if u.layout.partial]
    needed = list(dict.fromkeys(box for use in uses for box in use.tiles.holders()))
    seen: set[tuple[Box, ...]] = set()
    for use in ordered:
        plain = Layout.of_boxes(use.layout.mesh, use.layout.extents, use.layout.boxes)
        for layout in (plain, _stretched(plain)):
            held = list(layout.holders())
            covers = not any(intervals.subtract_all(box, held) for box in needed)
            if covers and layout.boxes not in seen:
                seen.add(layout.boxes)
                yield layout
    if root is not None:
        yield root
    elif not seen:
        mesh = uses[0].layout.mesh
        whole = intervals.whole(uses[0].layout.extents)
        yield Layout.of_boxes(mesh, uses[0].layout.extents, [whole] * mesh.size)


def _stretched(layout: Layout) -> Layout:
    """The layout with its outermost tiles stretched to the edges of the array."""
    held = [box for box in layout.boxes if not intervals.is_empty(box)]
    if not held:
        return layout
    edges = [
        (min(box[d][0] for box in held), max(box[d][1] for box in held))
        for d in range(len(layout.extents))
    ]
    boxes = tuple(
        box
        if intervals.is_empty(box)
        else tuple(
            (0 if lo == first else lo, extent if hi == last else hi)
            for (lo, hi), (first, last), extent in zip(box, edges, layout.extents, strict=True)
        )
        for box in layout.boxes
    )
    return Layout.of_boxes(layout.mesh, layout.extents, boxes)


def _needs_load(home: Layout, uses: Sequence[Use]) -> bool:
    """Whether anything that the home held at the start can be seen later."""
    written: list[Box] = []
    for use in uses:
        if use.reads_before or use.accumulates:
            return True
        if use.exact and use.certain:
            written.extend(use.layout.holders())
            if not any(intervals.subtract_all(box, written) for box in home.holders()):
                return False
    return True


def moves(home: Home, dtype: np.dtype) -> Iterator[tuple[int, Redistribution]]:
    """What the home makes necessary, and how often; reads of what nobody writes are shared."""
    root = Layout.root(home.layout.extents)
    if home.load:
        yield 1, Redistribution(root, home.layout, dtype)
    if home.store:
        yield 1, Redistribution(home.layout, root, dtype)
    shared: set[tuple[Box, ...]] = set()
    for use in home.uses:
        if in_place(use, home.layout):
            continue
        if not home.is_written:
            if use.layout.boxes in shared:
                continue
            shared.add(use.layout.boxes)
        times = use.times if home.is_written else 1
        yield from ((times, move) for move in use_moves(use, home.layout, dtype))


def use_moves(use: Use, home: Layout, dtype: np.dtype) -> Iterator[Redistribution]:
    """Redistributions around a use that is not in place: before it, after it, or both."""
    if use.reads_before:
        yield Redistribution(home, use.tiles, dtype)
    if use.is_write:
        yield Redistribution(
            use.layout, home, dtype, accumulate=use.accumulates and use.layout.partial is not None
        )
