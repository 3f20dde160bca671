"""Exchanges of rows that data choose: all-to-alls whose counts are found when the program runs.

Each rank has some rows of an operand, and needs some rows of the value. Both sets are functions of
arrays that all ranks hold whole, and of a part of each rank: so every rank knows at run time what
every other one has and needs, and nobody asks. What ranks have of one row is added up. In a gather
one rank has a row; in a scatter-add several may.

The words of a rank are, in this order (``plan/decode.hpp`` reads them)::

    bytes of the name, the name (8 bytes a word), dtype, itemsize, rows, elements of a row,
    first row of the rank's source, parts of what ranks have, parts of what they need
    parts    number of ranks, for each: begin, end
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import PlanError
from distspmd.layouts.intervals import Interval
from distspmd.plans.encoding import DTYPES
from distspmd.plans.exchange import Exchange

Arrays = Mapping[str, NDArray[Any]]
"""Values of members and indices, by name."""


@dataclass(frozen=True)
class RowSet:
    """Rows of each rank, as arrays and a part of each rank describe them.

    A number ``s`` belongs to the rank whose part has it, or has what the member holds there. The
    row is ``s``, or what the index holds there. Rows outside of the container are none.

    Attributes:
        parts: from the first to before the last, by ranks; ranks with one part have the same rows.
        member: the array whose values parts are of; none, and they are of the numbers themselves.
        index: the array that holds rows; none, and the numbers are the rows.
    """

    parts: tuple[Interval, ...]
    member: str = ""
    index: str = ""

    def of(self, rank: int, rows: int, arrays: Arrays) -> NDArray[np.int64]:
        """The rows of a rank, in order."""
        lo, hi = self.parts[rank]
        names = [name for name in (self.index, self.member) if name]
        count = arrays[names[0]].size if names else rows
        found = numbers = np.arange(count, dtype=np.int64)
        if self.index:
            found = arrays[self.index].reshape(-1).astype(np.int64)
        key = arrays[self.member].reshape(-1) if self.member else numbers
        found = found[(key >= lo) & (key < hi)]
        return np.unique(found[(found >= 0) & (found < rows)])

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays that it needs."""
        return tuple(dict.fromkeys(name for name in (self.member, self.index) if name))

    def __str__(self) -> str:
        row = f"{self.index}[s]" if self.index else "s"
        if self.member:
            return f"{row} where {self.member}[s] is the rank's"
        return f"{row} of the rank's s" if self.index else "the rank's rows"


@dataclass(frozen=True)
class RowExchange(Exchange):
    """One exchange of rows of a lowered program.

    Attributes:
        data: the container whose rows move.
        dtype: of its elements.
        rows: of the container.
        width: elements of a row.
        has: the rows of which each rank has an operand.
        needs: the rows of which each rank needs the value.
        first: the first row of each rank's source tile.
        chosen: how many rows all ranks with different needs need together, if each once.
        source: where in the user's program they are needed.
        times: how often they move in a run; None where that is not known before.
    """

    data: str
    dtype: np.dtype[Any]
    rows: int
    width: int
    has: RowSet
    needs: RowSet
    first: tuple[int, ...]
    chosen: int
    source: str = ""
    times: int | None = 1

    def __post_init__(self) -> None:
        if len({len(self.has.parts), len(self.needs.parts), len(self.first)}) != 1:
            raise PlanError(f"rows of {self.data!r}: each rank needs a part on both sides.")
        if self.dtype not in DTYPES:
            raise PlanError(f"rows of {self.data!r}: {self.dtype} cannot be added up.")

    @property
    def ranks(self) -> int:
        """Ranks that take part in the run."""
        return len(self.first)

    @property
    def workers(self) -> tuple[int, ...]:
        """Ranks that have rows, or need them."""
        both = enumerate(zip(self.has.parts, self.needs.parts, strict=True))
        return tuple(rank for rank, sides in both if _some(sides))

    @property
    def nrow(self) -> int:
        """Bytes of a row."""
        return self.width * self.dtype.itemsize

    @property
    def expected_bytes(self) -> int:
        """Bytes that all ranks receive if data choose rows evenly."""
        holders, needers = (len(set(_some(each.parts))) for each in (self.has, self.needs))
        copies = len(_some(self.needs.parts)) / max(1, needers)
        each = min(self.chosen, self.rows * needers)
        return round(copies * each * self.nrow * (1 - 1 / max(1, holders)))

    @property
    def what(self) -> str:
        """What it is, in messages."""
        return f"the exchange of rows of {self.data}"

    @property
    def asked(self) -> tuple[int, ...]:
        """Dimensions in which data decide what moves."""
        return (0,)

    @property
    def layouts(self) -> str:
        """What ranks have, and what they need."""
        return f"{self.has} -> {self.needs}"

    @property
    def found(self) -> str:
        """Who finds out what moves."""
        return "found by all ranks at run time"

    @property
    def steps(self) -> str:
        """What carries it out."""
        return "all-to-all of rows"

    @property
    def bytes_text(self) -> str:
        """The bytes that ranks receive, as far as that is known before the run."""
        return f"{self.nrow:,} a row, {self.expected_bytes:,} if evenly chosen"

    def messages(self, arrays: Arrays) -> dict[tuple[int, int], NDArray[np.int64]]:
        """Rows that go from rank to rank, also to itself: the meaning of the exchange.

        Of ranks that have the same operand, one that needs it takes its own, and others take turns.
        """
        ranks = range(len(self.first))
        holders: dict[Interval, list[int]] = {}
        for rank in ranks:
            lo, hi = self.has.parts[rank]
            if lo < hi:
                holders.setdefault((lo, hi), []).append(rank)
        asked: dict[Interval, int] = {}
        found = {}
        for to in ranks:
            part = self.needs.parts[to]
            if part[0] >= part[1]:
                continue
            turn = asked.get(part, 0)
            asked[part] = turn + 1
            wanted = self.needs.of(to, self.rows, arrays)
            for operand, of in holders.items():
                sender = to if self.has.parts[to] == operand else of[turn % len(of)]
                both = np.intersect1d(wanted, self.has.of(sender, self.rows, arrays))
                if len(both):
                    found[sender, to] = both
        return found

    def received_bytes(self, arrays: Arrays) -> int:
        """Bytes that all ranks receive from others."""
        moved = (rows for (a, b), rows in self.messages(arrays).items() if a != b)
        return sum(map(len, moved)) * self.nrow

    def words(self, rank: int) -> NDArray[np.int64]:
        """The words of a rank."""
        text = self.title.encode()
        padded = np.frombuffer(text + bytes(-len(text) % 8), dtype="<i8")
        first = self.first[rank] if rank < len(self.first) else 0
        found = [len(text), *padded.tolist(), DTYPES[self.dtype], self.dtype.itemsize]
        found += [self.rows, self.width, first]
        for side in (self.has, self.needs):
            found.append(len(side.parts))
            for part in side.parts:
                found += part
        return np.array(found, dtype=np.int64)


def _some(parts: Sequence[Interval]) -> list[Interval]:
    return [(lo, hi) for lo, hi in parts if lo < hi]
