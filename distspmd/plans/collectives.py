"""The kinds of collective steps: one row each, from which cost, proof, tables and runtime read.

A new kind is a row here and, if MPI combines or forwards data on the way, its call in
``plan/step.hpp``. The C++ runtime has the same rows in ``plan/collectives.hpp``, which
``python -m distspmd.runtime.engine.collectives_header`` writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain

import numpy as np

from distspmd.layouts.intervals import Numbers


class First(Enum):
    """What only the first rank of a group does."""

    SENDS = auto()
    RECEIVES = auto()


class Ends(Enum):
    """What one end of the messages promises: a rank that sends, or one that receives."""

    NONE = auto()
    """It has no message from or to another rank."""
    ANY = auto()
    """Any boxes, for any ranks of its group."""
    ONE_EACH = auto()
    """At most one box for each other rank of its group."""
    ONE = auto()
    """One box, for one rank."""
    ALL = auto()
    """One box, the same for all ranks of its group."""


@dataclass(frozen=True, slots=True)
class CollectiveSpec:
    """What a kind of step promises, beyond an exchange of its messages.

    Attributes:
        call: the call of MPI that the kind stands for.
        sends: what a rank that sends does.
        receives: what a rank that receives does.
        first: what only the first rank of a group does; None where all ranks do the same.
        common: whether all messages of a group have one box.
        exchanged: whether the runtime carries the kind as an exchange and does not know it.
    """

    call: str
    sends: Ends = Ends.ANY
    receives: Ends = Ends.ANY
    first: First | None = None
    common: bool = False
    exchanged: bool = False

    @property
    def to_all(self) -> bool:
        """Whether a rank sends one box to all others: its bytes leave it once."""
        return self.sends is Ends.ALL

    @property
    def from_all(self) -> bool:
        """Whether a rank combines one box of all others: its result arrives once."""
        return self.receives is Ends.ALL

    @property
    def is_combined(self) -> bool:
        """Whether MPI combines the operands, so that no rank reads those of another one."""
        return self.from_all and self.common

    @property
    def is_called(self) -> bool:
        """Whether the runtime makes the call, as MPI combines or forwards data on the way.

        It carries all other kinds message by message, as their calls do; a message may then go from
        tile to tile without a copy in between.
        """
        return self.to_all or self.is_combined

    @property
    def trees(self) -> int:
        """How often the call runs through a tree of its group; 0: it has its messages only."""
        return self.to_all + self.from_all

    @property
    def moves(self) -> bool:
        """Whether ranks send each other anything."""
        return self.sends is not Ends.NONE

    @property
    def may_be_cut(self) -> bool:
        """Whether any part of its messages is a step of the same kind."""
        return {self.sends, self.receives} <= {Ends.NONE, Ends.ANY}


class StepKind(Enum):
    """The collective call whose messages a step has.

    The value is its number in the tables that the C++ runtime reads; ``spec`` is its row.
    """

    _value_: int
    spec: CollectiveSpec

    def __new__(cls, code: int, spec: CollectiveSpec) -> StepKind:
        """A kind with its number and its row."""
        kind = object.__new__(cls)
        kind._value_ = code
        kind.spec = spec
        return kind

    COPY = 0, CollectiveSpec("no call", Ends.NONE, Ends.NONE)
    """Each rank copies within its own memory."""
    SCATTER = 1, CollectiveSpec("MPI_Scatterv", first=First.SENDS)
    """The first rank of a group sends each other rank its box."""
    BROADCAST = 2, CollectiveSpec("MPI_Bcast", Ends.ALL, first=First.SENDS, common=True)
    """The first rank of a group sends one box to all others."""
    REDUCE = 3, CollectiveSpec("MPI_Reduce", Ends.ANY, Ends.ALL, First.RECEIVES, common=True)
    """The first rank of a group combines the same box of all."""
    GATHER = 4, CollectiveSpec("MPI_Gatherv", first=First.RECEIVES)
    """The first rank of a group receives the box of each other rank."""
    EXCHANGE = 5, CollectiveSpec("MPI_Alltoallv")
    """Any rank of a group sends any boxes to any other."""
    ALL_TO_ALL = 6, CollectiveSpec("MPI_Alltoallv", Ends.ONE_EACH, Ends.ONE_EACH, exchanged=True)
    """Each rank of a group sends each other at most one box, all different."""
    ALL_GATHER = 7, CollectiveSpec("MPI_Allgatherv", Ends.ALL)
    """Each rank of a group sends one box, the same to each other.

    A rank whose box is empty sends none, and receives all the same.
    """
    PERMUTE = 8, CollectiveSpec("MPI_Sendrecv", Ends.ONE, Ends.ONE, exchanged=True)
    """Each rank sends its box to one rank, and receives one from one rank.

    The groups are the cycles; a rank that keeps its box is in none, and has a message to itself.
    """
    REDUCE_SCATTER = 9, CollectiveSpec("MPI_Reduce_scatter", Ends.ANY, Ends.ALL)
    """Each rank of a group combines its own box out of those of all.

    It has a message with that box from every rank of the group, itself included.
    """
    ALL_REDUCE = 10, CollectiveSpec("MPI_Allreduce", Ends.ALL, Ends.ALL, common=True)
    """Each rank of a group combines the same box of all.

    Every rank of the group has a message with that box to every rank of it, itself included.
    """

    def __str__(self) -> str:
        return self.name.lower()


def received_in_groups(
    spec: CollectiveSpec, groups: Sequence[Sequence[int]], delivered: Numbers
) -> Numbers:
    """Elements that each rank receives in a call of MPI that combines one box of all of its group.

    MPI does not tell how it combines them. These are the elements of the algorithms that move the
    fewest in all, for a box of n elements and a group of p ranks:

    - MPI_Reduce is a chain from the last rank to the first: each but the last receives the box, as
      far as it is combined. All receive (p - 1) n elements.
    - MPI_Allreduce is a ring on p pieces, the first n modulo p of which have one element more: each
      rank receives all but one piece to combine, and all but one when they are. All receive
      2 (p - 1) n elements.

    ``plan/step.hpp`` counts by the same rule, and ``test_counted_bytes.py`` compares it with
    what a library sends.

    Args:
        spec: the kind of the call.
        groups: ranks of each group, the first one first.
        delivered: elements of the result on each rank that has one.
    """
    found = np.zeros_like(delivered)
    sizes = np.array([len(group) for group in groups], dtype=np.int64)
    ranks = np.fromiter(chain.from_iterable(groups), dtype=np.int64, count=int(sizes.sum()))
    starts = np.cumsum(sizes) - sizes
    size, position = np.repeat(sizes, sizes), np.arange(len(ranks)) - np.repeat(starts, sizes)
    taking_part = ranks < len(found)
    box = np.zeros(len(groups), dtype=np.int64)
    has_box = taking_part[starts]
    box[has_box] = delivered[ranks[starts[has_box]]]
    n = np.repeat(box, sizes)
    if spec.first is not None:
        elements = n * (position < size - 1)
    else:
        pieces = [n // size + (at % size < n % size) for at in (position, position + 1)]
        elements = 2 * n - sum(pieces)
    found[ranks[taking_part]] = elements[taking_part]
    return found
