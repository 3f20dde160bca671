"""The table by which a rank pulls what plans give it out of the other ranks' tiles.

``device/pulls.hpp`` reads it; it holds, as int64 words in this order::

    table    rank, ranks, plans
    plan     fits, apart, itemsize, source, target, steps   where an element of each end is, or -1
    step     received, launches                             elements that come from other ranks
    launch   operation, dtype, dimensions, boxes            operation 0: nothing is combined
    box      0, base, from, to, combines, extents, strides of the source, strides of the target

The base ``2 * rank + end`` is the pointer of a rank's source (0) or target (1). Offsets and strides
are in elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    if plan.scratch:
        return "it passes through other layouts"
    dtype = plan.redistribution.dtype
    for step in plan.steps:
        if step.reduction:
            if not 0 < find_reduction(step.reduction).code <= _MOST_CODE:
                return f"its operands are combined by {step.reduction}"
            if dtype not in _COMBINED:
                return f"its operands are {dtype}"
        if step.source == step.target and not _is_apart(step):
            return "a rank writes what another one reads"
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
    plans: Sequence[Plan], held: Sequence[Sequence[Ends]], rank: int
) -> NDArray[np.int64]:
    """The table of a rank.

    Args:
        plans: that all ranks run.
        held: of each rank, and of each plan, the storages of its ends.
        rank: whose table.
    """
    found = [rank, len(held), len(plans)]
    for number, plan in enumerate(plans):
        ends = [of_rank[number] for of_rank in held]
        fits = not why_no_pulls(plan)
        found += [fits, fits and _can_alias(plan, ends), plan.itemsize]
        if not fits:
            found += [-1, -1, 0]
            continue
        for end in (0, 1):
            box = plan.buffers[end].box(rank)
            found.append(-1 if intervals.is_empty(box) else _offset(ends[rank][end], box))
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
    same = all((a.origin, a.strides) == (b.origin, b.strides) for a, b in ends)
    return same and len(plan.steps) <= 1 and all(map(_is_apart, plan.steps))


def _offset(storage: Storage, box: Box) -> int:
    begins = zip(box, storage.origin, storage.strides, strict=True)
    return sum((lo - origin) * stride for (lo, _), origin, stride in begins)


def _step(plan: Plan, step: Step, ends: Sequence[Ends], rank: int) -> list[int]:
    launches: list[list[int]] = []
    dimensions = len(plan.redistribution.source.shape(rank))
    received = 0
    code = find_reduction(step.reduction).code if step.reduction else 0
    head = [code, DTYPES.get(plan.redistribution.dtype, 0), dimensions]
    rows: list[int] = []
    boxes = 0
    for sender, pieces in _pieces(step, rank):
        source, target = ends[sender][step.source], ends[rank][step.target]
        for box, combines in pieces:
            received += intervals.volume(box) * (sender != rank)
            at = (_offset(source, box), _offset(target, box))
            rows += [0, 2 * sender + step.source, *at, combines]
            rows += [*intervals.shape(box), *source.strides, *target.strides]
            boxes += 1
        if step.reduction:  # operands come one after the other
            launches.append([*head, boxes, *rows])
            rows, boxes = [], 0
    if boxes:
        launches.append([*head, boxes, *rows])
    return [received, len(launches), *(word for launch in launches for word in launch)]


def _pieces(step: Step, rank: int) -> Iterator[tuple[int, list[tuple[Box, bool]]]]:
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
