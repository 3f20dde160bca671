"""Proof of a plan: each element that the target needs arrives once, each operand is reduced once.

The boxes of a plan cut the array into cells that no box cuts further. For each buffer, rank and
cell, the proof tracks *which operands* of the value are combined there, as a bit mask: bit ``k``
for operand ``k`` of the source (bit 0 if the source holds values), and one more bit for the
previous contents of the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import PlanError, refuses_as
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.plans.contracts import find_malformed
from distspmd.plans.plan import Message, Plan, Step

Masks = NDArray[Any]


@refuses_as(PlanError)
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
        bounds = [layout.bounds for layout in plan.buffers]
        bounds += [step.table.bounds for step in plan.steps if len(step.messages)]
        self.cuts = [
            np.unique(
                np.concatenate([[0, extent], *(part[:, dimension].ravel() for part in bounds)])
            )
            for dimension, extent in enumerate(self.move.target.extents)
        ]
        self.places = [{at: place for place, at in enumerate(cut.tolist())} for cut in self.cuts]
        source, target = self.move.source, self.move.target
        operands = int(source.operands.max(initial=0)) + 1
        self.before = 1 << operands
        self.dtype = np.dtype(np.int64 if operands < 62 else object)
        self.corners = [[self._low(box) for box in layout.boxes] for layout in plan.buffers]
        self.state = [[self._blank(box) for box in layout.boxes] for layout in plan.buffers]
        self.full = self._blank(intervals.whole(target.extents))
        for rank, box in enumerate(source.boxes):
            self.state[0][rank][...] = mask = 1 << source.operand(rank)
            self.full[self._cells(box)] |= mask
        if self.move.accumulate:
            for held in self.state[1]:
                held[...] = self.before
        if self.move.in_place:
            for rank, (mine, wanted) in enumerate(zip(source.boxes, target.boxes, strict=False)):
                common = intervals.intersect(mine, wanted)
                if not intervals.is_empty(common):
                    mask = 1 << source.operand(rank)
                    self.state[1][rank][self._cells(common, self.corners[1][rank])] = mask

    def _low(self, box: Box) -> list[int]:
        return [places[lo] for places, (lo, _) in zip(self.places, box, strict=True)]

    def _blank(self, box: Box) -> Masks:
        extents = [part.stop - part.start for part in self._cells(box)]
        return np.zeros([max(0, extent) for extent in extents], dtype=self.dtype)

    def _cells(self, box: Box, corner: Sequence[int] | None = None) -> tuple[slice, ...]:
        """The cells of a box, in the array of cells that begins at a corner."""
        return tuple(
            slice(places[lo] - at, places[max(lo, hi)] - at)
            for places, (lo, hi), at in zip(self.places, box, corner or [0] * len(box), strict=True)
        )

    def _first(self, wrong: NDArray[np.bool_], box: Box) -> str:
        """The first wrong cell of a box."""
        cell = np.argwhere(wrong)[0] + self._low(box)
        return intervals.box_text(
            tuple((int(cut[i]), int(cut[i + 1])) for cut, i in zip(self.cuts, cell, strict=True))
        )

    def run(self) -> None:
        for number, step in enumerate(self.plan.steps):
            self._run(step, f"step {number} ({step.kind}) of the plan {self.plan}")
        target = self.move.target
        for rank, box in enumerate(target.boxes):
            found, wanted = self.state[1][rank], self.full[self._cells(box)].copy()
            if self.move.accumulate:
                wanted = np.where(wanted != 0, wanted | self.before, self.before)
            wrong = np.asarray(found != wanted, dtype=bool)
            if wrong.any():
                raise PlanError(
                    f"the plan {self.plan} leaves [{self._first(wrong, box)}] on rank {rank} "
                    f"without all of {self.move.source}: some of it never arrives, or too often."
                )

    def _run(self, step: Step, where: str) -> None:
        for problem in find_malformed(step, self.plan):
            raise PlanError(f"{where}: {problem}")
        payloads = [self._payload(step, message, where) for message in step.messages]
        reached: dict[int, NDArray[np.bool_]] = {}
        target = self.plan.buffers[step.target]
        for message, payload in zip(step.messages, payloads, strict=True):
            rank = message.receiver
            if not intervals.contains(target.box(rank), message.box):
                raise PlanError(
                    f"{where}: rank {rank} receives [{intervals.box_text(message.box)}] from rank "
                    f"{message.sender}, outside its box [{intervals.box_text(target.box(rank))}]."
                )
            if intervals.is_empty(message.box):
                continue
            held = self.state[step.target][rank]
            if rank not in reached:
                reached[rank] = np.zeros(held.shape, dtype=bool)
            cells = self._cells(message.box, self.corners[step.target][rank])
            self._deliver(step, message, payload, held[cells], reached[rank][cells], where)

    def _deliver(
        self,
        step: Step,
        message: Message,
        payload: Masks,
        held: Masks,
        reached: NDArray[np.bool_],
        where: str,
    ) -> None:
        """Write a message into the cells of its receiver, where it has not been ``reached``."""
        rank, box = message.receiver, message.box
        if step.reduction is None and not step.accumulate:
            if reached.any():
                raise PlanError(
                    f"{where}: rank {rank} receives [{self._first(reached, box)}] twice."
                )
            held[...] = payload
        else:
            if step.accumulate and not held.all():
                nothing = np.asarray(held == 0, dtype=bool)
                raise PlanError(
                    f"{where}: rank {rank} accumulates into [{self._first(nothing, box)}], "
                    "where it holds nothing."
                )
            base = np.where(reached | step.accumulate, held, 0)
            twice = np.asarray((base & payload) != 0, dtype=bool)
            if twice.any():
                raise PlanError(
                    f"{where}: rank {rank} reduces an operand of [{self._first(twice, box)}] twice."
                )
            held[...] = base | payload
        reached[...] = True

    def _payload(self, step: Step, message: Message, where: str) -> Masks:
        layout, sender = self.plan.buffers[step.source], message.sender
        if not intervals.contains(layout.box(sender), message.box):
            raise PlanError(
                f"{where}: rank {sender} sends [{intervals.box_text(message.box)}] to rank "
                f"{message.receiver}, outside its box [{intervals.box_text(layout.box(sender))}]."
            )
        if intervals.is_empty(message.box):
            return np.zeros(0, dtype=self.dtype)
        cells = self._cells(message.box, self.corners[step.source][sender])
        payload: Masks = self.state[step.source][sender][cells].copy()
        if not payload.all():
            missing = np.asarray(payload == 0, dtype=bool)
            raise PlanError(
                f"{where}: rank {sender} sends [{self._first(missing, message.box)}] to rank "
                f"{message.receiver} before it has it."
            )
        return payload
