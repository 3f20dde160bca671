"""Hypothesis strategies of meshes, layouts and redistributions, and what a redistribution means.

The meaning is plain NumPy: slicing, and the ufunc of the reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from distspmd.analysis.tiling import Tiling
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.layouts.layout import Layout, Partial, Split
from distspmd.layouts.mesh import Mesh
from distspmd.layouts.reductions import REDUCTIONS, find_reduction
from distspmd.plans.encoding import DTYPES
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.simulator import Tile
from distspmd.schedule import Grid


@st.composite
def meshes(draw: st.DrawFn, most: int = 8) -> Mesh:
    sizes: dict[str, int] = {}
    for name in draw(st.lists(st.sampled_from("xyz"), unique=True, max_size=3)):
        sizes[name] = draw(st.integers(1, most))
        most //= sizes[name]
    return Mesh(**sizes)


def extents_of_arrays() -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(1, 7), min_size=1, max_size=3).map(tuple)


@st.composite
def boxes_within(draw: st.DrawFn, extents: Sequence[int]) -> Box:
    sides = [sorted((draw(st.integers(0, e)), draw(st.integers(0, e)))) for e in extents]
    return tuple((lo, hi) for lo, hi in sides)


@st.composite
def splits_over(draw: st.DrawFn, names: Sequence[str], extents: Sequence[int]) -> tuple[Split, ...]:
    left = draw(st.permutations(names))
    splits = []
    for extent in extents:
        taken = draw(st.integers(0, len(left)))
        splits.append(Split(extent, tuple(left[:taken])))
        left = left[taken:]
    return tuple(splits)


@st.composite
def layouts(draw: st.DrawFn, extents: Sequence[int], explicit: bool = True) -> Layout:
    mesh = draw(meshes())
    if explicit and draw(st.integers(0, 3)) == 3:
        boxes = tuple(draw(boxes_within(extents)) for _ in mesh)
        return Layout(mesh, tuple(extents), explicit=boxes)
    return Layout(mesh, tuple(extents), splits=draw(splits_over(mesh.names, extents)))


@st.composite
def partial_layouts(draw: st.DrawFn, extents: Sequence[int], name: str) -> Layout:
    """A layout of operands: over some axes, and split by the others; or over all ranks."""
    layout = draw(layouts(extents))
    if layout.splits is None or draw(st.integers(0, 3)) == 3:
        return replace(layout, partial=Partial(name))
    names = draw(st.permutations(layout.mesh.names))
    taken = draw(st.integers(0, len(names)))
    splits = draw(splits_over(names[taken:], extents))
    return replace(layout, splits=splits, partial=Partial(name, tuple(names[:taken])))


@st.composite
def redistributions(draw: st.DrawFn, partial: bool | None = None) -> Redistribution:
    """Any to any, with the root on either side more often; partial sources unless forbidden."""
    extents = draw(extents_of_arrays())
    dtype = draw(st.sampled_from([*DTYPES]))
    source, target = draw(layouts(extents)), draw(layouts(extents))
    where = draw(st.integers(0, 5))
    accumulate = False
    if draw(st.booleans()) if partial is None else partial:
        names = [name for name, known in REDUCTIONS.items() if known.supports(dtype)]
        source = draw(partial_layouts(extents, draw(st.sampled_from(names))))
        accumulate = draw(st.booleans())
    elif where == 0:
        source = Layout.root(extents)
    if where == 1:
        target = Layout.root(extents)
    return Redistribution(source, target, dtype, accumulate)


class Content:
    """Tiles of a redistribution filled with numbers, and what the target holds afterwards."""

    def __init__(self, move: Redistribution, seed: int = 0) -> None:
        numbers = np.random.default_rng(seed)

        def array() -> Tile:
            held: Tile = numbers.integers(0, 5, move.source.extents).astype(move.dtype)
            return held

        operands: dict[int, Tile] = {}
        held: dict[int, Tile] = {}
        self.sources: list[Tile] = []
        for rank, box in enumerate(move.source.boxes):
            operand = move.source.operand(rank)
            operands.setdefault(operand, array())
            mask = held.setdefault(operand, np.zeros(move.source.extents, bool))
            self.sources.append(operands[operand][intervals.slices(box)].copy())
            mask[intervals.slices(box)] = True
        before = array()
        after = before.copy()
        reached = np.full(move.source.extents, move.accumulate)
        for operand, values in operands.items():
            combine = find_reduction(move.reduction or "sum").ufunc
            combined = np.where(reached, combine(after, values).astype(move.dtype), values)
            after = np.where(held[operand], combined, after)
            reached |= held[operand]
        self.before = _cut(before, move.target)
        self.after = _cut(after, move.target)


def _cut(array: Tile, layout: Layout) -> list[Tile]:
    return [array[intervals.slices(box)].copy() for box in layout.boxes]


def tiling_on_grid(parameters, ranges, parts) -> Tiling:
    """A tiling on a mesh with an axis for each parameter."""
    grid = Grid.of_parts(parameters, parts)
    return Tiling.of(ranges, grid.mesh, grid.splits)
