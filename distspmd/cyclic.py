"""Block-cyclic layouts: blocks of the array folded into rounds, parts and blocks.

Dealing blocks of ``block`` elements to ``parts`` ranks in turn gives each a strided part of the
array, which is no box. In the array folded to ``(rounds, parts, block)`` it is one: a view of the
same memory, in which the rank's tile, ``(rounds, 1, block)``, lies in the order in which ScaLAPACK
stores it. So a block-cyclic redistribution is one of blocks between folded arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from distspmd.errors import LayoutError
from distspmd.layout import Layout, Split
from distspmd.mesh import Mesh


@dataclass(frozen=True, slots=True)
class Fold:
    """How one dimension is folded: ``extent -> (rounds, parts, block)``.

    Raises:
        LayoutError: the extent is no multiple of ``parts * block``; pad the array.
    """

    dimension: int
    parts: int
    block: int

    def extents(self, extent: int) -> tuple[int, int, int]:
        """Rounds, parts and block."""
        if self.parts < 1 or self.block < 1 or extent % (self.parts * self.block):
            raise LayoutError(
                f"dimension {self.dimension}: {extent} is no multiple of {self.parts} parts of "
                f"blocks of {self.block}. Pad the array."
            )
        return extent // (self.parts * self.block), self.parts, self.block


def cyclic(layout: Layout, dimension: int, block: int) -> tuple[Layout, Fold]:
    """The layout whose axes on a dimension deal blocks of ``block`` in turn; and the fold.

    ``[6{x}12], block 2 -> [3, 1{x}2, 2]`` on two ranks.
    """
    splits = _splits(layout)
    split = splits[dimension]
    fold = Fold(dimension, split.parts(layout.mesh), block)
    rounds, parts, block = fold.extents(split.extent)
    folded = (Split(rounds), Split(parts, split.axes), Split(block))
    return _with(layout, (*splits[:dimension], *folded, *splits[dimension + 1 :])), fold


def folded(layout: Layout, fold: Fold) -> Layout:
    """The same tiles in the folded array.

    Raises:
        LayoutError: a tile is no box there.
    """
    splits = _splits(layout)
    split = splits[fold.dimension]
    tile, axes = split.tile(layout.mesh), list(split.axes)
    misfit = LayoutError(f"{layout}: its tiles are no boxes in the array folded by {fold}.")
    if tile * split.parts(layout.mesh) != split.extent:
        raise misfit
    found: list[Split] = []
    for extent in reversed(fold.extents(split.extent)):
        if extent % tile and tile % extent:
            raise misfit
        parts = 1 if tile % extent == 0 else extent // tile
        tile = max(1, tile // extent)
        taken = _first_axes(axes, layout.mesh, parts)
        if math.prod(layout.mesh[axis] for axis in taken) != parts:
            raise misfit
        found.append(Split(extent, tuple(taken)))
        axes = axes[len(taken) :]
    inside = (*reversed(found),)
    return _with(layout, (*splits[: fold.dimension], *inside, *splits[fold.dimension + 1 :]))


def fold_shape(extents: Sequence[int], folds: Sequence[Fold]) -> tuple[int, ...]:
    """Extents of the folded array, for ``array.reshape``; dimensions as before the folds."""
    by_dimension = {fold.dimension: fold for fold in folds}
    shape: list[int] = []
    for dimension, extent in enumerate(extents):
        fold = by_dimension.get(dimension)
        shape += fold.extents(extent) if fold else (extent,)
    return tuple(shape)


def _splits(layout: Layout) -> tuple[Split, ...]:
    if not layout.is_blocks or layout.splits is None:
        raise LayoutError(f"{layout} is no product of blocks, and cannot be folded.")
    return layout.splits


def _with(layout: Layout, splits: tuple[Split, ...]) -> Layout:
    extents = tuple(split.extent for split in splits)
    return Layout(layout.mesh, extents, splits=splits, partial=layout.partial)


def _first_axes(axes: Sequence[str], mesh: Mesh, parts: int) -> list[str]:
    """The minor axes that give a number of parts, else none."""
    for count in range(len(axes) + 1):
        if math.prod(mesh[axis] for axis in axes[:count]) == parts:
            return list(axes[:count])
    return []
