"""The table by which a rank tells a transport which boxes of its tiles a plan touches.

Tiles in the memory of a device are moved by way of mirrors in the host's memory, of which only
these boxes are copied. ``device/transport.hpp`` reads the table; it holds, as int64 words in this
order::

    table   plans, fetches
    route   itemsize, read, kept, written     of each plan, and then of each fetch
    boxes   dimensions, strides, boxes        strides in elements of the rank's storage
    box     offset, extents                   in elements behind the beginning of the storage
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.plans.encoding import Storage
from distspmd.plans.plan import Plan


@dataclass(frozen=True)
class StagedBoxes:
    """Boxes of the source and the target of a plan that one rank touches.

    Attributes:
        read: of the source.
        kept: of the target, what must be there before the plan runs.
        written: of the target.
    """

    read: tuple[Box, ...]
    kept: tuple[Box, ...]
    written: tuple[Box, ...]

    @classmethod
    def of(cls, plan: Plan, rank: int) -> StagedBoxes:
        """What a plan touches as its steps say."""
        read: dict[Box, None] = {}
        kept: dict[Box, None] = {}
        written: dict[Box, None] = {}
        for step in plan.steps:
            for sender, receiver, box in step.table.of_rank(rank):
                if sender == rank and step.source < 2:
                    (kept if step.source else read)[box] = None
                if receiver == rank and step.target == 1:
                    written[box] = None
                    if step.accumulate:
                        kept[box] = None
        return cls(_largest(read), _largest(kept), _largest(written))

    @classmethod
    def whole(cls, plan: Plan, rank: int) -> StagedBoxes:
        """All of both tiles, for a plan of which data decide what is touched."""
        source, target = (
            () if intervals.is_empty(layout.box(rank)) else (layout.box(rank),)
            for layout in plan.buffers[:2]
        )
        return cls(source, target, target)

    def words(self, plan: Plan, storages: Sequence[Storage]) -> list[int]:
        """The route of a plan."""
        source, target = storages
        found = [plan.itemsize]
        for boxes, storage in ((self.read, source), (self.kept, target), (self.written, target)):
            found += [len(storage.strides), *storage.strides, len(boxes)]
            for box in boxes:
                begins = zip(box, storage.origin, storage.strides, strict=True)
                found.append(sum((lo - origin) * stride for (lo, _), origin, stride in begins))
                found += intervals.shape(box)
        return found

    def nbytes(self, plan: Plan) -> int:
        """Bytes that are copied from a device and to it, if both tiles are there."""
        boxes = (*self.read, *self.kept, *self.written)
        return plan.itemsize * sum(map(intervals.volume, boxes))


def staging_table(
    plans: Sequence[tuple[Plan, Sequence[Storage]]],
    fetches: Sequence[tuple[Plan, Sequence[Storage]]],
    rank: int,
) -> NDArray[np.int64]:
    """The table of a rank."""
    found = [len(plans), len(fetches)]
    for plan, storages in plans:
        found += StagedBoxes.of(plan, rank).words(plan, storages)
    for plan, storages in fetches:
        found += StagedBoxes.whole(plan, rank).words(plan, storages)
    return np.array(found, dtype=np.int64)


_MOST = 64
"""Boxes among which those within others are looked for."""


def _largest(boxes: Iterable[Box]) -> tuple[Box, ...]:
    """Boxes without those that lie within others."""
    found = tuple(boxes)
    if len(found) > _MOST:
        return found
    return tuple(
        box
        for box in found
        if not any(box != other and intervals.intersect(box, other) == box for other in found)
    )
