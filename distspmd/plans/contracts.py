"""Contracts of steps: what each kind of step promises, so that a collective of MPI can carry it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from distspmd.layouts.intervals import Box
from distspmd.plans.collectives import CollectiveSpec, Ends, First
from distspmd.plans.plan import Message, Plan, Step

Group = tuple[int, ...]

Check = Callable[[Step, list[Message], dict[int, Group]], Iterator[str]]
"""Of a step, its messages between ranks and the group of each rank, what breaks its promise."""


def find_malformed(step: Step, plan: Plan) -> Iterator[str]:
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
    ranks = {*place, *step.table.table[:, :2].ravel().tolist()}
    for rank in ranks.difference(range(plan.ranks)):
        yield f"there is no rank {rank}."
    far = [m for m in step.messages if m.sender != m.receiver]
    for m in far:
        yield from _misplaced(step, m, place)
    check = _promise(step.kind.spec)
    if check is not None:
        yield from check(step, far, place)


def _misplaced(step: Step, m: Message, place: dict[int, Group]) -> Iterator[str]:
    """A message between ranks that the call does not carry."""
    if not step.kind.spec.moves:
        yield f"rank {m.sender} sends to rank {m.receiver} in a copy."
    elif m.sender not in place or place[m.sender] != place.get(m.receiver):
        yield f"rank {m.sender} and rank {m.receiver} are in no common group."
    elif _first_rank(step, m) not in (None, place[m.sender][0]):
        yield f"rank {m.sender} sends to rank {m.receiver}, but the group starts at another rank."


def _first_rank(step: Step, message: Message) -> int | None:
    match step.kind.spec.first:
        case First.SENDS:
            return message.sender
        case First.RECEIVES:
            return message.receiver
        case None:
            return None


def _uneven(step: Step, far: list[Message], place: dict[int, Group]) -> Iterator[str]:
    """Where a call for one box of all ranks has two boxes, or leaves a rank out."""
    boxes: dict[Group, set[Box]] = {}
    ends: set[int] = set()
    for m in far:
        if m.sender in place:
            boxes.setdefault(place[m.sender], set()).add(m.box)
            ends.add(m.receiver if step.kind.spec.first is First.SENDS else m.sender)
    for group, found in boxes.items():
        if len(found) > 1:
            yield f"the group of rank {group[0]} has {len(found)} different boxes."
    for group in step.groups:
        for rank in group[1:]:
            if rank not in ends:
                yield f"rank {rank} has no message in the {step.kind} of its group."


def _repeated(step: Step, far: list[Message], place: dict[int, Group]) -> Iterator[str]:
    """Where a rank sends twice, to one rank or at all."""
    seen: set[tuple[int, int]] = set()
    for m in far:
        pairs = {(m.sender, m.receiver)}
        if step.kind.spec.sends is Ends.ONE:
            pairs = {(m.sender, -1), (-1, m.receiver)}
        if seen & pairs:
            yield f"rank {m.sender} sends to rank {m.receiver} twice, or one of them to another."
        seen |= pairs


def _not_to_all(step: Step, far: list[Message], place: dict[int, Group]) -> Iterator[str]:
    """Where a rank does not send one box to all others of its group."""
    sent: dict[int, list[Message]] = {}
    for m in far:
        sent.setdefault(m.sender, []).append(m)
    for sender, messages in sent.items():
        others = sorted(set(place.get(sender, ())) - {sender})
        if sorted(m.receiver for m in messages) != others or len({m.box for m in messages}) > 1:
            yield f"rank {sender} does not send one box to all others in the {step.kind}."


def _not_from_all(step: Step, far: list[Message], place: dict[int, Group]) -> Iterator[str]:
    """Where a rank does not combine one box of all ranks of its group, itself included."""
    reached: dict[int, list[Message]] = {}
    for m in step.messages:
        reached.setdefault(m.receiver, []).append(m)
    for receiver, messages in reached.items():
        every = sorted(m.sender for m in messages) == sorted(place.get(receiver, (receiver,)))
        if not every or len({m.box for m in messages}) > 1:
            yield f"rank {receiver} does not combine one box of all in the {step.kind}."


def _incomplete(step: Step, far: list[Message], place: dict[int, Group]) -> Iterator[str]:
    """Where ranks of a group do not all send the same box to all, themselves too."""
    held: dict[Group, set[tuple[int, int, Box]]] = {}
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
