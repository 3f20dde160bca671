"""The meaning of a plan: it is executed for all ranks in one process, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import PlanError, refuses_as
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.layouts.reductions import find_reduction
from distspmd.plans.plan import Plan, Step

Tile = NDArray[np.generic]


@refuses_as(PlanError)
def simulate(plan: Plan, tiles: Sequence[Tile], before: Sequence[Tile] | None = None) -> list[Tile]:
    """Run a plan on the source tiles of all ranks; the target tiles of all ranks.

    Args:
        plan: what to run.
        tiles: source tile of each rank, of the shape of its box.
        before: what the target tiles hold at the start (zeros unless given; a partial target holds
            the neutral element).

    Raises:
        PlanError: a tile is missing or has another shape than its box.
    """
    move = plan.redistribution
    ranks = max(layout.ranks for layout in plan.buffers)
    buffers = [
        [np.zeros(intervals.shape(layout.box(rank)), move.dtype) for rank in range(ranks)]
        for layout in plan.buffers
    ]
    for given, layout, held in (
        (tiles, move.source, buffers[0]),
        (before, move.target, buffers[1]),
    ):
        for rank, tile in enumerate(given if given is not None else ()):
            if tile.shape != intervals.shape(layout.box(rank)):
                raise PlanError(
                    f"rank {rank} gives a tile of shape {tile.shape}, but holds "
                    f"[{intervals.box_text(layout.box(rank))}] in {layout}."
                )
            held[rank] = np.array(tile, move.dtype)
    if move.target.partial:
        neutral = find_reduction(move.target.partial.reduction).identity(move.dtype)
        for tile in buffers[1]:
            tile[...] = neutral
    if move.in_place:
        for rank, (mine, wanted) in enumerate(
            zip(move.source.boxes, move.target.boxes, strict=False)
        ):
            common = intervals.intersect(mine, wanted)
            if not intervals.is_empty(common):
                kept = _view(buffers[0][rank], move.source, rank, common)
                _view(buffers[1][rank], move.target, rank, common)[...] = kept
    for step in plan.steps:
        _run(step, plan, buffers)
    return buffers[1]


def _run(step: Step, plan: Plan, buffers: list[list[Tile]]) -> None:
    source, target = plan.buffers[step.source], plan.buffers[step.target]
    payloads = [
        _view(buffers[step.source][m.sender], source, m.sender, m.box).copy() for m in step.messages
    ]
    reached = [np.full(tile.shape, step.accumulate) for tile in buffers[step.target]]
    for message, payload in zip(step.messages, payloads, strict=True):
        into = _view(buffers[step.target][message.receiver], target, message.receiver, message.box)
        if step.reduction is None:
            into[...] = payload
            continue
        seen = _view(reached[message.receiver], target, message.receiver, message.box)
        combined = find_reduction(step.reduction).ufunc(into, payload).astype(payload.dtype)
        into[...] = np.where(seen, combined, payload)
        seen[...] = True


def _view(tile: Tile, layout: Layout, rank: int, box: intervals.Box) -> Tile:
    origin = [lo for lo, _ in layout.box(rank)]
    view: Tile = tile[intervals.slices(intervals.shift(box, origin))]
    return view


def tiles_of(layout: Layout, array: Tile) -> list[Tile]:
    """Tile of each rank, cut out of a whole array (the oracle: plain slicing)."""
    return [array[intervals.slices(layout.box(rank))].copy() for rank in range(layout.ranks)]
