"""Rounds: a step whose messages are too large for one call becomes several steps.

A step treats every element separately. It may therefore be cut along boxes, as long as all messages
that combine in one element, or that read and write it in one buffer, stay in one round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from distspmd.errors import PlanError
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.plans.collectives import StepKind
from distspmd.plans.plan import Message, Plan, Step

MOST_ELEMENTS = 2**30
"""Elements that a rank sends or receives in one call; MPI 3 counts them in 32 bits."""


def chunk(plan: Plan, elements: int) -> Plan:
    """The plan in rounds: no rank sends or receives more than ``elements`` elements in one call.

    Raises:
        PlanError: the limit is below the number of operands that a rank receives of one element.
    """
    if elements < 1:
        raise PlanError(f"a limit of {elements} elements for each call; give at least 1.")
    steps = tuple(round for step in plan.steps for round in _rounds(step, elements))
    return plan if steps == plan.steps else replace(plan, steps=steps)


def _rounds(step: Step, elements: int) -> Iterator[Step]:
    if max(step.traffic.sent.max(initial=0), step.arriving.max(initial=0)) <= elements:
        yield step
    elif step.kind.spec.common:
        yield from _common_rounds(step, elements)
    else:
        kind = step.kind if step.kind.spec.may_be_cut else StepKind.EXCHANGE
        for messages in _packed(_atoms(step, elements), elements):
            yield replace(step, kind=kind, messages=messages)


def _common_rounds(step: Step, elements: int) -> Iterator[Step]:
    """Rounds of a step with one box for each group: round ``i`` has the piece ``i`` of each box."""
    place = {rank: number for number, group in enumerate(step.groups) for rank in group}
    pieces: dict[int, list[Box]] = {}
    for m in step.messages:
        if m.sender != m.receiver and place[m.sender] not in pieces:
            pieces[place[m.sender]] = list(intervals.cut_box(m.box, elements))
    for number in range(max(map(len, pieces.values()))):
        now = {group: boxes[number] for group, boxes in pieces.items() if number < len(boxes)}
        messages: list[Message] = []
        for m in step.messages:
            group = place.get(m.sender, -1)
            if group in now:
                messages += _restricted([m], now[group])
            if m.sender == m.receiver and number == 0:
                rest = intervals.subtract_all(m.box, pieces.get(group, ()))
                messages += [replace(m, box=box) for box in rest]
        groups = tuple(step.groups[group] for group in sorted(now))
        yield replace(step, groups=groups, messages=tuple(messages))


Atom = tuple[Message, ...]
"""Messages that stay in one round."""


def _atoms(step: Step, elements: int) -> Iterator[Atom]:
    """Pieces of a step that are small enough for one round and may go to any."""
    if step.reduction is None and step.source != step.target:
        for m in step.messages:
            limit = max(1, elements // 4) if m.sender != m.receiver else intervals.volume(m.box)
            for box in intervals.cut_box(m.box, limit):
                yield (replace(m, box=box),)
        return
    regions = [_hull(m.box for m in step.messages)]
    while regions:
        region = regions.pop()
        messages = _restricted(step.messages, region)
        if _Round(messages).most <= elements:
            yield messages
        elif intervals.volume(region) > 1:
            regions += reversed(_halves(region))
        else:
            raise PlanError(
                f"{step.kind}: a rank sends or receives [{intervals.box_text(region)}] "
                f"{_Round(messages).most} times, more than the limit of {elements} for each call."
            )


def _restricted(messages: Iterable[Message], region: Box) -> Atom:
    """The messages within a region; those that are not in it are left out."""
    cut = ((m, intervals.intersect(m.box, region)) for m in messages)
    return tuple(replace(m, box=box) for m, box in cut if not intervals.is_empty(box))


def _hull(boxes: Iterable[Box]) -> Box:
    held = [box for box in boxes if not intervals.is_empty(box)]
    return tuple(
        (min(lo for lo, _ in sides), max(hi for _, hi in sides))
        for sides in zip(*held, strict=True)
    )


def _halves(box: Box) -> tuple[Box, Box]:
    """A box cut in two along its first dimension of more than one index."""
    d = next(d for d, (lo, hi) in enumerate(box) if hi - lo > 1)
    lo, hi = box[d]
    middle = (lo + hi) // 2
    return (*box[:d], (lo, middle), *box[d + 1 :]), (*box[:d], (middle, hi), *box[d + 1 :])


@dataclass
class _Round:
    messages: Atom
    sent: Counter[int] = field(default_factory=Counter)
    received: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for m in self.messages:
            if m.sender != m.receiver:
                self.sent[m.sender] += intervals.volume(m.box)
                self.received[m.receiver] += intervals.volume(m.box)

    @property
    def most(self) -> int:
        """Most elements that a rank sends or receives."""
        return max([*self.sent.values(), *self.received.values()], default=0)

    def admits(self, other: _Round, elements: int) -> bool:
        """Whether both fit one call."""
        return all(
            mine[rank] + theirs[rank] <= elements
            for mine, theirs in ((self.sent, other.sent), (self.received, other.received))
            for rank in theirs
        )


def _packed(atoms: Iterable[Atom], elements: int) -> Iterator[Atom]:
    """Fill rounds with atoms, each in the first round that has room."""
    rounds: list[tuple[_Round, list[Message]]] = []
    for atom in map(_Round, atoms):
        at = next(
            (at for at, (filled, _) in enumerate(rounds) if filled.admits(atom, elements)), -1
        )
        if at < 0:
            rounds.append((_Round(()), []))
        filled, messages = rounds[at]
        filled.sent.update(atom.sent)
        filled.received.update(atom.received)
        messages += atom.messages
    return (tuple(messages) for _, messages in rounds)
