"""The rows that ranks have, and need, of containers: where data decide which these are.

A space that picks needs some rows of what it reads, and writes some rows of what it makes
(:mod:`distspmd.analysis.row_sets`). A space that no schedule splits, and that works row by row,
needs the rows that all its readers need; so does a gather, at its indices.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from distspmd.analysis.accesses import Access
from distspmd.analysis.apart import Index, Picking, indices, picking, picks
from distspmd.analysis.constraints import touched_by
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.row_sets import (
    Rows,
    flat_parts,
    index_read_at,
    index_written_at,
    member_compared,
)
from distspmd.analysis.uses import Read, Use, Write
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.nodes.lapack_together import LapackTogether
from distspmd.nodes.line_in_parts import LineInParts
from distspmd.nodes.row_exchange import ExchangedRows
from distspmd.passes.partial_values import PartialValues
from distspmd.plans.encoding import DTYPES
from distspmd.plans.row_exchange import RowSet


@dataclass
class RowsNeeded(PartialValues):
    """The partial values of a program, and the rows that ranks have and need of containers."""

    running: Mapping[str, Picking | None] = field(default_factory=dict)
    """Spaces that run on operands that lie apart: what they pick, if that is known."""
    on_rows: dict[str, Rows] = field(default_factory=dict)
    """Spaces that run on the rows that their readers need."""
    touched: dict[str, Sequence[Access]] = field(default_factory=dict)
    """Accesses of spaces that were looked at."""

    def has(self, data: str) -> RowSet | None:
        """The rows of which each rank has an operand, or the value."""
        write = self.only_write(data)
        if write is None:
            return None
        layout = write.layout
        if layout.partial is None:
            parts = flat_parts(layout, 1)
            if not write.exact or parts is None or not _are_apart(parts):
                return None
            return RowSet(parts)
        operands = self.layouts.get(data)
        found = self._picked_rows(write) if operands is not None else None
        if found is None or operands is None or not _are_boxes(operands, found.parts):
            return None
        pairs = zip(found.parts, operands.operands.tolist(), strict=True)
        some = [(part, operand) for part, operand in pairs if part[0] < part[1]]
        of_parts, of_operands = dict(some), {operand: part for part, operand in some}
        alike = all(of_parts[p] == o and of_operands[o] == p for p, o in some)
        return found if alike else None

    def _picked_rows(self, write: Write) -> RowSet | None:
        """The rows of which a space writes operands that may be other than zero."""
        space = write.space
        tiled = self.tiled[space.name]
        pick = self.picking(space)
        if pick is not None:
            index = self._index(space, write.data)
            fits = len(pick.rows) == 1 and index[:1] == pick.rows
            return RowSet(pick.owner.parts, member=pick.owner.member) if fits else None
        at = None if space.name in self.running else index_written_at(space, tiled.tiling)
        return self._at_indices(space, at) if at is not None else None

    def _at_indices(self, space: IterationSpace, at: str) -> RowSet | None:
        """The rows at the indices that each rank reads."""
        read = [use for use in self.tiled[space.name].uses if use.data == at]
        parts = flat_parts(read[0].layout) if len(read) == 1 else None
        return RowSet(parts, index=at) if parts is not None else None

    def need(self, space: IterationSpace, data: str) -> Rows | None:
        """The rows that a space needs of a container on each rank; None: all of them."""
        tiled = self.tiled[space.name]
        own = [use for use in tiled.uses if use.data == data]
        if (
            len(own) != 1
            or not _reads_all_rows(own[0])
            or isinstance(space.node, ExchangedRows | LineInParts | LapackTogether)
        ):
            return None
        tiling, index = tiled.tiling, self._index(space, data)
        pick = self.picking(space)
        if pick is not None:
            fits = len(pick.rows) == 1 and index[:1] == pick.rows and data != pick.owner.member
            found = RowSet(pick.owner.parts, member=pick.owner.member) if fits else None
        elif space.name in self.on_rows:
            return self.on_rows[space.name] if self._is_by_row(space, data) else None
        else:
            found = member_compared(space, tiling, data)
            at = index_read_at(space, tiling, data)
            if found is None and at is not None:
                found = self._at_indices(space, at)
                if found is not None and not Rows(tiling.mesh, found).axes:
                    return self._of_gather(space, at)
            elif found is None:
                return self.needed_of(space) if self._is_by_row(space, data) else None
        if found is None or not _are_boxes(own[0].layout, found.parts):
            return None
        rows = Rows(tiling.mesh, found)
        return rows if rows.axes else None

    def _of_gather(self, space: IterationSpace, at: str) -> Rows | None:
        """The rows of a table at the indices of those rows that the readers of a gather need."""
        if not self._is_by_row(space, at) or len(self.sdfg.arrays[at].shape) != 1:
            return None
        rows = self.needed_of(space)
        if rows is None or rows.set.index:
            return None
        return replace(rows, set=replace(rows.set, index=at))

    def needed_of(self, space: IterationSpace) -> Rows | None:
        """The rows that all readers of what a space writes need, if none needs others."""
        tiled = self.tiled[space.name]
        if max(tiled.tiling.parts, default=1) > 1 or space.moving or space.name in self.running:
            return None
        found: set[Rows | None] = set()
        for use in tiled.uses:
            if isinstance(use, Read):
                continue
            exact = isinstance(use, Write) and use.exact and not use.accumulates
            if not exact or use.layout.partial or self.only_write(use.data) is None:
                return None
            if not self.adds_up(use.data):
                return None
            readers = [other.space for other in self.uses[use.data] if isinstance(other, Read)]
            found |= {self.need(reader, use.data) for reader in readers} or {None}
        return found.pop() if len(found) == 1 else None

    def _is_by_row(self, space: IterationSpace, data: str) -> bool:
        """Whether a space writes a row of all results for each row of what it reads."""
        row = self._index(space, data)[:1]
        written = [u.data for u in self.tiled[space.name].uses if not isinstance(u, Read)]
        return row != (None,) and all(self._index(space, name)[:1] == row for name in written)

    def only_write(self, data: str) -> Write | None:
        """The write of a temporary that happens once, if there is no other."""
        writes = [use for use in self.uses[data] if not isinstance(use, Read)]
        if len(writes) != 1 or not self.sdfg.arrays[data].transient:
            return None
        (write,) = writes
        once = isinstance(write, Write) and write.certain and write.times == 1
        here = write.space.state.sdfg is self.sdfg and len(write.layout.extents) > 0
        return write if once and here and isinstance(write, Write) else None

    def picking(self, space: IterationSpace) -> Picking | None:
        """What a space picks, by itself or as it runs on operands."""
        if space.name in self.running:
            return self.running[space.name]
        tiling = self.tiled[space.name].tiling
        return picking(space, tiling, self._accesses(space)) if picks(space, tiling) else None

    def _index(self, space: IterationSpace, data: str) -> Index:
        return indices(space, data, self._accesses(space))

    def _accesses(self, space: IterationSpace) -> Sequence[Access]:
        if space.name not in self.touched:
            self.touched[space.name] = touched_by(space)[0]
        return self.touched[space.name]

    def adds_up(self, data: str) -> bool:
        """Whether the runtime adds elements of a container up."""
        return np.dtype(self.sdfg.arrays[data].dtype.as_numpy_dtype()) in DTYPES


def _reads_all_rows(use: Use) -> bool:
    """Whether a use reads values, in boxes of all rows or of nothing."""
    if not isinstance(use, Read) or use.layout.partial is not None:
        return False
    if use.inspection is not None or use.approximate or use.moved or not use.certain:
        return False
    everything = intervals.whole(use.layout.extents)
    return use.times == 1 and all(
        box == everything or intervals.is_empty(box) for box in use.layout.boxes
    )


def _are_boxes(layout: Layout, parts: Sequence[intervals.Interval]) -> bool:
    """Whether each rank has all rows, and those whose part is empty nothing."""
    everything = intervals.whole(layout.extents)
    return len(layout.boxes) == len(parts) and all(
        intervals.is_empty(box) if lo >= hi else box == everything
        for box, (lo, hi) in zip(layout.boxes, parts, strict=True)
    )


def _are_apart(parts: Sequence[intervals.Interval]) -> bool:
    """Whether parts are the same or have nothing in common, and there are several."""
    distinct = sorted({(lo, hi) for lo, hi in parts if lo < hi})
    return len(distinct) > 1 and all(a[1] <= b[0] for a, b in itertools.pairwise(distinct))
