"""Distributed memlets for the engine: plans and requests between storages of tiles."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.layouts.layout import Layout
from distspmd.lowering import Lowering, PlannedMemlet
from distspmd.plans.encoding import Storage
from distspmd.plans.plan import Plan
from distspmd.plans.request_encoding import Fetch
from distspmd.runtime.engine.engine import runnable


def resolve_memlet(
    memlet: PlannedMemlet, lowering: Lowering, rank: int
) -> tuple[str, Plan, tuple[Storage, Storage]]:
    """A memlet as the engine takes it: its name, its plan in bounded rounds, its storages."""
    plan = runnable(memlet.solution.plan)
    return _title(memlet), plan, _storages(memlet, lowering, rank)


def resolve_fetch(memlet: PlannedMemlet, lowering: Lowering, rank: int) -> Fetch:
    """A memlet that is resolved at run time, as the engine takes it."""
    storages = _storages(memlet, lowering, rank)
    ends = tuple(lowering.symbols[name] for name in memlet.foreseen_by or ())
    return Fetch(_title(memlet), memlet.solution.plan, memlet.asked, storages, ends)


def _title(memlet: PlannedMemlet) -> str:
    source = memlet.source or "the program"
    return f"the distributed memlet {memlet.data} ({memlet.layouts}) of {source}"


def _storages(memlet: PlannedMemlet, lowering: Lowering, rank: int) -> tuple[Storage, Storage]:
    extents = memlet.solution.plan.redistribution.source.extents
    held = lowering.argument_layouts.get(memlet.data)
    callers = Storage.of(held.box(rank) if held else intervals.whole(extents))
    return (
        _storage(memlet.source_tiles, rank) if memlet.source_tiles else callers,
        _storage(memlet.target_tiles, rank) if memlet.target_tiles else callers,
    )


def _storage(tiles: Layout, rank: int) -> Storage:
    """The storage of a rank's tile."""
    shape = tiles.storage_shape()
    strides = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
    return Storage(tuple(lo for lo, _ in tiles.box(rank)), strides)


def part_of_tile(storage: NDArray[Any], tiles: Layout, box: Box, rank: int) -> NDArray[Any] | None:
    """The part of a tile's storage that holds a box."""
    if intervals.is_empty(box):
        return None
    origin = [lo for lo, _ in tiles.box(rank)]
    return storage[tuple(slice(lo - at, hi - at) for (lo, hi), at in zip(box, origin, strict=True))]
