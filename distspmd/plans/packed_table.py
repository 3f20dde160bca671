"""The table by which a rank packs what plans take out of its tiles, and unpacks what it receives.

``device/messages.hpp`` reads it. What a rank sends to another one in a step lies in its outbox, one
message behind the other, and what it receives in its inbox; both are memory of its device. The
table holds, as int64 words in this order::

    table    rank, ranks, plans
    plan     fits, apart, itemsize, source, target, scratch, outbox, inbox, portion, steps
    step     received, messages out, (rank, begin, elements)*,
             messages in, (rank, begin, elements, launch, first)*,
             launches that pack, launches that unpack
    launch   as in plans/pull_table.py

Bases and ends are the rank's own: source (0), target (1), scratch (2), outbox (3), inbox (4). The
words source and target say where an element of each is, or -1; scratch, outbox and inbox how many
elements they have. A box that several ranks get lies in the outbox once.

Messages have at most as many elements as a portion. When one has come, ``launch`` unpacks it: its
elements from ``first`` on; or all of them (-1), where other messages have to be there, too, which
say -1 for the launch. Messages of no elements are not sent: they say which launch comes next.
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


MOST_BYTES = 1 << 30
"""Of a message: MPI counts in int."""


def packed_table(
    plans: Sequence[Plan],
    held: Sequence[Ends],
    rank: int,
    ranks: int,
    portions: Sequence[int] | None = None,
) -> NDArray[np.int64]:
    """The table of a rank.

    Args:
        plans: that all ranks run.
        held: of each plan, the storages of this rank's source and target.
        rank: whose table.
        ranks: how many meet.
        portions: of each plan, bytes that are packed and sent at once; 0 for one that goes
            otherwise. Left out, messages are whole.
    """
    found = [rank, ranks, len(plans)]
    for plan, own, most in zip(plans, held, portions or [MOST_BYTES] * len(plans), strict=True):
        ends = [*own, *scratch(plan, rank)]
        fits = most > 0 and not why_not_combined(plan)
        same = (own[0].origin, own[0].strides) == (own[1].origin, own[1].strides)
        portion = max(1, min(most, MOST_BYTES) // plan.itemsize)
        found += [fits, same and len(plan.steps) <= 1, plan.itemsize]
        for end in (0, 1):
            box = plan.buffers[end].box(rank)
            found.append(-1 if intervals.is_empty(box) else offset_of(own[end], box))
        steps = [_PackedStep(plan, step, ends, rank, portion) for step in plan.steps if fits]
        found += [
            scratch_elements(plan, rank),
            max((step.outbox for step in steps), default=0),
            max((step.inbox for step in steps), default=0),
            portion,
            len(steps),
        ]
        for step in steps:
            found += step.words()
    return np.array(found, dtype=np.int64)


class _PackedStep:
    """A step of a plan on a rank, whose messages have at most so many elements."""

    def __init__(self, plan: Plan, step: Step, ends: Ends, rank: int, portion: int) -> None:
        self.outbox = self.inbox = self.received = 0
        self._out: list[list[int]] = []
        self._in: list[list[int]] = []
        self._packs: list[list[int]] = []
        self._unpacks: list[list[int]] = []
        self._rank, self._ends, self._step, self._portion = rank, ends, step, portion
        self._code = find_reduction(step.reduction).code if step.reduction else 0
        self._dtype = DTYPES.get(plan.redistribution.dtype, 0)
        self._dimensions = len(plan.redistribution.source.shape(rank))
        arrived: list[tuple[int, int, Box]] = []  # of whom, where in the inbox
        packed: dict[Box, int] = {}  # where in the outbox
        rows: dict[int, list[int]] = {_OUTBOX: [], _INBOX: []}
        for sender, receiver, box in step.table.of_rank(rank):
            volume = intervals.volume(box)
            if receiver == rank:
                arrived.append((sender, self.inbox, box))
                if sender != rank:
                    self.received += volume
                elif step.reduction:  # as another operand
                    rows[_INBOX] += self._packed(box, self.inbox)
                else:
                    continue  # it goes from tile to tile
                self.inbox += volume
                continue
            if box not in packed:
                packed[box] = self.outbox
                rows[_OUTBOX] += self._packed(box, self.outbox)
                self.outbox += volume
            for at, elements in self._portions(volume):
                self._out.append([receiver, packed[box] + at, elements])
        for end, found in rows.items():
            if found:
                self._packs.append(self._launch(0, end, found))
        (self._combine if step.reduction else self._unpack)(arrived)

    def _portions(self, volume: int) -> Iterator[tuple[int, int]]:
        """Messages of so many elements: where each begins, and its elements."""
        for at in range(0, volume, self._portion):
            yield at, min(self._portion, volume - at)

    def _packed(self, box: Box, begin: int) -> list[int]:
        source = self._ends[self._step.source]
        extents = intervals.shape(box)
        strides = Storage.of(box).strides
        place = place_of(self._ends, self._step.source, box)
        end = end_of(self._step.source)
        return [0, end, place, begin, 0, *extents, *source.strides, *strides]

    def _combine(self, arrived: Sequence[tuple[int, int, Box]]) -> None:
        """Operands are combined one after the other, when all of each has come."""
        pieces = (found for _, found in pieces_of(self._step, self._rank))
        for launch, ((sender, begin, whole), boxes) in enumerate(zip(arrived, pieces, strict=True)):
            own = sender == self._rank
            parts = [(0, 0)] if own else list(self._portions(intervals.volume(whole)))
            self._in += [[sender, begin + at, elements, -1, -1] for at, elements in parts]
            self._in[-1][3] = launch
            rows = [word for box, adds in boxes for word in self._row(box, begin, whole, adds)]
            self._unpacks.append(self._launch(self._code, end_of(self._step.target), rows))

    def _unpack(self, arrived: Sequence[tuple[int, int, Box]]) -> None:
        """What is the rank's own goes to its place first, and then what has come, as it comes."""
        step = self._step
        own = [box for sender, _, box in arrived if sender == self._rank]
        if own and step.source != step.target:  # else it is there
            rows = [word for box in own for word in self._row(box)]
            self._in.append([self._rank, 0, 0, len(self._unpacks), -1])
            self._unpacks.append(self._launch(0, end_of(step.target), rows))
        rows, first = [], 0
        for sender, begin, box in arrived:
            if sender == self._rank:
                continue
            for at, elements in self._portions(intervals.volume(box)):
                self._in.append([sender, begin + at, elements, len(self._unpacks), first + at])
            first += intervals.volume(box)
            rows += self._row(box, begin, box)
        if rows:
            self._unpacks.append(self._launch(0, end_of(step.target), rows))

    def _row(
        self, box: Box, begin: int = 0, whole: Box | None = None, adds: bool = False
    ) -> list[int]:
        """Bring a box to its place, from a whole one in the inbox, or else from the source."""
        step = self._step
        if whole is None:
            source, base = self._ends[step.source], end_of(step.source)
            place = place_of(self._ends, step.source, box)
        else:
            source, base = Storage.of(whole), _INBOX
            place = begin + offset_of(source, box)
        at = [0, base, place, place_of(self._ends, step.target, box), adds]
        strides = self._ends[step.target].strides
        return [*at, *intervals.shape(box), *source.strides, *strides]

    def _launch(self, code: int, end: int, rows: list[int]) -> list[int]:
        boxes = len(rows) // (5 + 3 * self._dimensions)
        return [code, self._dtype, self._dimensions, end, boxes, *rows]

    def words(self) -> list[int]:
        """The step's part of the table."""
        found = [self.received]
        for rows in (self._out, self._in, self._packs, self._unpacks):
            found += [len(rows), *(word for row in rows for word in row)]
        return found
