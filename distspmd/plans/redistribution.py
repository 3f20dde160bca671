"""Redistributions: from a source to a target layout, and the least bytes that takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import LayoutError, describe
from distspmd.layouts import intervals
from distspmd.layouts.intersection import Overlaps, are_tiles_disjoint, overlaps
from distspmd.layouts.layout import Layout
from distspmd.layouts.reductions import find_reduction


@dataclass(frozen=True)
class Redistribution:
    """An array in ``source`` is wanted in ``target``.

    Elements of the target that no source tile holds keep what the target held before. A partial
    source is reduced on the way. With ``accumulate`` what the target held before is one more
    operand of that reduction.

    ``in_place`` says that each rank has both of its boxes in one storage: what it holds of the
    target is there already, and only what it lacks moves. So a halo is filled around a tile.

    Raises:
        LayoutError: different extents, a partial target, or a reduction that the dtype lacks.
    """

    source: Layout
    target: Layout
    dtype: np.dtype[Any]
    accumulate: bool = False
    in_place: bool = False

    def __post_init__(self) -> None:
        for layout in (self.source, self.target):
            if not isinstance(layout, Layout):
                raise LayoutError(f"{describe(layout)} is no distspmd.Layout.")
        try:
            object.__setattr__(self, "dtype", np.dtype(self.dtype))
        except Exception:  # NumPy has many answers to what is no type
            raise LayoutError(
                f"there is no dtype {describe(self.dtype)}; write one of NumPy's."
            ) from None
        if self.source.extents != self.target.extents:
            raise LayoutError(
                f"source {self.source} and target {self.target} are layouts of different arrays: "
                f"{self.source.extents} and {self.target.extents}."
            )
        if self.target.partial:
            raise LayoutError(
                f"target {self.target} is partial: values cannot be turned into operands."
            )
        if self.source.partial:
            operation = find_reduction(self.source.partial.reduction)
            if not operation.supports(self.dtype):
                raise LayoutError(
                    f"source {self.source}: no {operation.name} of {self.dtype} values."
                )
        elif self.accumulate:
            raise LayoutError("only operands of a reduction accumulate; the source has values.")
        if self.in_place and self.source.partial:
            raise LayoutError(f"{self.source}: operands and values need a storage each.")

    def __str__(self) -> str:
        arrow = "+>" if self.accumulate else "=>" if self.in_place else "->"
        return f"{self.source} {arrow} {self.target} of {self.dtype}"

    @property
    def ranks(self) -> int:
        """Number of ranks that take part or stand by."""
        return max(self.source.ranks, self.target.ranks)

    @property
    def reduction(self) -> str | None:
        """Name of the reduction that turns the source into values, if it is partial."""
        return self.source.partial.reduction if self.source.partial else None

    @cached_property
    def overlaps(self) -> Overlaps:
        """Where the tiles of the source and of the target meet."""
        return overlaps(self.source, self.target)

    @cached_property
    def disjoint(self) -> bool:
        """Whether no element is in two different tiles of the source."""
        return are_tiles_disjoint(self.source)

    @cached_property
    def bound(self) -> Bound:
        """What every plan of this redistribution moves at least."""
        return Bound(self)


@dataclass(frozen=True)
class Bound:
    """The bytes and the memory that no plan of a redistribution can do without."""

    redistribution: Redistribution

    def received(self, rank: int) -> int:
        """Bytes that the rank must receive: what its target tile needs and its source tile lacks.

        Of a partial array, an element for which another rank holds an operand costs one element.
        """
        move = self.redistribution
        if move.disjoint:
            return int(self._missing[rank]) * move.dtype.itemsize if rank < move.ranks else 0
        wanted = move.target.box(rank)
        if move.source.partial is None:
            here = move.source.box(rank)
            pieces = intervals.subtract(wanted, here)
            missing = sum(self._covered(piece) for piece in pieces)
        else:
            missing = intervals.union_volume([*self._operands_of_others(rank, wanted)])
        return missing * move.dtype.itemsize

    @cached_property
    def _missing(self) -> NDArray[np.int64]:
        """Elements that each rank must receive, where the tiles of the source are disjoint."""
        move = self.redistribution
        source, target = move.source.tiles, move.target.tiles
        meet = move.overlaps
        covered = np.zeros(len(target.bounds) + 1, dtype=np.int64)  # the last is of no tile
        np.add.at(covered, meet.target, meet.volumes)
        found = np.zeros(move.ranks, dtype=np.int64)
        found[: len(target.of)] = covered[target.of]
        common = min(len(source.of), len(target.of))
        mine, wanted = source.of[:common], target.of[:common]
        alone = np.append(_operands_at(move.source) == 1, False)
        lows = np.maximum(move.source.bounds[:common, :, 0], move.target.bounds[:common, :, 0])
        highs = np.minimum(move.source.bounds[:common, :, 1], move.target.bounds[:common, :, 1])
        kept = np.maximum(highs - lows, 0).prod(axis=1)
        found[:common] -= np.where((wanted >= 0) & alone[mine], kept, 0)
        return found

    def _operands_of_others(self, rank: int, wanted: intervals.Box) -> Iterator[intervals.Box]:
        """Where another rank holds an operand that the rank does not hold."""
        source = self.redistribution.source
        mine = source.operand(rank) if rank < source.ranks else None
        for box, ranks in source.holders().items():
            common = intervals.intersect(wanted, box)
            if {source.operand(other) for other in ranks} <= {mine}:
                yield from intervals.subtract(common, source.box(rank))
            else:
                yield common

    def _covered(self, piece: intervals.Box) -> int:
        """Elements of a box that some source tile holds."""
        left = intervals.subtract_all(piece, list(self.redistribution.source.holders()))
        return intervals.volume(piece) - sum(map(intervals.volume, left))

    def memory(self, rank: int) -> int:
        """Bytes of the larger of the rank's source and target tiles."""
        move = self.redistribution
        return max(move.source.volume(rank), move.target.volume(rank)) * move.dtype.itemsize


def _operands_at(source: Layout) -> NDArray[np.int64]:
    """How many operands each tile of a source has."""
    held = source.tiles.of >= 0
    pairs = np.unique(np.stack([source.tiles.of, source.operands])[:, held], axis=1)
    return np.bincount(pairs[0], minlength=len(source.tiles.bounds))
