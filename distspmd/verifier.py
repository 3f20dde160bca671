"""Proof of a plan: each element that the target needs arrives once, each operand is reduced once.

The boxes of a plan cut the array into cells that no box cuts further. Per buffer, rank and cell the
proof tracks *which operands* of the value are combined there, as a bit mask: bit ``k`` for operand
``k`` of the source (bit 0 where the source holds values), one more bit for what the target held.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from distspmd import intervals
from distspmd.errors import PlanError
from distspmd.intervals import Box
from distspmd.plans import Message, Plan, Step, StepKind

Masks = NDArray[np.object_]


def verify(plan: Plan) -> None:
    """Prove a plan.

    Raises:
        PlanError: names the first step, rank and box that is wrong.
    """
    _Proof(plan).run()


class _Proof:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.move = plan.redistribution
        boxes = [box for layout in plan.buffers for box in layout.boxes]
        boxes += [message.box for step in plan.steps for message in step.messages]
        self.cuts = [
            sorted({0, extent, *(at for box in boxes for at in box[dimension])})
            for dimension, extent in enumerate(self.move.target.extents)
        ]
        self.ranks = max(layout.ranks for layout in plan.buffers)
        self.state = [self._blank() for _ in plan.buffers]
        source, target = self.move.source, self.move.target
        for rank in range(source.ranks):
            self.state[0][rank][self._cells(source.box(rank))] = 1 << source.operand(rank)
        self.full = np.bitwise_or.reduce(np.stack(self.state[0]), axis=0)
        operands = max((source.operand(rank) for rank in range(source.ranks)), default=0) + 1
        self.before = 1 << operands
        if self.move.accumulate:
            for rank in range(target.ranks):
                self.state[1][rank][self._cells(target.box(rank))] = self.before

    def _blank(self) -> list[Masks]:
        shape = tuple(len(cut) - 1 for cut in self.cuts)
        return [np.zeros(shape, dtype=object) for _ in range(self.ranks)]

    def _cells(self, box: Box) -> tuple[slice, ...]:
        return tuple(
            slice(bisect.bisect_left(cut, lo), bisect.bisect_left(cut, max(lo, hi)))
            for cut, (lo, hi) in zip(self.cuts, box, strict=True)
        )

    def _first(self, wrong: NDArray[np.bool_], box: Box | None = None) -> str:
        offset = [0] * wrong.ndim if box is None else [c.start for c in self._cells(box)]
        cell = [int(i) + o for i, o in zip(np.argwhere(wrong)[0], offset, strict=True)]
        return intervals.text(
            tuple((cut[i], cut[i + 1]) for cut, i in zip(self.cuts, cell, strict=True))
        )

    def run(self) -> None:
        for number, step in enumerate(self.plan.steps):
            self._run(step, f"step {number} ({step.kind}) of the plan {self.plan}")
        source, target = self.move.source, self.move.target
        for rank in range(target.ranks):
            cells = self._cells(target.box(rank))
            found, wanted = self.state[1][rank][cells], self.full[cells].copy()
            if self.move.accumulate:
                wanted = np.where(wanted != 0, wanted | self.before, self.before)
            wrong = np.asarray(found != wanted, dtype=bool)
            if wrong.any():
                raise PlanError(
                    f"the plan {self.plan} leaves [{self._first(wrong, target.box(rank))}] on rank "
                    f"{rank} without all of {source}: some of it never arrives, or too often."
                )

    def _run(self, step: Step, where: str) -> None:
        for problem in _malformed(step, self.plan):
            raise PlanError(f"{where}: {problem}")
        payloads = [self._payload(step, message, where) for message in step.messages]
        reached = [np.zeros(self.full.shape, dtype=bool) for _ in range(self.ranks)]
        for message, payload in zip(step.messages, payloads, strict=True):
            rank, cells = message.receiver, self._cells(message.box)
            if not intervals.contains(self.plan.buffers[step.target].box(rank), message.box):
                raise PlanError(
                    f"{where}: rank {rank} receives [{intervals.text(message.box)}] from rank "
                    f"{message.sender}, outside its box "
                    f"[{intervals.text(self.plan.buffers[step.target].box(rank))}]."
                )
            held = self.state[step.target][rank]
            again = reached[rank][cells]
            if step.reduction is None and not step.accumulate:
                if again.any():
                    raise PlanError(
                        f"{where}: rank {rank} receives [{self._first(again, message.box)}] twice."
                    )
                held[cells] = payload
            else:
                base = np.where(again | step.accumulate, held[cells], 0)
                if step.accumulate and not held[cells].all():
                    nothing = np.asarray(held[cells] == 0, dtype=bool)
                    raise PlanError(
                        f"{where}: rank {rank} accumulates into "
                        f"[{self._first(nothing, message.box)}], where it holds nothing."
                    )
                twice = np.asarray((base & payload) != 0, dtype=bool)
                if twice.any():
                    raise PlanError(
                        f"{where}: rank {rank} reduces an operand of "
                        f"[{self._first(twice, message.box)}] twice."
                    )
                held[cells] = base | payload
            reached[rank][cells] = True

    def _payload(self, step: Step, message: Message, where: str) -> Masks:
        layout, sender = self.plan.buffers[step.source], message.sender
        if not intervals.contains(layout.box(sender), message.box):
            raise PlanError(
                f"{where}: rank {sender} sends [{intervals.text(message.box)}] to rank "
                f"{message.receiver}, outside its box [{intervals.text(layout.box(sender))}]."
            )
        payload: Masks = self.state[step.source][sender][self._cells(message.box)].copy()
        missing = np.asarray(payload == 0, dtype=bool)
        if missing.any():
            raise PlanError(
                f"{where}: rank {sender} sends [{self._first(missing, message.box)}] to rank "
                f"{message.receiver} before it has it."
            )
        return payload


def _malformed(step: Step, plan: Plan) -> Iterator[str]:
    """What no step may say, and what its kind forbids: the shape of its collective call."""
    if not 0 <= step.source < len(plan.buffers) or not 0 < step.target < len(plan.buffers):
        yield f"it goes from buffer {step.source} to buffer {step.target}."
    if step.reduction not in (None, plan.redistribution.reduction):
        yield f"it reduces with {step.reduction}, not with {plan.redistribution.reduction}."
    if step.accumulate and step.reduction is None:
        yield "it accumulates without a reduction."
    place = {rank: group for group in step.groups for rank in group}
    if len(place) != sum(map(len, step.groups)):
        yield "a rank is in two groups."
    ranks = {*place, *(rank for m in step.messages for rank in (m.sender, m.receiver))}
    for rank in ranks.difference(range(plan.ranks)):
        yield f"there is no rank {rank}."
    for m in step.messages:
        if m.sender != m.receiver:
            yield from _misplaced(step, m, place)
    if step.kind in (StepKind.BROADCAST, StepKind.REDUCE):
        yield from _uneven(step, place)
    if step.kind is StepKind.ALL_REDUCE:
        yield from _incomplete(step, place)


def _misplaced(step: Step, m: Message, place: dict[int, tuple[int, ...]]) -> Iterator[str]:
    """A message between ranks that the call does not carry."""
    if step.kind is StepKind.COPY:
        yield f"rank {m.sender} sends to rank {m.receiver} in a copy."
    elif m.sender not in place or place[m.sender] != place.get(m.receiver):
        yield f"rank {m.sender} and rank {m.receiver} are in no common group."
    elif _first_rank(step, m) not in (None, place[m.sender][0]):
        yield f"rank {m.sender} sends to rank {m.receiver}, but the group starts at another rank."


def _first_rank(step: Step, message: Message) -> int | None:
    if step.kind in (StepKind.SCATTER, StepKind.BROADCAST):
        return message.sender
    if step.kind in (StepKind.GATHER, StepKind.REDUCE):
        return message.receiver
    return None


def _uneven(step: Step, place: dict[int, tuple[int, ...]]) -> Iterator[str]:
    """Where a call for one box of all ranks has two boxes, or leaves a rank out."""
    boxes: dict[tuple[int, ...], set[Box]] = {}
    ends: set[int] = set()
    for m in step.messages:
        if m.sender != m.receiver and m.sender in place:
            boxes.setdefault(place[m.sender], set()).add(m.box)
            ends.add(m.receiver if step.kind is StepKind.BROADCAST else m.sender)
    for group, found in boxes.items():
        if len(found) > 1:
            yield f"the group of rank {group[0]} has {len(found)} different boxes."
    for group in step.groups:
        for rank in group[1:]:
            if rank not in ends:
                yield f"rank {rank} has no message in the {step.kind} of its group."


def _incomplete(step: Step, place: dict[int, tuple[int, ...]]) -> Iterator[str]:
    """Where ranks of a group do not all send the same box to all, themselves too."""
    held: dict[tuple[int, ...], set[tuple[int, int, Box]]] = {}
    for m in step.messages:
        if m.sender in place:
            held.setdefault(place[m.sender], set()).add((m.sender, m.receiver, m.box))
    for group, found in held.items():
        boxes = len({box for _, _, box in found})
        if boxes > 1 or len(found) != len(group) ** 2:
            yield (
                f"the group of rank {group[0]} has {len(found)} messages of {boxes} boxes, not one "
                f"box from each of its {len(group)} ranks to each."
            )
