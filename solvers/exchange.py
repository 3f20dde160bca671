"""Anything to anything: intersect the boxes, and exchange exactly what is missing in one call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from distspmd import intervals
from distspmd.intervals import Box
from distspmd.layout import Layout
from distspmd.plans import Message, Plan, Refusal, Step, StepKind
from distspmd.redistribution import Redistribution


@dataclass(frozen=True)
class Exchange:
    """One MPI_Alltoallv of exactly the missing boxes; the fallback and the oracle.

    Where several ranks hold what a rank lacks, the one that has sent least so far sends it.
    """

    name: ClassVar[str] = "exchange"

    def plan(self, redistribution: Redistribution) -> Plan | Refusal:
        """Plan an exchange; never refuses."""
        messages = tuple(_messages(redistribution))
        ends = {rank for m in messages if m.sender != m.receiver for rank in (m.sender, m.receiver)}
        step = Step(
            StepKind.EXCHANGE if ends else StepKind.COPY,
            source=0,
            target=1,
            groups=(tuple(sorted(ends)),) if ends else (),
            messages=messages,
            reduction=redistribution.reduction,
            accumulate=redistribution.accumulate,
        )
        return Plan(redistribution, self.name, (step,))


def _messages(move: Redistribution) -> Iterator[Message]:
    sent: Counter[int] = Counter()
    operands = _holders_by_operand(move.source)
    for receiver, wanted in enumerate(move.target.boxes):
        if intervals.is_empty(wanted):
            continue
        for holders in operands.values():
            for sender, box in _sources(receiver, wanted, holders, move.source, sent):
                if sender != receiver:
                    sent[sender] += intervals.volume(box)
                yield Message(sender, receiver, box)


def _holders_by_operand(source: Layout) -> dict[int, dict[Box, list[int]]]:
    """Per operand the distinct boxes that hold a part of it, with the ranks that hold each."""
    found: dict[int, dict[Box, list[int]]] = {}
    for box, ranks in source.holders().items():
        for rank in ranks:
            found.setdefault(source.operand(rank), {}).setdefault(box, []).append(rank)
    return found


def _sources(
    receiver: int,
    wanted: Box,
    holders: dict[Box, list[int]],
    source: Layout,
    sent: Counter[int],
) -> Iterator[tuple[int, Box]]:
    """Who sends the receiver which part of one operand; itself first."""
    missing: Iterable[Box] = (wanted,)
    order = sorted(holders, key=lambda box: receiver not in holders[box])
    for box in order:
        left: list[Box] = []
        for piece in missing:
            common = intervals.intersect(piece, box)
            if intervals.is_empty(common):
                left.append(piece)
                continue
            ranks = holders[box]
            yield (
                (receiver if receiver in ranks else min(ranks, key=lambda r: (sent[r], r))),
                common,
            )
            left.extend(intervals.subtract(piece, common))
        missing = left
        if not missing:
            return
