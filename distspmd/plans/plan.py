"""Plans: the frozen steps by which ranks bring an array from one layout to another.

A plan is the cost, the proof and the execution at once: :mod:`distspmd.plans.cost` reads its time
from the messages, :mod:`distspmd.plans.verifier` proves them, :mod:`distspmd.plans.simulator`
executes them on NumPy arrays, and the C++ runtime executes them over MPI. Boxes are in global
indices throughout.
"""

from __future__ import annotations

import zlib
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts.intervals import Numbers
from distspmd.layouts.layout import Layout
from distspmd.plans.collectives import StepKind, received_in_groups
from distspmd.plans.messages import Message as Message
from distspmd.plans.messages import Messages, Traffic
from distspmd.plans.redistribution import Bound, Redistribution


@dataclass(frozen=True)
class Step:
    """One collective call, in each of ``groups`` at once.

    ``source`` and ``target`` number the buffers of the plan. Each message lies within one group, or
    within one rank. With a ``reduction`` the messages that reach an element are its operands, and
    with ``accumulate`` so is what the target held; without, an element is reached at most once.

    The messages say all: whatever its kind, a step may be carried out as an EXCHANGE of its
    messages within its groups. A kind promises more, so that a faster call can carry them.
    """

    kind: StepKind
    source: int
    target: int
    groups: tuple[tuple[int, ...], ...]
    messages: Sequence[Message]
    reduction: str | None = None
    accumulate: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", Messages.of(self.messages))

    @property
    def table(self) -> Messages:
        """The messages as columns."""
        assert isinstance(self.messages, Messages)
        return self.messages

    @cached_property
    def traffic(self) -> Traffic:
        """What each rank sends, receives and copies; ranks beyond the last message are left out."""
        held, spec = self.table, self.kind.spec
        if held.traffic is not None:
            return held.traffic
        ranks = int(held.table[:, :2].max(initial=-1)) + 1
        far = held.between

        def total(ends: Numbers, which: NDArray[np.bool_], once: bool) -> Numbers:
            found = np.zeros(ranks, dtype=np.int64)
            (np.maximum if once else np.add).at(found, ends[which], held.volumes[which])
            return found

        ends = np.concatenate([held.senders[far], held.receivers[far]])
        delivered = total(held.receivers, far, spec.from_all)
        received = total(held.receivers, far, False) if spec.from_all else delivered
        if spec.is_combined:
            received = received_in_groups(spec, self.groups, delivered)
        return Traffic(
            sent=total(held.senders, far, spec.to_all),
            received=received,
            delivered=delivered,
            copied=total(held.receivers, ~far, False),
            partners=np.bincount(ends, minlength=ranks),
        )

    @property
    def arriving(self) -> Numbers:
        """Elements that arrive in the memory of each rank: where MPI combines, the result alone."""
        combined = self.kind.spec.is_combined
        return self.traffic.delivered if combined else self.traffic.received

    def received(self) -> Counter[int]:
        """Elements that each rank receives from others as the step is carried out."""
        return _counter(self.traffic.received)

    def sent(self) -> Counter[int]:
        """Elements that each rank sends to others; a broadcast counts once at its first rank."""
        return _counter(self.traffic.sent)


def _counter(numbers: Numbers) -> Counter[int]:
    return Counter({int(rank): int(numbers[rank]) for rank in np.flatnonzero(numbers)})


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
    def fingerprint(self) -> int:
        """A number that is the same in every process that has the same plan."""
        found = zlib.crc32(str(self).encode())
        for step in self.steps:
            numbers = [step.kind.value, step.source, step.target, step.accumulate]
            for group in step.groups:
                numbers += [len(group), *group]
            found = zlib.crc32(array("q", numbers).tobytes(), found)
            found = zlib.crc32(step.table.content, found)
        return found

    @cached_property
    def _received(self) -> Numbers:
        found = np.zeros(self.ranks, dtype=np.int64)
        for step in self.steps:
            received = step.traffic.received
            found[: len(received)] += received
        return found

    def received(self, rank: int) -> int:
        """Bytes that the rank receives from other ranks as the steps are carried out."""
        return int(self._received[rank]) * self.itemsize if rank < self.ranks else 0

    @cached_property
    def peaks(self) -> Numbers:
        """Most bytes that live on each rank at once: tiles, scratch, and staging on both sides.

        The two tiles live throughout, scratch from the first to the last step that names it.
        """
        peak = self.resident(0)
        for number, step in enumerate(self.steps):
            found = self.resident(number)
            for staging in (step.arriving, step.traffic.sent):
                found[: len(staging)] += staging
            peak = np.maximum(peak, found)
        return peak * self.itemsize

    def resident(self, number: int) -> Numbers:
        """Elements of tiles and scratch that live on each rank during a step."""
        tiles = self.buffers[1:2] if self.redistribution.in_place else self.buffers[:2]
        found = sum((_volumes(layout, self.ranks) for layout in tiles), start=0)
        for buffer, layout in enumerate(self.scratch, start=2):
            first, last = self._life(buffer)
            if first <= number <= last:
                found = found + _volumes(layout, self.ranks)
        return np.array(found)

    def _life(self, buffer: int) -> tuple[int, int]:
        """First and last step that name a buffer."""
        uses = [n for n, step in enumerate(self.steps) if buffer in (step.source, step.target)]
        return min(uses, default=0), max(uses, default=0)

    def peak(self, rank: int) -> int:
        """Most bytes that live on the rank at once; see ``peaks``."""
        return int(self.peaks[rank])

    @property
    def bound(self) -> Bound:
        """What every plan moves at least."""
        return self.redistribution.bound

    def __str__(self) -> str:
        runs = ((kind, len([*run])) for kind, run in groupby(step.kind for step in self.steps))
        steps = " + ".join(f"{n} x {kind}" if n > 1 else str(kind) for kind, n in runs) or "nothing"
        return f"{self.redistribution}: {steps} ({self.solver})"


def _volumes(layout: Layout, ranks: int) -> Numbers:
    """Elements that each rank holds."""
    found = np.zeros(ranks, dtype=np.int64)
    found[: layout.ranks] = layout.volumes
    return found
