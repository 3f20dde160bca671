"""Redistributions: from a source to a target layout, and the least bytes that takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import LayoutError, describe
from distspmd.layouts import intervals, relations
from distspmd.layouts.intersection import Overlaps, overlaps
from distspmd.layouts.intervals import Numbers
from distspmd.layouts.layout import Layout
from distspmd.layouts.operand_dimension import in_operand_dimension
from distspmd.layouts.reductions import find_reduction
from distspmd.layouts.types import find_dtype


@dataclass(frozen=True)
class Redistribution:
    """An array in ``source`` is wanted in ``target``.

    Elements of the target that no source tile holds keep what the target held before. A partial
    source is reduced on the way. With ``accumulate`` what the target held before is one more
    operand of that reduction.

    A partial target gets operands: those along an axis over which the source is partial, too, stay
    operands, and the others are reduced. Each value becomes one operand. What holds nothing of an
    element then is the neutral element, with which the target is filled before the plan begins.

    ``in_place`` says that each rank has both of its boxes in one storage: what it holds of the
    target is there already, and only what it lacks moves. So a halo is filled around a tile.

    ``at_caller`` says that the source is the caller's own memory, which no other rank sees.

    Raises:
        LayoutError: different extents, a reduction that the dtype lacks, or two of them.
    """

    source: Layout
    target: Layout
    dtype: np.dtype[Any]
    accumulate: bool = False
    in_place: bool = False
    at_caller: bool = False

    def __post_init__(self) -> None:
        for layout in (self.source, self.target):
            if not isinstance(layout, Layout):
                raise LayoutError(f"{describe(layout)} is no distspmd.layouts.Layout.")
        try:
            object.__setattr__(self, "dtype", find_dtype(self.dtype))
        except Exception:  # NumPy has many answers to what is no type
            raise LayoutError(
                f"there is no dtype {describe(self.dtype)}; write one of NumPy's, or one of "
                "ml_dtypes where that is installed, such as 'bfloat16'."
            ) from None
        if self.source.extents != self.target.extents:
            raise LayoutError(
                f"source {self.source} and target {self.target} are layouts of different arrays: "
                f"{self.source.extents} and {self.target.extents}."
            )
        for side, layout in (("source", self.source), ("target", self.target)):
            if layout.partial and not find_reduction(layout.partial.reduction).supports(self.dtype):
                raise LayoutError(
                    f"{side} {layout}: no {layout.partial.reduction} of {self.dtype} values."
                )
        if self.target.partial:
            self._check_partial_target(self.target.partial.reduction)
        if not self.source.partial and self.accumulate:
            raise LayoutError("only operands of a reduction accumulate; the source has values.")
        if self.in_place and self.source.partial:
            raise LayoutError(f"{self.source}: operands and values need a storage each.")

    def _check_partial_target(self, reduction: str) -> None:
        if self.reduction not in (None, reduction):
            raise LayoutError(
                f"source {self.source} and target {self.target}: operands of {self.reduction} are "
                f"none of {reduction}. Go there in two steps, by a layout of values."
            )
        if self.accumulate or self.in_place:
            raise LayoutError(f"target {self.target}: operands are not added to what was there.")
        self.with_operands  # noqa: B018  # which refuses

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        kinds = self.dtype, self.accumulate, self.in_place, self.at_caller
        return hash((self.source, self.target, *kinds))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

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
    def with_operands(self) -> Redistribution:
        """The same with values for a target: with a dimension for operands, if that is partial."""
        if self.target.partial is None:
            return self
        source, target = in_operand_dimension(self.source, self.target)
        return Redistribution(source, target, self.dtype, at_caller=self.at_caller)

    @cached_property
    def overlaps(self) -> Overlaps:
        """Where the tiles of the source and of the target meet."""
        return overlaps(self.source, self.target)

    @cached_property
    def disjoint(self) -> bool:
        """Whether no element is in two different tiles of the source."""
        return relations.are_tiles_disjoint(self.source)

    @cached_property
    def bound(self) -> Bound:
        """What every plan of this redistribution moves at least."""
        return Bound(self.with_operands)


@dataclass(frozen=True)
class Bound:
    """The bytes and the memory that no plan of a redistribution can do without."""

    redistribution: Redistribution

    def received(self, rank: int) -> int:
        """Bytes that the rank must receive: what its target tile needs and its source tile lacks.

        Of a partial array, an element for which another rank holds an operand costs one element.
        """
        move = self.redistribution
        return int(self.missing[rank]) * move.dtype.itemsize if rank < move.ranks else 0

    @cached_property
    def nbytes(self) -> int:
        """Bytes that all ranks together must receive."""
        return int(self.missing.sum()) * self.redistribution.dtype.itemsize

    @cached_property
    def missing(self) -> Numbers:
        """Elements that each rank must receive."""
        move = self.redistribution
        if move.source.partial is None:
            return self._missing_values()
        if move.disjoint:
            return self._missing_results()
        wanted = (
            self._operands_of_others(rank, move.target.box(rank)) for rank in range(move.ranks)
        )
        return np.array([intervals.union_volume([*boxes]) for boxes in wanted], np.int64)

    def _missing_values(self) -> Numbers:
        """What the target has of all tiles of the source, but what lies on the rank itself."""
        move = self.redistribution
        found = np.zeros(move.ranks, dtype=np.int64)
        found[: move.target.ranks] = move.target.volumes
        if not relations.covers_all(move.source):
            tiles = move.target.tiles
            counts = relations.covered_by(move.source, tiles.bounds)
            found[: move.target.ranks] = np.append(counts, 0)[tiles.of]
        found[: min(move.source.ranks, move.target.ranks)] -= relations.kept(
            move.source, move.target
        )
        return found

    def _missing_results(self) -> Numbers:
        """What the target has of operands, where the tiles of the source are disjoint."""
        move = self.redistribution
        source, target = move.source.tiles, move.target.tiles
        meet = move.overlaps
        covered = np.zeros(len(target.bounds) + 1, dtype=np.int64)  # the last is of no tile
        np.add.at(covered, meet.target, meet.volumes)
        found = np.zeros(move.ranks, dtype=np.int64)
        found[: len(target.of)] = covered[target.of]
        ranks = min(len(source.of), len(target.of))
        mine, wanted = source.of[:ranks], target.of[:ranks]
        alone = np.append(_operands_at(move.source) == 1, False)
        own = relations.kept(move.source, move.target)
        found[:ranks] -= np.where((wanted >= 0) & alone[mine], own, 0)
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

    def memory(self, rank: int) -> int:
        """Bytes of the larger of the rank's source and target tiles."""
        move = self.redistribution
        return max(move.source.volume(rank), move.target.volume(rank)) * move.dtype.itemsize


def _operands_at(source: Layout) -> NDArray[np.int64]:
    """How many operands each tile of a source has."""
    held = source.tiles.of >= 0
    pairs = np.unique(np.stack([source.tiles.of, source.operands])[:, held], axis=1)
    return np.bincount(pairs[0], minlength=len(source.tiles.bounds))
