"""Messages: which box goes from which rank to which; the messages of a step are rows of one table.

A redistribution among thousands of ranks has millions of messages. They are stored as columns of
numbers, which are computed on first use, and become objects only when they are inspected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box, Numbers


@dataclass(frozen=True, slots=True)
class Message:
    """A box of the sender's source buffer goes to the same box of the receiver's target buffer."""

    sender: int
    receiver: int
    box: Box


@dataclass(frozen=True, slots=True)
class Traffic:
    """Elements that each rank sends to others, receives from others, and copies; and its calls.

    Attributes:
        sent: elements; a box that a call sends to all of a group counts once.
        received: elements that go to the rank as the step is carried out: each message to it, and
            of a call in which MPI combines operands what its rank receives in
            :mod:`distspmd.plans.collectives`.
        delivered: elements that the step brings to its target from other ranks; of an element
            that is reduced the result alone, however many operands come for it.
        copied: elements that stay on the rank.
        partners: messages from and to other ranks.
    """

    sent: Numbers
    received: Numbers
    delivered: Numbers
    copied: Numbers
    partners: Numbers


class Messages(Sequence[Message]):
    """A frozen sequence of messages; row ``(sender, receiver, lo, hi, lo, hi, ...)`` each.

    A table that is made later comes with the traffic of its messages, as far as that is known.
    """

    STATE: ClassVar[tuple[str, ...]] = ("table", "traffic")
    """Arguments by which another process makes the same messages, which are attributes, too."""

    def __init__(
        self, table: Numbers | Callable[[], Numbers], traffic: Traffic | None = None
    ) -> None:
        self._given = table
        self.traffic = traffic

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.STATE}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # with the arguments of its class

    @classmethod
    def of(cls, messages: Iterable[Message]) -> Messages:
        """Messages from objects."""
        if isinstance(messages, Messages):
            return messages
        rows = [(m.sender, m.receiver, *intervals.bounds(m.box)) for m in messages]
        return cls(np.array(rows, dtype=np.int64).reshape(len(rows), len(rows[0]) if rows else 2))

    @classmethod
    def columns(cls, senders: Numbers, receivers: Numbers, bounds: Numbers) -> Messages:
        """Messages with the boxes ``bounds`` (messages, dimensions, 2); empty ones are left out."""
        held = (bounds[:, :, 1] > bounds[:, :, 0]).all(axis=1)
        if not held.all():
            senders, receivers, bounds = senders[held], receivers[held], bounds[held]
        table = np.empty((len(senders), 2 + 2 * bounds.shape[1]), dtype=np.int64)
        table[:, 0], table[:, 1] = senders, receivers
        table[:, 2:] = bounds.reshape(len(senders), 2 * bounds.shape[1])
        return cls(table)

    @cached_property
    def table(self) -> Numbers:
        """All numbers; a row for each message."""
        return self._given() if callable(self._given) else self._given

    @property
    def is_listed(self) -> bool:
        """Whether the table has been made; it is made when somebody first asks for it."""
        return not callable(self._given) or "table" in vars(self)

    @property
    def content(self) -> bytes:
        """All numbers, as bytes; other messages have others."""
        return self.table.tobytes()

    @property
    def senders(self) -> Numbers:
        """Rank that sends each message."""
        return self.table[:, 0]

    @property
    def receivers(self) -> Numbers:
        """Rank that receives each message."""
        return self.table[:, 1]

    @property
    def bounds(self) -> Numbers:
        """Boxes: (messages, dimensions, 2)."""
        return self.table[:, 2:].reshape(len(self.table), self.table.shape[1] // 2 - 1, 2)

    @cached_property
    def volumes(self) -> Numbers:
        """Elements of each message."""
        sides = self.table[:, 3::2] - self.table[:, 2::2]
        volumes: Numbers = np.maximum(sides, 0).prod(axis=1)
        return volumes

    def runs(self, extents: Sequence[int]) -> Numbers:
        """Runs of memory in what each rank receives and copies; of ranks beyond the last none.

        Args:
            extents: of the array.
        """
        found = np.zeros(int(self.receivers.max(initial=-1)) + 1, np.int64)
        np.add.at(found, self.receivers, runs(self.bounds, extents))
        return found

    @cached_property
    def between(self) -> NDArray[np.bool_]:
        """Which messages go from one rank to another."""
        between: NDArray[np.bool_] = self.senders != self.receivers
        return between

    def of_rank(self, rank: int) -> Iterator[tuple[int, int, Box]]:
        """Sender, receiver and box of what a rank sends or receives, in order, but empty ones."""
        rows = self.table[(self.senders == rank) | (self.receivers == rank)]
        for sender, receiver, *ends in rows.tolist():
            box = tuple(zip(ends[::2], ends[1::2], strict=True))
            if not intervals.is_empty(box):
                yield sender, receiver, box

    @cached_property
    def _objects(self) -> tuple[Message, ...]:
        senders, receivers = self.senders.tolist(), self.receivers.tolist()
        lows, highs = self.table[:, 2::2].tolist(), self.table[:, 3::2].tolist()
        return tuple(
            Message(sender, receiver, tuple(zip(low, high, strict=True)))
            for sender, receiver, low, high in zip(senders, receivers, lows, highs, strict=True)
        )

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._objects)

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, at: int | slice) -> Message | tuple[Message, ...]:
        return self._objects[at]

    def __eq__(self, other: Any) -> bool:
        if isinstance(other, Messages):
            return np.array_equal(self.table, other.table) or len(self) == len(other) == 0
        return isinstance(other, tuple) and self._objects == other

    def __hash__(self) -> int:
        return hash(self.table.tobytes())

    def __repr__(self) -> str:
        return repr(self._objects)


def runs(bounds: Numbers, extents: Sequence[int]) -> Numbers:
    """Runs of memory in boxes (boxes, dimensions, 2) of an array; of an empty one none.

    A run is what lies along the last dimension in which a box is more than one element wide, and
    with it all before, as long as the box has the whole of the dimensions behind.
    """
    sides = np.maximum(bounds[:, :, 1] - bounds[:, :, 0], 0)
    run = np.ones(len(sides), np.int64)
    open_ = np.ones(len(sides), bool)
    for side, extent in zip(sides.T[::-1], reversed(extents), strict=True):
        run[open_] *= side[open_]
        open_ &= (run <= 1) | (side == extent)
    found: Numbers = sides.prod(axis=1) // np.maximum(run, 1)
    return found
