"""Any layout to any layout: intersect the boxes and exchange what is missing, in one call."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from distspmd.layouts import intervals
from distspmd.layouts.intersection import meeting, most_meeting, ranges
from distspmd.layouts.intervals import Box, Numbers
from distspmd.layouts.layout import Layout
from distspmd.plans.collectives import StepKind
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.messages import Message, Messages, Traffic
from distspmd.plans.plan import Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.solver import Refusal


@dataclass(frozen=True)
class Exchange:
    """One MPI_Alltoallv of exactly the missing boxes; the fallback and the oracle.

    Where several ranks hold what a rank lacks, the senders are chosen so that the largest send is
    small: ranks that hold one tile share what the others want of it, the largest boxes first.
    """

    name: ClassVar[str] = "exchange"

    def calls(self, redistribution: Redistribution) -> int:
        """No more than the messages that some rank receives."""
        source = redistribution.source
        tiles = most_meeting(source, redistribution.target)
        if source.partial and tiles:
            tiles *= int(_Holders(source).count.min())
        return tiles - 1

    def plan(self, redistribution: Redistribution) -> Plan | Refusal:
        """Plan an exchange; never refuses."""
        messages, ends = _messages(redistribution)
        if not len(ends) and redistribution.in_place:
            return Plan(redistribution, self.name, ())
        step = Step(
            StepKind.EXCHANGE if len(ends) else StepKind.COPY,
            source=0,
            target=1,
            groups=(tuple(ends.tolist()),) if len(ends) else (),
            messages=messages,
            reduction=redistribution.reduction,
            accumulate=redistribution.accumulate,
        )
        return Plan(redistribution, self.name, (step,))


def _are_many(move: Redistribution) -> bool:
    """Whether the messages are listed when they are needed, not when they are planned."""
    meeting = most_meeting(move.source, move.target)
    return move.ranks * meeting > HEURISTICS.listed_messages


def _messages(move: Redistribution) -> tuple[Messages, Numbers]:
    """All messages, and the ranks that send or receive one."""
    if move.in_place:
        messages = _of_disjoint_tiles(move) if move.disjoint else Messages.of(_of_any_boxes(move))
        messages = Messages(messages.table[messages.between])
    elif not move.disjoint:
        messages = Messages.of(_of_any_boxes(move))
    elif _are_many(move) and _is_regular(move):
        traffic = _traffic_of_grids(move)
        later = Messages(lambda: _of_disjoint_tiles(move).table, traffic)
        return later, np.flatnonzero(traffic.partners)
    else:
        messages = _of_disjoint_tiles(move)
    talks = np.zeros(move.ranks, dtype=bool)
    talks[messages.senders[messages.between]] = talks[messages.receivers[messages.between]] = True
    return messages, np.flatnonzero(talks)


# --- disjoint tiles ---


def _is_regular(move: Redistribution) -> bool:
    """Whether values go between grids on the same ranks, and each tile has one possible sender."""
    blocks = move.source.is_blocks and move.target.is_blocks and not move.source.partial
    alone = len(move.source.tiles.bounds) == (move.source.volumes > 0).sum()
    return blocks and alone and move.source.ranks == move.target.ranks


def _traffic_of_grids(move: Redistribution) -> Traffic:
    """What a regular exchange sends and receives, without its messages."""
    source, target = move.source, move.target
    lows = np.maximum(source.bounds[:, :, 0], target.bounds[:, :, 0])
    highs = np.minimum(source.bounds[:, :, 1], target.bounds[:, :, 1])
    kept = np.maximum(highs - lows, 0).prod(axis=1)
    copies = int((target.volumes > 0).sum()) // max(1, len(target.tiles.bounds))
    senders = meeting(source, target)[target.tiles.of] * (target.volumes > 0)
    receivers = meeting(target, source)[source.tiles.of] * copies * (source.volumes > 0)
    arriving = target.volumes - kept
    return Traffic(
        sent=copies * source.volumes - kept,
        received=arriving,
        delivered=arriving,
        copied=kept,
        partners=senders + receivers - 2 * (kept > 0),
    )


def _of_disjoint_tiles(move: Redistribution) -> Messages:
    """Each receiver of a target tile gets each operand of each source tile that meets it."""
    meet = move.overlaps
    holders = _Holders(move.source)
    receivers, first, count = _ranks_by_tile(move.target)
    groups = holders.count[meet.source]
    number = np.repeat(np.arange(len(meet.source)), groups)
    group = holders.first[meet.source][number] + ranges(groups)
    wanted = count[meet.target][number]
    request = np.repeat(np.arange(len(number)), wanted)
    receiver = receivers[np.repeat(first[meet.target][number], wanted) + ranges(wanted)]
    number, group = number[request], group[request]
    sender = holders.senders(group, receiver, meet.volumes[number])
    return Messages.columns(sender, receiver, meet.bounds[number])


def _ranks_by_tile(layout: Layout) -> tuple[Numbers, Numbers, Numbers]:
    """Ranks in order of their tiles, and where those of each tile start, and how many they are."""
    of = layout.tiles.of
    order = np.argsort(of, kind="stable")
    count = np.bincount(of[of >= 0], minlength=len(layout.tiles.bounds))
    return order, len(of) - count.sum() + np.cumsum(count) - count, count


class _Holders:
    """Groups of ranks that hold the same operand of the same tile; a rank is in at most one."""

    def __init__(self, source: Layout) -> None:
        tile, operand = source.tiles.of, source.operands
        order = np.lexsort((operand, tile))
        order = order[tile[order] >= 0]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(tile[order]) != 0) | (np.diff(operand[order]) != 0)
        self.ranks = order
        self.start = np.append(np.flatnonzero(new), len(order))
        self.of = np.full(len(tile), -1)
        self.of[order] = np.cumsum(new) - 1
        self.count = np.bincount(tile[order[new]], minlength=len(source.tiles.bounds))
        """Groups of each tile."""
        self.first = np.cumsum(self.count) - self.count
        """First group of each tile."""

    def senders(self, group: Numbers, receiver: Numbers, volumes: Numbers) -> Numbers:
        """Who answers each request of a rank for a box of a group's tile: itself if it can."""
        sizes = np.diff(self.start)
        known = receiver < len(self.of)
        own = np.zeros(len(group), dtype=bool)
        own[known] = self.of[receiver[known]] == group[known]
        sender = np.where(own, receiver, self.ranks[self.start[:-1][group]])
        shared = np.flatnonzero(~own & (sizes[group] > 1))
        if not len(shared):
            return sender
        shared = shared[np.lexsort((receiver[shared], -volumes[shared], group[shared]))]
        cuts = np.flatnonzero(np.diff(group[shared], prepend=-1))
        counts = np.diff(np.append(cuts, len(shared)))
        place = ranges(counts)
        at = place % sizes[group[shared]]
        uneven = np.add.reduceat(volumes[shared] != np.repeat(volumes[shared[cuts]], counts), cuts)
        for number in np.flatnonzero(uneven):
            part = slice(cuts[number], cuts[number] + counts[number])
            size = int(sizes[group[shared[cuts[number]]]])
            at[part] = shared_evenly(volumes[shared[part]].tolist(), size)
        sender[shared] = self.ranks[self.start[group[shared]] + at]
        return sender


def shared_evenly(volumes: list[int], workers: int) -> list[int]:
    """Which worker takes each volume, so that the largest sum is small.

    Largest first to whom has least, then exchanges with the worker that has most.
    """
    loads = [(0, worker) for worker in range(workers)]
    found = [0] * len(volumes)
    for at in sorted(range(len(volumes)), key=lambda at: -volumes[at]):
        load, worker = heapq.heappop(loads)
        found[at] = worker
        heapq.heappush(loads, (load + volumes[at], worker))
    if len(volumes) <= 64:
        while _improved(volumes, workers, found):
            pass
    return found


def _improved(volumes: list[int], workers: int, found: list[int]) -> bool:
    """Move or exchange one volume of the worker that has most, if its sum becomes smaller."""
    loads = [0] * workers
    for volume, worker in zip(volumes, found, strict=True):
        loads[worker] += volume
    most = max(range(workers), key=loads.__getitem__)
    if sum(load == loads[most] for load in loads) > 1:
        return False
    for at, worker in enumerate(found):
        if worker != most:
            continue
        for other, against in [(w, None) for w in range(workers)] + [
            (w, number) for number, w in enumerate(found)
        ]:
            gain = volumes[at] - (0 if against is None else volumes[against])
            if other != most and gain > 0 and loads[other] + gain < loads[most]:
                found[at] = other
                if against is not None:
                    found[against] = most
                return True
    return False


# --- tiles that overlap ---


def _of_any_boxes(move: Redistribution) -> Iterator[Message]:
    sent = [0] * move.ranks
    source = move.source.tiles
    holders: dict[int, dict[int, list[int]]] = {}
    for rank, tile in enumerate(source.of.tolist()):
        if tile >= 0:
            operand = holders.setdefault(move.source.operand(rank), {})
            operand.setdefault(tile, []).append(rank)
    near: dict[int, list[int]] = {}
    for first, second in zip(
        move.overlaps.source.tolist(), move.overlaps.target.tolist(), strict=True
    ):
        near.setdefault(second, []).append(first)
    boxes = [tuple((lo, hi) for lo, hi in box) for box in source.bounds.tolist()]
    for receiver, tile in enumerate(move.target.tiles.of.tolist()):
        for held in holders.values():
            candidates = {boxes[at]: held[at] for at in near.get(tile, ()) if at in held}
            for sender, box in _sources(receiver, move.target.box(receiver), candidates, sent):
                if sender != receiver:
                    sent[sender] += intervals.volume(box)
                yield Message(sender, receiver, box)


def _sources(
    receiver: int, wanted: Box, holders: dict[Box, list[int]], sent: list[int]
) -> Iterator[tuple[int, Box]]:
    """Who sends the receiver which part of one operand; itself first, then who has sent least."""
    missing: Iterable[Box] = (wanted,)
    least = {
        box: receiver if receiver in ranks else min(ranks, key=lambda r: (sent[r], r))
        for box, ranks in holders.items()
    }
    for box in sorted(holders, key=lambda box: (least[box] != receiver, sent[least[box]])):
        left: list[Box] = []
        for piece in missing:
            common = intervals.intersect(piece, box)
            if intervals.is_empty(common):
                left.append(piece)
                continue
            yield least[box], common
            left.extend(intervals.subtract(piece, common))
        missing = left
        if not missing:
            return
