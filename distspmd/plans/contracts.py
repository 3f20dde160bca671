"""Contracts of steps: what each kind of step promises, so that a collective of MPI can carry it.

Messages are looked at as columns, all at once: a call among thousands of ranks has millions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts.intervals import Numbers
from distspmd.plans.collectives import CollectiveSpec, Ends, First
from distspmd.plans.group_messages import GroupMessages
from distspmd.plans.plan import Plan, Step

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class _Calls:
    """A step's messages, and the groups of their ranks.

    Attributes:
        step: the step.
        group: number of the group of each rank; -1 where it is in none.
    """

    step: Step
    group: Numbers

    @property
    def senders(self) -> Numbers:
        return self.step.table.senders

    @property
    def receivers(self) -> Numbers:
        return self.step.table.receivers

    @cached_property
    def boxes(self) -> Numbers:
        """A number for the box of each message."""
        return _numbered(self.step.table.table[:, 2:])

    @cached_property
    def sizes(self) -> Numbers:
        """Ranks of the group of each rank; 1 of a rank in none."""
        counts = np.array([*map(len, self.step.groups), 1], np.int64)
        return counts[self.group]

    @cached_property
    def firsts(self) -> Numbers:
        """The first rank of each group."""
        return np.array([group[0] if group else -1 for group in self.step.groups], np.int64)


Check = Callable[[_Calls], Iterator[str]]
"""Of a step, whose messages between ranks stay in a group, what breaks its promise."""


def find_malformed(step: Step, plan: Plan) -> Iterator[str]:
    """What no step may say, and what its kind forbids: the shape of its collective call."""
    if not 0 <= step.source < len(plan.buffers) or not 0 < step.target < len(plan.buffers):
        yield f"it goes from buffer {step.source} to buffer {step.target}."
    if step.reduction not in (None, plan.redistribution.reduction):
        yield f"it reduces with {step.reduction}, not with {plan.redistribution.reduction}."
    if step.accumulate and step.reduction is None:
        yield "it accumulates without a reduction."
    grouped = [rank for group in step.groups for rank in group]
    if len({*grouped}) != len(grouped):
        yield "a rank is in two groups."
    named = np.unique(np.concatenate([grouped, _ends(step)]).astype(np.int64))
    outside = named[(named < 0) | (named >= plan.ranks)]
    if len(outside):
        for rank in outside.tolist():
            yield f"there is no rank {rank}."
        return
    if not _keeps_promise(step):
        yield from _found_among_messages(step, plan.ranks)


def _ends(step: Step) -> Numbers:
    """The ranks that send and receive."""
    held = step.table
    return held.ranks if isinstance(held, GroupMessages) else held.table[:, :2].ravel()


def _keeps_promise(step: Step) -> bool:
    """Whether messages that are not listed keep the promise of the kind for sure."""
    held, spec = step.table, step.kind.spec
    return isinstance(held, GroupMessages) and held.is_within(step.groups) and held.keeps(spec)


def _found_among_messages(step: Step, ranks: int) -> Iterator[str]:
    """What the kind forbids."""
    group = np.full(ranks, -1, np.int64)
    for number, members in enumerate(step.groups):
        group[list(members)] = number
    calls = _Calls(step, group)
    yield from _misplaced(calls)
    check = _promise(step.kind.spec)
    if check is not None:
        yield from check(calls)


def _misplaced(calls: _Calls) -> Iterator[str]:
    """Messages between ranks that the call does not carry."""
    far = calls.step.table.between
    spec, (senders, receivers) = calls.step.kind.spec, (calls.senders, calls.receivers)
    home = calls.group[senders]
    if not spec.moves:
        wrong, says = far, "sends to rank {1} in a copy."
    else:
        wrong = far & ((home < 0) | (home != calls.group[receivers]))
        says = "and rank {1} are in no common group."
    yield from _said(calls, wrong, "rank {0} " + says)
    if spec.moves and spec.first is not None and len(calls.firsts):
        ends = senders if spec.first is First.SENDS else receivers
        yield from _said(
            calls,
            far & ~wrong & (ends != calls.firsts[home]),
            "rank {0} sends to rank {1}, but the group starts at another rank.",
        )


def _said(calls: _Calls, wrong: Flags, sentence: str) -> Iterator[str]:
    """A sentence about each wrong message."""
    for at in np.flatnonzero(wrong).tolist():
        yield sentence.format(int(calls.senders[at]), int(calls.receivers[at]))


def _numbered(rows: Numbers) -> Numbers:
    """A number for each row; the same for equal ones."""
    return np.unique(_keys(rows), return_inverse=True)[1].reshape(-1)


def _keys(rows: Numbers) -> NDArray[Any]:
    """One key for each row; the same for equal ones alone."""
    if not len(rows):
        return np.zeros(0, np.int64)
    spans = [int(most) + 1 for most in rows.max(axis=0)]
    if rows.min() < 0 or math.prod(spans) >= 2**62:
        rows = np.ascontiguousarray(rows)
        return rows.view([("", rows.dtype)] * rows.shape[1]).reshape(-1)
    found = np.zeros(len(rows), np.int64)
    for column, span in zip(rows.T, spans, strict=True):
        found = found * span + column
    return found


def _is_new(*columns: Numbers) -> Flags:
    """Whether each row has not come before."""
    keys = _keys(np.stack(columns, axis=1))
    found = np.zeros(len(keys), bool)
    found[np.unique(keys, return_index=True)[1]] = True
    return found


def _differ(keys: Numbers, values: Numbers, count: int) -> Flags:
    """Of each key whether it has two different values."""
    pairs = _is_new(keys, values)
    return np.bincount(keys[pairs], minlength=count) > 1


def _uneven(calls: _Calls) -> Iterator[str]:
    """Where a call for one box of all ranks has two boxes, or leaves a rank out."""
    far, step = calls.step.table.between, calls.step
    home, boxes = calls.group[calls.senders][far], calls.boxes[far]
    inside = home >= 0
    pairs = _is_new(home[inside], boxes[inside])
    counts = np.bincount(home[inside][pairs], minlength=len(step.groups))
    for number in np.flatnonzero(counts > 1).tolist():
        yield (f"the group of rank {step.groups[number][0]} has {counts[number]} different boxes.")
    ends = calls.receivers if step.kind.spec.first is First.SENDS else calls.senders
    reached = np.zeros(len(calls.group), bool)
    reached[ends[far]] = True
    for group in step.groups:
        for rank in group[1:]:
            if not reached[rank]:
                yield f"rank {rank} has no message in the {step.kind} of its group."


def _repeated(calls: _Calls) -> Iterator[str]:
    """Where a rank sends twice, to one rank or at all."""
    far = calls.step.table.between
    again = np.zeros(len(far), bool)
    senders, receivers = calls.senders[far], calls.receivers[far]
    if calls.step.kind.spec.sends is Ends.ONE:
        again[far] = ~(_is_new(senders) & _is_new(receivers))
    else:
        again[far] = ~_is_new(senders, receivers)
    yield from _said(calls, again, "rank {0} sends to rank {1} twice, or one of them to another.")


def _not_to_all(calls: _Calls) -> Iterator[str]:
    """Where a rank does not send one box to all others of its group."""
    far, ranks = calls.step.table.between, len(calls.group)
    senders, receivers, boxes = calls.senders[far], calls.receivers[far], calls.boxes[far]
    counts = np.bincount(senders, minlength=ranks)
    again = np.bincount(senders[~_is_new(senders, receivers)], minlength=ranks) > 0
    wrong = (counts != calls.sizes - 1) | again | _differ(senders, boxes, ranks)
    for rank in np.flatnonzero(wrong & (counts > 0)).tolist():
        yield f"rank {rank} does not send one box to all others in the {calls.step.kind}."


def _not_from_all(calls: _Calls) -> Iterator[str]:
    """Where a rank does not combine one box of all ranks of its group, itself included."""
    ranks = len(calls.group)
    counts = np.bincount(calls.receivers, minlength=ranks)
    again = ~_is_new(calls.senders, calls.receivers)
    twice = np.bincount(calls.receivers[again], minlength=ranks) > 0
    wrong = (counts != calls.sizes) | twice | _differ(calls.receivers, calls.boxes, ranks)
    for rank in np.flatnonzero(wrong & (counts > 0)).tolist():
        yield f"rank {rank} does not combine one box of all in the {calls.step.kind}."


def _incomplete(calls: _Calls) -> Iterator[str]:
    """Where ranks of a group do not all send the same box to all, themselves too."""
    step, home = calls.step, calls.group[calls.senders]
    inside = home >= 0
    boxes = home[inside], calls.boxes[inside]
    ends = calls.senders[inside], calls.receivers[inside], calls.boxes[inside]
    count = len(step.groups)
    different = np.bincount(home[inside][_is_new(*boxes)], minlength=count)
    found = np.bincount(home[inside][_is_new(*ends)], minlength=count)
    sizes = np.array([*map(len, step.groups)], np.int64)
    for number in np.flatnonzero((found > 0) & ((different > 1) | (found != sizes**2))).tolist():
        yield (
            f"the group of rank {step.groups[number][0]} has {found[number]} messages of "
            f"{different[number]} boxes, not one box from each of its {sizes[number]} ranks to "
            "each."
        )


def _promise(spec: CollectiveSpec) -> Check | None:
    """What checks that a step keeps the promise of its kind; None where it promises nothing."""
    match spec:
        case CollectiveSpec(common=True, first=None):
            return _incomplete
        case CollectiveSpec(common=True):
            return _uneven
        case CollectiveSpec(sends=Ends.ALL):
            return _not_to_all
        case CollectiveSpec(receives=Ends.ALL):
            return _not_from_all
        case CollectiveSpec(sends=Ends.ONE | Ends.ONE_EACH):
            return _repeated
        case _:
            return None
