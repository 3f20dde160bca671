"""An all-reduce of a large box as a reduce-scatter and an all-gather of its pieces.

Each element is then combined by one rank, once, where an all-reduce by one call of MPI, or by every
rank on its own, combines it several times. Ranks receive the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from distspmd import intervals
from distspmd.intervals import Box
from distspmd.plans import Message, Plan, Step, StepKind

LEAST_BYTES = 1 << 18
"""Of the box, from which on two calls cost less than one."""


def scattered(plan: Plan, least: int = LEAST_BYTES) -> Plan:
    """The plan with two steps for each all-reduce of at least so many bytes."""
    steps = tuple(part for step in plan.steps for part in _parts(step, -(-least // plan.itemsize)))
    return plan if len(steps) == len(plan.steps) else replace(plan, steps=steps)


def _parts(step: Step, least: int) -> Iterator[Step]:
    boxes = _boxes(step, least) if step.kind is StepKind.ALL_REDUCE else None
    if not boxes:
        yield step
        return
    pieces = [
        list(zip(group, _cut(box, len(group)), strict=False))
        for group, box in zip(step.groups, boxes, strict=True)
    ]
    combined = [
        Message(sender, owner, piece)
        for group, owned in zip(step.groups, pieces, strict=True)
        for owner, piece in owned
        for sender in group
    ]
    gathered = [
        Message(owner, receiver, piece)
        for group, owned in zip(step.groups, pieces, strict=True)
        for owner, piece in owned
        for receiver in group
        if receiver != owner
    ]
    yield replace(step, kind=StepKind.REDUCE_SCATTER, messages=tuple(combined))
    yield Step(StepKind.ALL_GATHER, step.target, step.target, step.groups, tuple(gathered))


def _boxes(step: Step, least: int) -> list[Box] | None:
    """The box of each group, if all are large and the step has no other messages."""
    place = {rank: number for number, group in enumerate(step.groups) for rank in group}
    found: dict[int, Box] = {}
    for m in step.messages:
        if found.setdefault(place.get(m.sender, -1), m.box) != m.box:
            return None
    whole = sum(len(group) ** 2 for group in step.groups) == len(step.messages)
    large = all(intervals.volume(box) >= least for box in found.values())
    if not whole or not large or set(found) != set(range(len(step.groups))):
        return None
    return [found[number] for number in range(len(step.groups))]


def _cut(box: Box, parts: int) -> list[Box]:
    """A box in at most so many parts, along its first dimension that is long enough for all."""
    extents = intervals.shape(box)
    along = next((d for d, n in enumerate(extents) if n >= parts), extents.index(max(extents)))
    lo, hi = box[along]
    block = -(-(hi - lo) // parts)
    return [
        (*box[:along], (start, min(start + block, hi)), *box[along + 1 :])
        for start in range(lo, hi, block)
    ]
