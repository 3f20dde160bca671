"""Layouts of operands as layouts with one more dimension, along which the operands of an array lie.

before -> after:  ``[4] + partial{x,y} -> [4] + partial{x}``  ->
``[1{x}2, 4] + partial{y} -> [1{x}2, 4]``.  What brings the second into its target brings the first:
an operand along an axis of both sides stays one, and the others are reduced into those of the
target. A value becomes one operand; where none arrives is the neutral element of the reduction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from distspmd.errors import LayoutError
from distspmd.layouts import relations
from distspmd.layouts.dimension import Partial
from distspmd.layouts.intervals import Numbers
from distspmd.layouts.layout import Layout


def in_operand_dimension(source: Layout, target: Layout) -> tuple[Layout, Layout]:
    """Both layouts with a dimension in front for the operands of a partial target.

    Raises:
        LayoutError: some rank would have to hold elements of an operand which no tile of it has.
    """
    axes = _axes(target)
    if axes is None:
        raise LayoutError(
            f"target {target} is partial over all ranks, whose boxes do not say which operands an "
            "element has. Write the axes, such as + partial(sum){x}."
        )
    _check_covers(target, axes)
    weights = {
        axis: math.prod(target.mesh[a] for a in axes[n + 1 :]) for n, axis in enumerate(axes)
    }
    own = _axes(source) if source.partial else ()
    own = source.mesh.names if own is None else own
    stay = [a for a in axes if a in own and source.mesh[a] == target.mesh[a]]
    reduced = tuple(axis for axis in own if axis not in stay)
    held = np.zeros(source.ranks, np.int64)
    for axis in stay:
        held += source.mesh.grid[axis] * weights[axis]
    wanted = target.indices(axes[::-1])
    free = [np.arange(target.mesh[axis]) * weights[axis] for axis in axes if axis not in stay]
    held += _places(source, target, wanted, held, free)
    partial = Partial(source.partial.reduction, reduced) if source.partial and reduced else None
    count = math.prod(target.mesh[axis] for axis in axes)
    return _with_dimension(source, count, held, partial), _with_dimension(target, count, wanted)


def _axes(layout: Layout) -> tuple[str, ...] | None:
    """The axes along which operands differ; None where boxes have operands of all ranks."""
    assert layout.partial is not None
    if layout.partial.axes is not None or layout.splits is None:
        return layout.partial.axes
    split = {axis for each in layout.splits for axis in each.axes}
    return tuple(axis for axis in layout.mesh.names if axis not in split)


def _check_covers(target: Layout, axes: Sequence[str]) -> None:
    """See to it that the tiles of each operand have all elements that tiles of any have."""
    if target.splits is not None:
        return
    every, operands = target.tiles.bounds, target.indices(axes[::-1])
    for operand in range(math.prod(target.mesh[axis] for axis in axes)):
        tiles = target.bounds[operands == operand]
        if (relations.covered(every, tiles) != relations.volumes(every)).any():
            raise LayoutError(
                f"target {target}: the tiles of operand {operand} lack elements that those of "
                "another have. Write tiles that have the same elements for each operand."
            )


def _places(
    source: Layout, target: Layout, wanted: Numbers, held: Numbers, free: Sequence[Numbers]
) -> Numbers:
    """How much further each rank's operand lies along the axes that only the target has.

    A tile goes to the operand of which most lies there already, the same for all of its ranks; to
    the first where tiles overlap.
    """
    places = np.zeros(1, np.int64)
    for steps in free:
        places = (places[:, None] + steps).ravel()
    found = np.zeros(source.ranks, np.int64)
    ranks = min(source.ranks, target.ranks)
    if len(places) == 1 or not relations.are_tiles_disjoint(source):
        return found
    order = np.sort(places)
    missing = wanted[:ranks] - held[:ranks]
    at = np.minimum(np.searchsorted(order, missing), len(order) - 1)
    fits = (order[at] == missing) & (source.tiles.of[:ranks] >= 0)
    spared = np.zeros((len(source.tiles.bounds), len(order)), np.int64)
    kept = relations.kept(source, target)
    np.add.at(spared, (source.tiles.of[:ranks][fits], at[fits]), kept[fits])
    if spared.size:
        best = order[spared.argmax(axis=1)]
        found = np.where(source.tiles.of >= 0, best[source.tiles.of], 0)
    return found


def _with_dimension(
    layout: Layout, count: int, operands: Numbers, partial: Partial | None = None
) -> Layout:
    first = np.stack([operands, operands + 1], axis=1)[:, None]
    bounds = np.concatenate([first, layout.bounds], axis=1)
    return Layout.of_bounds(layout.mesh, (count, *layout.extents), bounds, partial)
