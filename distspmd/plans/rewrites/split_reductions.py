"""Reductions of large boxes as a reduce-scatter and a gather of the pieces, to one rank or to all.

One rank then combines each element, once. In an all-reduce by one call of MPI, or by every rank on
its own, several ranks combine it; in a reduction to one rank, that rank alone does all the work.
The ranks that want the result receive the same number of bytes either way.
"""

from __future__ import annotations

from dataclasses import replace

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.layouts.layout import Layout
from distspmd.plans.collectives import StepKind
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.plan import Message, Plan, Step

Pieces = list[list[tuple[int, Box]]]
"""Of each group, who combines which piece."""


def split_reductions(plan: Plan, least: int = HEURISTICS.split_reduction_bytes) -> Plan:
    """The plan with two steps for each reduction of at least so many bytes."""
    steps: list[Step] = []
    scratch = list(plan.scratch)
    for step in plan.steps:
        boxes = _boxes(step, -(-least // plan.itemsize))
        if boxes is None:
            steps.append(step)
            continue
        pieces = [
            list(zip(group, split_box(box, len(group)), strict=False))
            for group, box in zip(step.groups, boxes, strict=True)
        ]
        target = step.target
        if step.kind.spec.first is not None:
            scratch.append(_of_pieces(plan, pieces))
            target = 1 + len(scratch)
        steps.append(_combined(step, pieces, target))
        steps.append((_told if step.kind.spec.first is None else _gathered)(step, pieces, target))
    if len(steps) == len(plan.steps):
        return plan
    return replace(plan, steps=tuple(steps), scratch=tuple(scratch))


def _of_pieces(plan: Plan, pieces: Pieces) -> Layout:
    """The layout in which each rank has the piece that it combines."""
    source = plan.redistribution.source
    owned = {owner: piece for group in pieces for owner, piece in group}
    nothing = intervals.empty(len(source.extents))
    boxes = tuple(owned.get(rank, nothing) for rank in range(source.ranks))
    return Layout(source.mesh, source.extents, explicit=boxes)


def _combined(step: Step, pieces: Pieces, target: int) -> Step:
    messages = tuple(
        Message(sender, owner, piece)
        for group, owned in zip(step.groups, pieces, strict=True)
        for owner, piece in owned
        for sender in group
    )
    adds = step.accumulate and target == step.target
    kind = StepKind.REDUCE_SCATTER
    return replace(step, kind=kind, target=target, messages=messages, accumulate=adds)


def _told(step: Step, pieces: Pieces, source: int) -> Step:
    """Each rank tells its piece to all others."""
    messages = tuple(
        Message(owner, receiver, piece)
        for group, owned in zip(step.groups, pieces, strict=True)
        for owner, piece in owned
        for receiver in group
        if receiver != owner
    )
    return Step(StepKind.ALL_GATHER, source, step.target, step.groups, messages)


def _gathered(step: Step, pieces: Pieces, source: int) -> Step:
    """The first rank of each group gets the pieces."""
    messages = tuple(
        Message(owner, group[0], piece)
        for group, owned in zip(step.groups, pieces, strict=True)
        for owner, piece in owned
    )
    return replace(
        step,
        kind=StepKind.GATHER,
        source=source,
        messages=messages,
        reduction=step.reduction if step.accumulate else None,
    )


def _boxes(step: Step, least: int) -> list[Box] | None:
    """The box of each group, if the step reduces large ones and has no other messages."""
    if not step.kind.spec.is_combined:
        return None
    place = {rank: number for number, group in enumerate(step.groups) for rank in group}
    found: dict[int, Box] = {}
    for m in step.messages:
        if found.setdefault(place.get(m.sender, -1), m.box) != m.box:
            return None
    power = 2 if step.kind.spec.to_all else 1
    whole = sum(len(group) ** power for group in step.groups) == len(step.messages)
    large = all(intervals.volume(box) >= least for box in found.values())
    if not whole or not large or set(found) != set(range(len(step.groups))):
        return None
    return [found[number] for number in range(len(step.groups))]


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
