"""Reductions of large boxes as a reduce-scatter and a gather of the pieces, to one rank or to all.

One rank then combines each element, once. In an all-reduce by one call of MPI, or by every rank on
its own, several ranks combine it; in a reduction to one rank, that rank alone does all the work.
Where all ranks want the result they receive as many bytes either way; where one rank wants it, the
pieces that the others have combined come on top.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box, Numbers
from distspmd.layouts.layout import Layout
from distspmd.plans.collectives import StepKind
from distspmd.plans.group_messages import GroupMessages
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.messages import Messages
from distspmd.plans.plan import Plan, Step


def split_reductions(plan: Plan, least: int = HEURISTICS.split_reduction_bytes) -> Plan:
    """The plan with two steps for each reduction of at least so many bytes."""
    steps: list[Step] = []
    scratch = list(plan.scratch)
    for step in plan.steps:
        boxes = _boxes(step, -(-least // plan.itemsize))
        if boxes is None:
            steps.append(step)
            continue
        pieces = _Pieces(step.groups, boxes)
        target = step.target
        if step.kind.spec.first is not None:
            scratch.append(_layout(plan, pieces))
            target = 1 + len(scratch)
        steps.append(_combined(step, pieces, target))
        steps.append((_told if step.kind.spec.first is None else _gathered)(step, pieces, target))
    if len(steps) == len(plan.steps):
        return plan
    return replace(plan, steps=tuple(steps), scratch=tuple(scratch))


@dataclass(frozen=True)
class _Pieces:
    """The box of each group in pieces, of which its first ranks combine one each."""

    groups: tuple[tuple[int, ...], ...]
    boxes: list[Box]

    @cached_property
    def split(self) -> list[list[Box]]:
        """The pieces of each group."""
        pairs = zip(self.groups, self.boxes, strict=True)
        return [split_box(box, len(group)) for group, box in pairs]

    @cached_property
    def owners(self) -> Numbers:
        """The rank of each piece."""
        pairs = zip(self.groups, self.split, strict=True)
        return np.array([rank for g, cut in pairs for rank in g[: len(cut)]], dtype=np.int64)

    @cached_property
    def bounds(self) -> Numbers:
        """The pieces: (pieces, dimensions, 2)."""
        return np.array([piece for cut in self.split for piece in cut], dtype=np.int64)

    @cached_property
    def of_ranks(self) -> Numbers:
        """The piece that each rank combines; nothing of others."""
        found = np.zeros((self.count, *self.bounds.shape[1:]), dtype=np.int64)
        found[self.owners] = self.bounds
        return found

    @cached_property
    def whole(self) -> Numbers:
        """The box of the group of each rank."""
        found = np.zeros((self.count, *self.bounds.shape[1:]), dtype=np.int64)
        for group, box in zip(self.groups, self.boxes, strict=True):
            found[list(group)] = box
        return found

    @property
    def count(self) -> int:
        """Ranks up to the last one of all groups."""
        return max(map(max, self.groups)) + 1


def _layout(plan: Plan, pieces: _Pieces) -> Layout:
    """The layout in which each rank has the piece that it combines."""
    source = plan.redistribution.source
    cut = [piece for each in pieces.split for piece in each]
    owned = dict(zip(pieces.owners.tolist(), cut, strict=True))
    nothing = intervals.empty(len(source.extents))
    boxes = tuple(owned.get(rank, nothing) for rank in range(source.ranks))
    return Layout(source.mesh, source.extents, explicit=boxes)


def _combined(step: Step, pieces: _Pieces, target: int) -> Step:
    """Each rank that has a piece combines those of its group."""
    adds = step.accumulate and target == step.target
    kind = StepKind.REDUCE_SCATTER
    messages = GroupMessages(kind.spec, pieces.groups, pieces.whole, pieces.of_ranks)
    return replace(step, kind=kind, target=target, messages=messages, accumulate=adds)


def _told(step: Step, pieces: _Pieces, source: int) -> Step:
    """Each rank tells its piece to all others."""
    kind = StepKind.ALL_GATHER
    messages = GroupMessages(kind.spec, pieces.groups, pieces.of_ranks, pieces.whole, to_self=False)
    return Step(kind, source, step.target, step.groups, messages)


def _gathered(step: Step, pieces: _Pieces, source: int) -> Step:
    """The first rank of each group gets the pieces."""
    pairs = zip(pieces.groups, pieces.split, strict=True)
    first = np.array([group[0] for group, cut in pairs for _ in cut], dtype=np.int64)
    messages = Messages.columns(pieces.owners, first, pieces.bounds)
    return replace(
        step,
        kind=StepKind.GATHER,
        source=source,
        messages=messages,
        reduction=step.reduction if step.accumulate else None,
    )


def _boxes(step: Step, least: int) -> list[Box] | None:
    """The box of each group, if the step reduces large ones and has no other messages."""
    held = step.table
    if isinstance(held, GroupMessages) and step.kind.spec.is_combined:
        boxes = held.common_boxes(step.groups)
        if boxes is not None:
            return boxes if min(map(intervals.volume, boxes)) >= least else None
    if not step.kind.spec.is_combined or not step.groups or not len(held):
        return None
    if held.volumes.min() < least:
        return None
    place = np.full(int(max(held.table[:, :2].max(), *map(max, step.groups))) + 1, -1)
    for number, group in enumerate(step.groups):
        place[list(group)] = number
    of = place[held.senders]
    groups, example = np.unique(of, return_index=True)
    power = 2 if step.kind.spec.to_all else 1
    whole = sum(len(group) ** power for group in step.groups) == len(held)
    if not whole or not np.array_equal(groups, np.arange(len(step.groups))):
        return None
    ends = held.table[example, 2:]
    if not np.array_equal(ends[of], held.table[:, 2:]):
        return None
    return [tuple(zip(box[::2], box[1::2], strict=True)) for box in ends.tolist()]


def split_box(box: Box, parts: int) -> list[Box]:
    """A box in at most so many parts, along its first dimension that is long enough for all."""
    extents = intervals.shape(box)
    along = next((d for d, n in enumerate(extents) if n >= parts), extents.index(max(extents)))
    lo, hi = box[along]
    block = -(-(hi - lo) // parts)
    return [
        (*box[:along], (start, min(start + block, hi)), *box[along + 1 :])
        for start in range(lo, hi, block)
    ]
