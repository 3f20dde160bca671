"""Reductions of large boxes as a reduce-scatter and a gather of the pieces, to one rank or to all.

One rank then combines each element, once. In an all-reduce by one call of MPI, or by every rank on
its own, several ranks combine it; in a reduction to one rank, that rank alone does all the work.
Where all ranks want the result they receive as many bytes either way; where one rank wants it, the
pieces that the others have combined come on top.

The messages of both steps are listed when they run; what they carry is known before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box, Numbers
from distspmd.layouts.layout import Layout
from distspmd.plans.collectives import StepKind
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.messages import Messages, Traffic
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
    def volumes(self) -> Numbers:
        """Elements of each piece."""
        volumes: Numbers = (self.bounds[:, :, 1] - self.bounds[:, :, 0]).prod(axis=1)
        return volumes

    def per_piece(self, of_group: Callable[[tuple[int, ...], list[Box]], int]) -> Numbers:
        """A number of its group for each piece."""
        pairs = list(zip(self.groups, self.split, strict=True))
        return np.repeat([of_group(*pair) for pair in pairs], [len(cut) for _, cut in pairs])

    def on_ranks(self, numbers: Numbers) -> Numbers:
        """Numbers of pieces as those of the ranks that combine them; 0 of all others."""
        found = np.zeros(max(map(max, self.groups)) + 1, dtype=np.int64)
        found[self.owners] = numbers
        return found

    def in_group(self, of_group: Callable[[tuple[int, ...], list[Box]], int]) -> Numbers:
        """A number of its group for each rank; 0 of ranks that are in none."""
        found = self.on_ranks(np.zeros(len(self.owners), dtype=np.int64))
        for group, cut in zip(self.groups, self.split, strict=True):
            found[list(group)] = of_group(group, cut)
        return found

    def with_each(self, far: bool) -> tuple[Numbers, Numbers]:
        """Number of a piece and a rank of its group, for each pair; without its own, if ``far``."""
        sizes = self.per_piece(lambda group, _: len(group))
        number = np.repeat(np.arange(len(sizes)), sizes)
        groups = zip(self.groups, self.split, strict=True)
        ranks = np.concatenate([np.tile(group, len(cut)) for group, cut in groups])
        kept = ranks != self.owners[number] if far else slice(None)
        return number[kept], ranks[kept]


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

    def listed() -> Numbers:
        number, senders = pieces.with_each(far=False)
        return Messages.columns(senders, pieces.owners[number], pieces.bounds[number]).table

    volume = pieces.on_ranks(pieces.volumes)
    others = pieces.in_group(lambda group, _: len(group) - 1)
    owns = pieces.on_ranks(np.ones(len(pieces.owners), dtype=np.int64))
    whole = pieces.in_group(lambda _, cut: sum(map(intervals.volume, cut)))
    traffic = Traffic(
        sent=whole - volume,
        received=others * volume,
        delivered=volume * (others > 0),
        copied=volume,
        partners=pieces.in_group(lambda _, cut: len(cut)) - owns + others * owns,
    )
    adds = step.accumulate and target == step.target
    kind = StepKind.REDUCE_SCATTER
    messages = Messages(listed, traffic)
    return replace(step, kind=kind, target=target, messages=messages, accumulate=adds)


def _told(step: Step, pieces: _Pieces, source: int) -> Step:
    """Each rank tells its piece to all others."""

    def listed() -> Numbers:
        number, receivers = pieces.with_each(far=True)
        return Messages.columns(pieces.owners[number], receivers, pieces.bounds[number]).table

    volume = pieces.on_ranks(pieces.volumes)
    others = pieces.in_group(lambda group, _: len(group) - 1)
    owns = pieces.on_ranks(np.ones(len(pieces.owners), dtype=np.int64))
    arriving = pieces.in_group(lambda _, cut: sum(map(intervals.volume, cut))) - volume
    traffic = Traffic(
        sent=volume * (others > 0),
        received=arriving,
        delivered=arriving,
        copied=np.zeros_like(volume),
        partners=pieces.in_group(lambda _, cut: len(cut)) - owns + others * owns,
    )
    messages = Messages(listed, traffic)
    return Step(StepKind.ALL_GATHER, source, step.target, step.groups, messages)


def _gathered(step: Step, pieces: _Pieces, source: int) -> Step:
    """The first rank of each group gets the pieces."""
    first = pieces.per_piece(lambda group, _: group[0])
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
    boxes = held.table[example, 2:]
    if not np.array_equal(boxes[of], held.table[:, 2:]):
        return None
    return [tuple(zip(box[::2], box[1::2], strict=True)) for box in boxes.tolist()]


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
