"""Proof of a plan: each element that the target needs arrives once, each operand is reduced once.

The boxes of a plan cut the array into cells that no box cuts further. For each buffer, rank and
cell, the proof tracks *which operands* of the value are combined there, as a bit mask: bit ``k``
for operand ``k`` of the source (bit 0 if the source holds values), and one more bit for the
previous contents of the target. Ranks that hold the same of the same box share one array of masks,
which is looked at once for all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import PlanError, refuses_as
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box, Numbers
from distspmd.layouts.layout import Layout
from distspmd.plans.contracts import find_malformed
from distspmd.plans.group_messages import GroupMessages
from distspmd.plans.plan import Message, Plan, Step

Masks = NDArray[Any]


def _bounds(step: Step) -> Iterator[Numbers]:
    """Boxes that have all ends of the boxes of a step's messages."""
    held = step.table
    if isinstance(held, GroupMessages):
        yield held.have[held.ranks]
        yield held.want[held.ranks]
    elif len(held):
        yield held.bounds


def _boxes(bounds: Numbers) -> list[Box]:
    return [tuple((lo, hi) for lo, hi in box) for box in bounds.tolist()]


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
        bounds += [ends for step in plan.steps for ends in _bounds(step)]
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
        self.state = [self._shared(layout) for layout in plan.buffers]
        self.own: set[tuple[int, int]] = set()
        self.full = self._blank(intervals.whole(target.extents))
        self._fill_source()
        if self.move.accumulate:
            self.state[1] = self._shared(target, self.before)
        if self.move.in_place:
            for rank, (mine, wanted) in enumerate(zip(source.boxes, target.boxes, strict=False)):
                common = intervals.intersect(mine, wanted)
                if not intervals.is_empty(common):
                    mask = 1 << source.operand(rank)
                    self.writable(1, rank)[self._cells(common, self.corners[1][rank])] = mask

    def _shared(self, layout: Layout, mask: int = 0) -> list[Masks]:
        """Masks of the tiles of a layout, one array for all ranks of a box."""
        found = {box: self._blank(box) for box in {*layout.boxes}}
        for held in found.values():
            held[...] = mask
        return [found[box] for box in layout.boxes]

    def _fill_source(self) -> None:
        source = self.move.source
        found: dict[tuple[Box, int], Masks] = {}
        for rank, box in enumerate(source.boxes):
            key = box, source.operand(rank)
            if key not in found:
                mask = 1 << key[1]
                found[key] = self._blank(box) | mask
                self.full[self._cells(box)] |= mask
            self.state[0][rank] = found[key]

    def writable(self, buffer: int, rank: int) -> Masks:
        """The masks of a rank, which no other one shares from now on."""
        if (buffer, rank) not in self.own:
            self.own.add((buffer, rank))
            self.state[buffer][rank] = self.state[buffer][rank].copy()
        return self.state[buffer][rank]

    def of(self, buffer: int, rank: int, box: Box) -> Masks:
        """The masks of a rank in a box, to be read."""
        return self.state[buffer][rank][self._cells(box, self.corners[buffer][rank])]

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
        if self.move.target.partial:
            self._prove_operands()
            return
        proved: set[tuple[int, Box]] = set()
        for rank, box in enumerate(self.move.target.boxes):
            found = self.state[1][rank]
            if (id(found), box) in proved:
                continue
            proved.add((id(found), box))
            wanted = self.full[self._cells(box)].copy()
            if self.move.accumulate:
                wanted = np.where(wanted != 0, wanted | self.before, self.before)
            wrong = np.asarray(found != wanted, dtype=bool)
            self._refuse(wrong, box, rank)

    def _prove_operands(self) -> None:
        """Each operand of the source is in one operand of the target, the same on all its ranks."""
        target = self.move.target
        combined: dict[int, Masks] = {}
        held = np.zeros_like(self.full, dtype=bool)
        for rank, box in enumerate(target.boxes):
            cells = self._cells(box)
            operand = target.operand(rank)
            if operand not in combined:
                combined[operand] = np.full_like(self.full, -1)
            known = combined[operand][cells]
            found = self.state[1][rank]
            self._refuse(np.asarray((known != -1) & (known != found), dtype=bool), box, rank)
            known[...] = found
            held[cells] = True
        every = np.zeros_like(self.full)
        for operand, masks in combined.items():
            masks[masks == -1] = 0
            rank = int(np.flatnonzero(target.operands == operand)[0])
            whole = intervals.whole(target.extents)
            self._refuse(np.asarray((every & masks) != 0, dtype=bool), whole, rank)
            every |= masks
        wrong = np.asarray(held & (every != self.full), dtype=bool)
        self._refuse(wrong, intervals.whole(target.extents), 0)

    def _refuse(self, wrong: NDArray[np.bool_], box: Box, rank: int) -> None:
        """Refuse the plan for what it leaves on a rank, if anything is wrong."""
        if wrong.any():
            raise PlanError(
                f"the plan {self.plan} leaves [{self._first(wrong, box)}] on rank {rank} "
                f"without all of {self.move.source}: some of it never arrives, or too often."
            )

    def _run(self, step: Step, where: str) -> None:
        for problem in find_malformed(step, self.plan):
            raise PlanError(f"{where}: {problem}")
        if isinstance(step.table, GroupMessages) and self._run_in_groups(step, step.table):
            return
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
            held = self.writable(step.target, rank)
            if rank not in reached:
                reached[rank] = np.zeros(held.shape, dtype=bool)
            cells = self._cells(message.box, self.corners[step.target][rank])
            self._deliver(step, message, payload, held[cells], reached[rank][cells], where)

    def _run_in_groups(self, step: Step, messages: GroupMessages) -> bool:
        """Carry out a step whose messages are not listed; not, if anything may be wrong with it.

        What the ranks of a group send is combined once, and each receiver takes its part of it.
        """
        have, want = _boxes(messages.have), _boxes(messages.want)
        nothing = intervals.empty(len(self.cuts))
        reached = []
        for members in messages.members:
            senders = [rank for rank in members.tolist() if not intervals.is_empty(have[rank])]
            takers = [rank for rank in members.tolist() if not intervals.is_empty(want[rank])]
            if not self._hold(step.source, senders, have) or not self._hold(
                step.target, takers, want
            ):
                return False
            whole = functools.reduce(intervals.hull, (have[rank] for rank in senders), nothing)
            sent = self._sent(step, senders, have, whole) if senders else None
            if sent is None:
                return False
            found = self._received(step, takers, want, (whole, sent), messages.to_self)
            if found is None:
                return False
            reached += [*zip(takers, found, strict=True)]
        for rank, masks in reached:
            self.state[step.target][rank] = masks
            self.own.discard((step.target, rank))
        return True

    def _hold(self, buffer: int, ranks: Sequence[int], boxes: Sequence[Box]) -> bool:
        """Whether ranks have their boxes within their tiles of a buffer."""
        layout = self.plan.buffers[buffer]
        return all(intervals.contains(layout.box(rank), boxes[rank]) for rank in ranks)

    def _sent(
        self, step: Step, senders: Sequence[int], have: Sequence[Box], whole: Box
    ) -> Masks | None:
        """What the ranks of a group send, combined; None if one has not got it, or it comes twice.

        Args:
            whole: the hull of what they have.
        """
        sent, corner = self._blank(whole), self._low(whole)
        for rank in senders:
            payload = self.of(step.source, rank, have[rank])
            there = sent[self._cells(have[rank], corner)]
            again = (there & payload) if step.reduction else there
            if not payload.all() or again.any():
                return None
            there |= payload
        return sent

    def _received(
        self,
        step: Step,
        takers: Sequence[int],
        want: Sequence[Box],
        sent: tuple[Box, Masks],
        to_self: bool,
    ) -> list[Masks] | None:
        """The masks of the receivers of a group behind a step; None if anything may be wrong.

        Args:
            sent: what the group sends, and the hull of it.
        """
        (whole, masks), target = sent, self.plan.buffers[step.target]
        corner = self._low(whole)
        known: dict[tuple[Box, Box, int], Masks] = {}
        found = []
        for rank in takers:
            before = self.state[step.target][rank]
            key = target.box(rank), want[rank], id(before)
            if key not in known:
                common = intervals.intersect(want[rank], whole)
                arriving = masks[self._cells(common, corner)]
                after = before.copy()
                there = after[self._cells(common, self.corners[step.target][rank])]
                some = arriving != 0
                if step.accumulate and ((there == 0) | (there & arriving != 0))[some].any():
                    return None
                combined = there | arriving if step.accumulate else arriving
                there[...] = np.where(some, combined, there)
                known[key] = after
            if not to_self and not self._has_kept(step, rank, known[key]):
                return None
            found.append(known[key])
        return found

    def _has_kept(self, step: Step, rank: int, after: Masks) -> bool:
        """Whether a rank that sends itself nothing has had of its own box what it has behind."""
        assert isinstance(step.table, GroupMessages)
        (own,) = _boxes(step.table.have[rank][None])
        if intervals.is_empty(own):
            return True
        before, corner = self.state[step.target][rank], self.corners[step.target][rank]
        if step.reduction or not intervals.contains(self.plan.buffers[step.target].box(rank), own):
            return False
        cells = self._cells(own, corner)
        return bool((before[cells] == after[cells]).all())

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
        payload: Masks = self.of(step.source, sender, message.box).copy()
        if not payload.all():
            missing = np.asarray(payload == 0, dtype=bool)
            raise PlanError(
                f"{where}: rank {sender} sends [{self._first(missing, message.box)}] to rank "
                f"{message.receiver} before it has it."
            )
        return payload
