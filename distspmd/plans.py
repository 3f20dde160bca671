"""Plans: the frozen steps by which ranks bring an array from one layout to another.

A plan is the cost, the proof and the execution: :mod:`distspmd.cost` reads its time from the
messages, :mod:`distspmd.verifier` proves them, :mod:`distspmd.simulator` runs them on NumPy arrays,
and the C++ runtime runs them over MPI. Boxes are in global indices throughout.
"""

from __future__ import annotations

import zlib
from array import array
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import groupby

from distspmd import intervals
from distspmd.intervals import Box
from distspmd.layout import Layout
from distspmd.redistribution import Bound, Redistribution


class StepKind(Enum):
    """The call that carries a step, by its number in the tables that the C++ runtime reads."""

    COPY = 0
    """Each rank copies within its own memory."""
    SCATTER = 1
    """MPI_Scatterv: the first rank of a group sends each other rank its box."""
    BROADCAST = 2
    """MPI_Bcast: the first rank of a group sends one box to all others."""
    REDUCE = 3
    """MPI_Reduce: the first rank of a group combines the same box of all."""
    GATHER = 4
    """MPI_Gatherv: the first rank of a group receives the box of each other rank."""
    EXCHANGE = 5
    """MPI_Alltoallv: any rank of a group sends any boxes to any other."""

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Message:
    """A box of the sender's source buffer goes to the same box of the receiver's target buffer."""

    sender: int
    receiver: int
    box: Box


@dataclass(frozen=True, slots=True)
class Step:
    """One collective call, in each of ``groups`` at once.

    ``source`` and ``target`` number the buffers of the plan. Each message lies within one group, or
    within one rank. With a ``reduction`` the messages that reach an element are its operands, and
    with ``accumulate`` so is what the target held; without, an element is reached at most once.
    """

    kind: StepKind
    source: int
    target: int
    groups: tuple[tuple[int, ...], ...]
    messages: tuple[Message, ...]
    reduction: str | None = None
    accumulate: bool = False

    def received(self) -> Counter[int]:
        """Elements that each rank receives from others.

        A reduction delivers one box to the first rank of a group, whatever way MPI takes.
        """
        if self.kind is StepKind.REDUCE:
            boxes = {(m.receiver, m.box) for m in self.messages if m.sender != m.receiver}
            return _total((receiver, box) for receiver, box in boxes)
        return _total((m.receiver, m.box) for m in self.messages if m.sender != m.receiver)

    def sent(self) -> Counter[int]:
        """Elements that each rank sends to others; a broadcast counts once at its first rank."""
        if self.kind is StepKind.BROADCAST:
            return _total({(m.sender, m.box) for m in self.messages if m.sender != m.receiver})
        return _total((m.sender, m.box) for m in self.messages if m.sender != m.receiver)


def _by_rank(step: Step) -> dict[int, list[Message]]:
    found: dict[int, list[Message]] = {}
    for message in step.messages:
        found.setdefault(message.sender, []).append(message)
        if message.receiver != message.sender:
            found.setdefault(message.receiver, []).append(message)
    return found


def _total(parts: object) -> Counter[int]:
    count: Counter[int] = Counter()
    for rank, box in parts:  # type: ignore[attr-defined]
        count[rank] += intervals.volume(box)
    return count


@dataclass(frozen=True)
class Plan:
    """Steps that carry out a redistribution.

    ``buffers[0]`` is the source, ``buffers[1]`` the target; further ones live while the plan runs.
    """

    redistribution: Redistribution
    solver: str
    steps: tuple[Step, ...]
    scratch: tuple[Layout, ...] = ()

    @property
    def buffers(self) -> tuple[Layout, ...]:
        """Layout of each buffer that the steps name."""
        return (self.redistribution.source, self.redistribution.target, *self.scratch)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.redistribution.dtype.itemsize

    @cached_property
    def ranks(self) -> int:
        """Number of ranks that take part or stand by."""
        return max(layout.ranks for layout in self.buffers)

    @cached_property
    def parts(self) -> tuple[dict[int, list[Message]], ...]:
        """Per step, the messages that each rank sends or receives, in order."""
        return tuple(_by_rank(step) for step in self.steps)

    @cached_property
    def fingerprint(self) -> int:
        """A number that is the same in every process that has the same plan."""
        found = zlib.crc32(str(self).encode())
        for step in self.steps:
            numbers = [step.kind.value, step.source, step.target, step.accumulate]
            for group in step.groups:
                numbers += [len(group), *group]
            for m in step.messages:
                numbers += [m.sender, m.receiver, *(bound for side in m.box for bound in side)]
            found = zlib.crc32(array("q", numbers).tobytes(), found)
        return found

    @cached_property
    def _received(self) -> Counter[int]:
        return sum((step.received() for step in self.steps), Counter())

    def received(self, rank: int) -> int:
        """Bytes that the rank receives from other ranks, over all steps."""
        return self._received[rank] * self.itemsize

    def peak(self, rank: int) -> int:
        """Most bytes that live on the rank at once: tiles, scratch, and staging on both sides."""
        held = sum(layout.volume(rank) for layout in self.buffers)
        staging = max((step.received()[rank] + step.sent()[rank] for step in self.steps), default=0)
        return (held + staging) * self.itemsize

    @property
    def bound(self) -> Bound:
        """What every plan moves at least."""
        return self.redistribution.bound

    def __str__(self) -> str:
        runs = ((kind, len([*run])) for kind, run in groupby(step.kind for step in self.steps))
        steps = " + ".join(f"{n} x {kind}" if n > 1 else str(kind) for kind, n in runs) or "nothing"
        return f"{self.redistribution}: {steps} ({self.solver})"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a solver has no plan for a redistribution."""

    solver: str
    reason: str

    def __str__(self) -> str:
        return f"{self.solver}: {self.reason}"
