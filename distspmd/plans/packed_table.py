"""The table by which a rank packs what plans take out of its tiles, and unpacks what it receives.

``device/messages.hpp`` reads it. What a rank sends to another one in a step lies in its outbox, one
message behind the other, and what it receives in its inbox; both are memory of its device. The
table holds, as int64 words in this order::

    table    rank, ranks, plans
    plan     fits, apart, itemsize, source, target, scratch, outbox, inbox, steps
    step     received, messages out, (rank, begin, elements)*, messages in, likewise,
             launches that pack, launches that unpack
    launch   as in plans/pull_table.py

Bases and ends are the rank's own: source (0), target (1), scratch (2), outbox (3), inbox (4). The
words source and target say where an element of each is, or -1; scratch, outbox and inbox how many
elements they have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.layouts.reductions import find_reduction
from distspmd.plans.encoding import DTYPES, Storage
from distspmd.plans.plan import Plan, Step
from distspmd.plans.pull_table import (
    Ends,
    end_of,
    offset_of,
    pieces_of,
    place_of,
    scratch,
    scratch_elements,
    why_not_combined,
)

_OUTBOX, _INBOX = 3, 4


def packed_table(
    plans: Sequence[Plan], held: Sequence[Ends], rank: int, ranks: int
) -> NDArray[np.int64]:
    """The table of a rank.

    Args:
        plans: that all ranks run.
        held: of each plan, the storages of this rank's source and target.
        rank: whose table.
        ranks: how many meet.
    """
    found = [rank, ranks, len(plans)]
    for plan, own in zip(plans, held, strict=True):
        ends = [*own, *scratch(plan, rank)]
        fits = not why_not_combined(plan)
        same = (own[0].origin, own[0].strides) == (own[1].origin, own[1].strides)
        found += [fits, same and len(plan.steps) <= 1, plan.itemsize]
        for end in (0, 1):
            box = plan.buffers[end].box(rank)
            found.append(-1 if intervals.is_empty(box) else offset_of(own[end], box))
        steps = [_PackedStep(plan, step, ends, rank) for step in plan.steps] if fits else []
        found += [
            scratch_elements(plan, rank),
            max((step.outbox for step in steps), default=0),
            max((step.inbox for step in steps), default=0),
            len(steps),
        ]
        for step in steps:
            found += step.words()
    return np.array(found, dtype=np.int64)


class _PackedStep:
    """A step of a plan on a rank."""

    def __init__(self, plan: Plan, step: Step, ends: Ends, rank: int) -> None:
        self.outbox = self.inbox = self.received = 0
        self._messages: tuple[list[list[int]], list[list[int]]] = ([], [])
        self._packs: list[list[int]] = []
        self._unpacks: list[list[int]] = []
        self._rank, self._ends, self._step = rank, ends, step
        self._code = find_reduction(step.reduction).code if step.reduction else 0
        self._dtype = DTYPES.get(plan.redistribution.dtype, 0)
        self._dimensions = len(plan.redistribution.source.shape(rank))
        arrived: list[tuple[int | None, Box]] = []  # where in the inbox, if it goes by it
        rows: dict[int, list[int]] = {_OUTBOX: [], _INBOX: []}
        for sender, receiver, box in step.table.of_rank(rank):
            if sender == receiver and not step.reduction:
                arrived.append((None, box))  # it goes from tile to tile
                continue
            volume = intervals.volume(box)
            if receiver == rank:
                arrived.append((self.inbox, box))
                if sender != rank:
                    self._messages[1].append([sender, self.inbox, volume])
                    self.received += volume
                else:  # as another operand
                    rows[_INBOX] += self._packed(box, self.inbox)
                self.inbox += volume
            else:
                self._messages[0].append([receiver, self.outbox, volume])
                rows[_OUTBOX] += self._packed(box, self.outbox)
                self.outbox += volume
        for end, found in rows.items():
            if found:
                self._packs.append(self._launch(0, end, found))
        self._unpack(arrived)

    def _packed(self, box: Box, begin: int) -> list[int]:
        source = self._ends[self._step.source]
        extents = intervals.shape(box)
        strides = Storage.of(box).strides
        place = place_of(self._ends, self._step.source, box)
        end = end_of(self._step.source)
        return [0, end, place, begin, 0, *extents, *source.strides, *strides]

    def _unpack(self, arrived: Sequence[tuple[int | None, Box]]) -> None:
        """What is received goes to its place; operands come one after the other."""
        step, target = self._step, self._ends[self._step.target]
        to = end_of(step.target)
        rows: list[int] = []
        pieces = (found for _, found in pieces_of(step, self._rank))
        for (begin, whole), boxes in zip(arrived, pieces, strict=True):
            if begin is None and step.source == step.target:
                continue  # it is there
            for box, combines in boxes:
                if begin is None:
                    source, base = self._ends[step.source], end_of(step.source)
                    place = place_of(self._ends, step.source, box)
                else:
                    source, base = Storage.of(whole), _INBOX
                    place = begin + offset_of(source, box)
                at = [0, base, place, place_of(self._ends, step.target, box), combines]
                rows += [*at, *intervals.shape(box), *source.strides, *target.strides]
            if step.reduction:
                self._unpacks.append(self._launch(self._code, to, rows))
                rows = []
        if rows:
            self._unpacks.append(self._launch(0, to, rows))

    def _launch(self, code: int, end: int, rows: list[int]) -> list[int]:
        boxes = len(rows) // (5 + 3 * self._dimensions)
        return [code, self._dtype, self._dimensions, end, boxes, *rows]

    def words(self) -> list[int]:
        """The step's part of the table."""
        found = [self.received]
        for messages in self._messages:
            found += [len(messages), *(word for message in messages for word in message)]
        for launches in (self._packs, self._unpacks):
            found += [len(launches), *(word for launch in launches for word in launch)]
        return found
