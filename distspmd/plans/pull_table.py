"""The table by which a rank pulls what plans give it out of the other ranks' tiles.

``device/pulls.hpp`` reads it; it holds, as int64 words in this order::

    table    rank, ranks, bytes of scratch, plans
    plan     fits, apart, itemsize, source, target, scratch, steps
    step     received, launches                         elements that come from other ranks
    launch   operation, dtype, dimensions, end, boxes   operation 0: nothing is combined
    box      0, base, from, to, combines, extents, strides of the source, strides of the target

The base ``3 * rank + end`` is the pointer of a rank's source (0), target (1) or scratch (2), where
layouts lie through which a plan passes; the words of a plan say where an element of each is, or -1.
Offsets and strides are in elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.layouts.reductions import find_reduction
from distspmd.plans.encoding import DTYPES, Storage
from distspmd.plans.plan import Plan, Step

_COMBINED = tuple(np.dtype(name) for name in ("int32", "int64", "float32", "float64"))
_MOST_CODE = 4
"""Of the reductions that kernels combine with: sum, prod, min, max."""

Ends = Sequence[Storage]
"""A rank's storages of the source and the target of a plan."""


def why_no_pulls(plan: Plan) -> str:
    """Why a plan cannot be pulled; empty if it can."""
    if any(step.source == step.target and not _is_apart(step) for step in plan.steps):
        return "a rank writes what another one reads"
    return why_not_combined(plan)


def why_not_combined(plan: Plan) -> str:
    """Why kernels cannot combine the operands of a plan; empty if they can, or there are none."""
    dtype = plan.redistribution.dtype
    for step in plan.steps:
        if step.reduction:
            if not 0 < find_reduction(step.reduction).code <= _MOST_CODE:
                return f"its operands are combined by {step.reduction}"
            if dtype not in _COMBINED:
                return f"its operands are {dtype}"
    return ""


def received_by_pulls(plan: Plan, rank: int) -> int:
    """Bytes that a rank copies out of the tiles of others, as its plan is pulled.

    They are those of the plan's messages, but of steps that combine in a call of MPI
    (:func:`~distspmd.plans.collectives.received_in_groups`): a rank that pulls reads all operands.
    """
    if not any(step.kind.spec.is_combined for step in plan.steps):
        return plan.received(rank)
    found = 0
    for step in plan.steps:
        comes = step.table.between & (step.table.receivers == rank)
        found += int(step.table.volumes[comes].sum())
    return found * plan.itemsize


def pull_table(
    plans: Sequence[Plan],
    held: Sequence[Sequence[Ends]],
    rank: int,
    carried: Sequence[bool] | None = None,
) -> NDArray[np.int64]:
    """The table of a rank.

    Args:
        plans: that all ranks run.
        held: of each rank, and of each plan, the storages of its ends.
        rank: whose table.
        carried: of each plan, whether it is pulled where it can be; left out, all are.
    """
    most = max((plan.itemsize * scratch_elements(plan, rank) for plan in plans), default=0)
    carried = carried or [True] * len(plans)
    found = [rank, len(held), most, len(plans)]
    for number, plan in enumerate(plans):
        ends = [[*of_rank[number], *scratch(plan, n)] for n, of_rank in enumerate(held)]
        fits = carried[number] and not why_no_pulls(plan)
        found += [fits, fits and _can_alias(plan, ends), plan.itemsize]
        if not fits:
            found += [-1, -1, -1, 0]
            continue
        for end in (0, 1):
            box = plan.buffers[end].box(rank)
            found.append(-1 if intervals.is_empty(box) else offset_of(ends[rank][end], box))
        found.append(0 if scratch_elements(plan, rank) else -1)
        found.append(len(plan.steps))
        for step in plan.steps:
            found += _step(plan, step, ends, rank)
    return np.array(found, dtype=np.int64)


def _is_apart(step: Step) -> bool:
    """Whether no rank writes what another one reads of it, in a step within one memory."""
    read: dict[int, set[Box]] = {}
    written: dict[int, set[Box]] = {}
    for message in step.messages:
        if message.sender != message.receiver:
            read.setdefault(message.sender, set()).add(message.box)
        if message.sender != message.receiver or step.reduction:
            written.setdefault(message.receiver, set()).add(message.box)
    return all(
        intervals.is_empty(intervals.intersect(ours, theirs))
        for rank, boxes in read.items()
        for ours in boxes
        for theirs in written.get(rank, ())
    )


def _can_alias(plan: Plan, ends: Sequence[Ends]) -> bool:
    """Whether source and target may be one memory, in which elements have one place."""
    same = all((a.origin, a.strides) == (b.origin, b.strides) for a, b, *_ in ends)
    return same and len(plan.steps) <= 1 and all(map(_is_apart, plan.steps))


def scratch_elements(plan: Plan, rank: int) -> int:
    """Elements of a rank in all layouts through which a plan passes."""
    return sum(intervals.volume(layout.box(rank)) for layout in plan.scratch)


def scratch(plan: Plan, rank: int) -> list[Storage]:
    """Where these layouts lie in the scratch of a rank, one behind the other."""
    found, begin = [], 0
    for layout in plan.scratch:
        box = layout.box(rank)
        found.append(replace(Storage.of(box), first=begin))
        begin += intervals.volume(box)
    return found


def end_of(buffer: int) -> int:
    """The end in which a buffer of a plan lies."""
    return min(buffer, 2)


def place_of(ends: Ends, buffer: int, box: Box) -> int:
    """Where a box of a buffer begins in its end, in elements."""
    return offset_of(ends[buffer], box) + (ends[buffer].first if buffer > 1 else 0)


def offset_of(storage: Storage, box: Box) -> int:
    """Where a box begins in a storage, in elements."""
    begins = zip(box, storage.origin, storage.strides, strict=True)
    return sum((lo - origin) * stride for (lo, _), origin, stride in begins)


def _step(plan: Plan, step: Step, ends: Sequence[Ends], rank: int) -> list[int]:
    launches: list[list[int]] = []
    dimensions = len(plan.redistribution.source.shape(rank))
    received = 0
    code = find_reduction(step.reduction).code if step.reduction else 0
    head = [code, DTYPES.get(plan.redistribution.dtype, 0), dimensions, end_of(step.target)]
    rows: list[int] = []
    boxes = 0
    for sender, pieces in pieces_of(step, rank):
        source, target = ends[sender][step.source], ends[rank][step.target]
        for box, combines in pieces:
            received += intervals.volume(box) * (sender != rank)
            at = (place_of(ends[sender], step.source, box), place_of(ends[rank], step.target, box))
            rows += [0, 3 * sender + end_of(step.source), *at, combines]
            rows += [*intervals.shape(box), *source.strides, *target.strides]
            boxes += 1
        if step.reduction:  # operands come one after the other
            launches.append([*head, boxes, *rows])
            rows, boxes = [], 0
    if boxes:
        launches.append([*head, boxes, *rows])
    return [received, len(launches), *(word for launch in launches for word in launch)]


def pieces_of(step: Step, rank: int) -> Iterator[tuple[int, list[tuple[Box, bool]]]]:
    """Of each message to a rank: who sends it, and what replaces or combines with what is there."""
    reached: list[Box] = []
    for sender, receiver, box in step.table.of_rank(rank):
        if receiver != rank:
            continue
        if step.reduction is None or step.accumulate:
            yield sender, [(box, step.accumulate)]
            continue
        again = [common for other in reached if (common := intervals.intersect(box, other))]
        again = [common for common in again if not intervals.is_empty(common)]
        fresh = intervals.subtract_all(box, reached)
        reached += fresh
        yield sender, [*((common, True) for common in again), *((new, False) for new in fresh)]
