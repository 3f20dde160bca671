"""Messages of calls in groups, as what ranks have and want: as many numbers as there are ranks.

Each rank of a group sends each rank of it what it has of what that one wants. Listed, these are as
many messages as pairs of ranks; here they are two boxes for each rank. Traffic, promises and proofs
are found from the boxes, and so is what one rank sends and receives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts.intervals import Box, Numbers
from distspmd.plans.collectives import CollectiveSpec, Ends, received_in_groups
from distspmd.plans.messages import Messages, Traffic, runs

Bools = NDArray[np.bool_]


class GroupMessages(Messages):
    """Messages of a call in each of some groups, which share no rank.

    In the order of the receivers' ranks, and of the senders in their group.

    Args:
        spec: of the kind of the call, by which the traffic is counted.
        groups: the ranks of each.
        have: box of what each rank has: (ranks, dimensions, 2).
        want: box of what each rank wants.
        to_self: whether a rank has a message to itself as well.
        traffic: where it is known.
    """

    STATE = ("spec", "groups", "have", "want", "to_self", "traffic")

    def __init__(
        self,
        spec: CollectiveSpec,
        groups: Sequence[Sequence[int]] | Numbers,
        have: Numbers,
        want: Numbers,
        to_self: bool = True,
        traffic: Traffic | None = None,
    ) -> None:
        super().__init__(self._list, traffic)
        self.spec, self.have, self.want, self.to_self = spec, have, want, to_self
        self.members = [np.asarray(group, np.int64) for group in groups]
        if traffic is None and self.keeps(spec):
            self.traffic = self._traffic()

    @property
    def groups(self) -> Sequence[Numbers]:
        """The ranks of each group."""
        return self.members

    @cached_property
    def ranks(self) -> Numbers:
        """The ranks of all groups, one after the other."""
        return np.concatenate([np.zeros(0, np.int64), *self.members])

    @cached_property
    def sizes(self) -> Numbers:
        """Ranks of each group."""
        return np.array([len(group) for group in self.members], np.int64)

    @cached_property
    def has(self) -> Bools:
        """Whether each rank has anything."""
        return volumes(self.have) > 0

    @cached_property
    def wants(self) -> Bools:
        """Whether each rank wants anything."""
        return volumes(self.want) > 0

    @property
    def content(self) -> bytes:
        """All numbers, as bytes; other messages have others."""
        numbers = (self.sizes, self.ranks, self.have, self.want)
        return b"".join(each.tobytes() for each in numbers) + bytes([self.to_self])

    def keeps(self, spec: CollectiveSpec) -> bool:
        """Whether the messages keep the promise of a kind for sure, as their boxes show."""
        if spec.first is not None or not len(self.ranks) or not self.sizes.all():
            return False
        have, want = self.have[self.ranks], self.want[self.ranks]
        if spec.is_combined:
            first = np.repeat(have[self._starts], self.sizes, axis=0)
            same = (have == first).all() and (want == first).all()
            return bool(same and self.to_self and self.has[self.ranks].all())
        if spec.sends is Ends.ALL:
            return bool((within(have, self._common(want)) | ~self.has[self.ranks]).all())
        if spec.receives is Ends.ALL:
            inside = within(want, self._common(have)) | ~self.wants[self.ranks]
            return self.to_self and bool(inside.all())
        return spec.sends is Ends.ONE_EACH and spec.receives is Ends.ONE_EACH

    def common_boxes(self, groups: Sequence[Sequence[int]]) -> list[Box] | None:
        """The box of each group, if all ranks of it send that box to all, themselves too.

        Args:
            groups: what the groups have to be.
        """
        if not self.keeps(self.spec) or not self.spec.is_combined or not self.is_within(groups):
            return None
        firsts = self.have[self.ranks[self._starts]].tolist()
        return [tuple((lo, hi) for lo, hi in box) for box in firsts]

    def is_within(self, groups: Sequence[Sequence[int]]) -> bool:
        """Whether these are the groups."""
        return [tuple(group.tolist()) for group in self.members] == [*map(tuple, groups)]

    @cached_property
    def _starts(self) -> Numbers:
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    def _common(self, bounds: Numbers) -> Numbers:
        """For each rank of each group, what the boxes of its group have in common."""
        lows = np.maximum.reduceat(bounds[:, :, 0], self._starts)
        highs = np.minimum.reduceat(bounds[:, :, 1], self._starts)
        return np.repeat(np.stack([lows, highs], axis=2), self.sizes, axis=0)

    def _traffic(self) -> Traffic | None:
        """What each rank sends, receives and copies, if the kind says that all are alike."""
        spec, size = self.spec, np.repeat(self.sizes, self.sizes)
        if not (spec.to_all or spec.from_all):
            return None
        box = volumes((self.have if spec.to_all else self.want)[self.ranks])
        own = (box > 0).astype(np.int64)
        others, count = (
            np.repeat(np.add.reduceat(each, self._starts), self.sizes) - each for each in (box, own)
        )
        copied = box if self.to_self else np.zeros_like(box)
        partners = self._on_ranks(count + own * (size - 1))
        if spec.is_combined:
            sent = self._on_ranks(box * (size > 1))
            groups = [group.tolist() for group in self.members]
            received = received_in_groups(spec, groups, sent)
            return Traffic(sent, received, sent, self._on_ranks(copied), partners)
        if spec.to_all:
            sent, arriving = box * (size > 1), others
            received = arriving
        else:
            sent, arriving, received = others, box * (size > 1), box * (size - 1)
        return Traffic(
            self._on_ranks(sent),
            self._on_ranks(received),
            self._on_ranks(arriving),
            self._on_ranks(copied),
            partners,
        )

    def runs(self, extents: Sequence[int]) -> Numbers:
        """Runs of memory in what each rank receives and copies; of ranks beyond the last none."""
        spec = self.spec
        if self.is_listed or not (spec.to_all or spec.from_all) or not self.keeps(spec):
            return super().runs(extents)
        own = runs((self.have if spec.to_all else self.want)[self.ranks], extents)
        if not spec.to_all:
            size = np.repeat(self.sizes - int(not self.to_self), self.sizes)
            return self._on_ranks(own * size)
        every = np.repeat(np.add.reduceat(own, self._starts), self.sizes)
        return self._on_ranks(every if self.to_self else every - own)

    def _on_ranks(self, numbers: Numbers) -> Numbers:
        """Numbers of the ranks of all groups as those of all ranks; 0 of ranks in none."""
        found = np.zeros(len(self.have), np.int64)
        found[self.ranks] = numbers
        return found

    def _list(self) -> Numbers:
        senders, receivers = self._pairs()
        if not self.to_self:
            far = senders != receivers
            senders, receivers = senders[far], receivers[far]
        bounds = intersections(self.have[senders], self.want[receivers])
        return Messages.columns(senders, receivers, bounds).table

    def _pairs(self) -> tuple[Numbers, Numbers]:
        """Each sender that has something, with each receiver of its group that wants something."""
        nothing = np.zeros(0, np.int64)
        held = [(group[self.has[group]], group[self.wants[group]]) for group in self.members]
        senders = [np.tile(some, len(others)) for some, others in held]
        receivers = [np.repeat(others, len(some)) for some, others in held]
        to = np.concatenate([nothing, *receivers])
        order = np.argsort(to, kind="stable")
        return np.concatenate([nothing, *senders])[order], to[order]

    def of_rank(self, rank: int) -> Iterator[tuple[int, int, Box]]:
        """Sender, receiver and box of what a rank sends or receives, in order, but empty ones."""
        if self.is_listed:
            yield from super().of_rank(rank)
            return
        number = self._group_of.get(rank)
        if number is None:
            return
        group = self.members[number]
        sent = intersections(self.have[rank][None], self.want[group])
        received = intersections(self.have[group], self.want[rank][None])
        receivers = np.sort(group)
        boxes = sent[np.argsort(group, kind="stable")]
        before = int(np.searchsorted(receivers, rank))
        alike = np.full(len(group), rank)
        for senders, to, bounds in (
            (alike[:before], receivers[:before], boxes[:before]),
            (group, alike, received),
            (alike[before + 1 :], receivers[before + 1 :], boxes[before + 1 :]),
        ):
            for here, there, box in zip(
                senders.tolist(), to.tolist(), bounds.tolist(), strict=True
            ):
                if all(lo < hi for lo, hi in box) and (self.to_self or here != there):
                    yield here, there, tuple((lo, hi) for lo, hi in box)

    @cached_property
    def _group_of(self) -> dict[int, int]:
        """The number of the group of each rank that is in one."""
        return {
            rank: number for number, group in enumerate(self.members) for rank in group.tolist()
        }

    def __len__(self) -> int:
        if self.is_listed or not (self.spec.to_all or self.spec.from_all):
            return super().__len__()
        if not self.keeps(self.spec):
            return super().__len__()
        ends = self.has if self.spec.to_all else self.wants
        each = np.add.reduceat(ends[self.ranks].astype(np.int64), self._starts)
        return int((each * (self.sizes - (not self.to_self))).sum())


def intersections(a: Numbers, b: Numbers) -> Numbers:
    """What boxes have in common, one by one."""
    lows = np.maximum(a[:, :, 0], b[:, :, 0])
    highs = np.minimum(a[:, :, 1], b[:, :, 1])
    return np.stack([lows, highs], axis=2)


def volumes(bounds: Numbers) -> Numbers:
    """Elements of boxes."""
    found: Numbers = np.maximum(bounds[:, :, 1] - bounds[:, :, 0], 0).prod(axis=1)
    return found


def within(inner: Numbers, outer: Numbers) -> Bools:
    """Whether each box lies in another one, one by one; empty ones are not looked at."""
    inside = (outer[:, :, 0] <= inner[:, :, 0]) & (inner[:, :, 1] <= outer[:, :, 1])
    found: Bools = np.all(inside, axis=1)
    return found
