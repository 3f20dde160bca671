"""What ranks tell each other within a call on a line of which each has a part."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Self

from distspmd.layouts.intervals import Interval
from distspmd.plans.exchange import Exchange


@dataclass(frozen=True)
class LineExchange(Exchange):
    """A call in a lowered program on a line that lies in parts on several ranks.

    Attributes:
        data: the container that gets what is made of the line.
        itemsize: bytes of an element that moves.
        parts: of the line by ranks; ranks with the same part have the same result.
        source: where in the user's program it is.
        times: how often it runs; None where that is not known before.
    """

    data: str
    itemsize: int
    parts: tuple[Interval, ...]
    source: str = ""
    times: int | None = 1

    @property
    def ranks(self) -> int:
        """Ranks that take part in the run."""
        return len(self.parts)

    @property
    def workers(self) -> tuple[int, ...]:
        """Ranks that work, by their parts: the first of those with the same part."""
        first: dict[Interval, int] = {}
        for rank, (lo, hi) in enumerate(self.parts):
            if lo < hi:
                first.setdefault((lo, hi), rank)
        return tuple(first[part] for part in sorted(first))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Elements of the parts of the workers."""
        return tuple(self.parts[rank][1] - self.parts[rank][0] for rank in self.workers)

    @property
    def given_bytes(self) -> int:
        """Bytes of results that ranks get from others with the same part."""
        return (sum(hi - lo for lo, hi in self.parts) - sum(self.sizes)) * self.itemsize

    def evenly(self, count: int) -> Self:
        """The same of a line of which so many ranks have even parts."""
        length = max((hi for _, hi in self.parts), default=0)
        return replace(self, parts=tuple(even(length, count)))

    @property
    def asked(self) -> tuple[int, ...]:
        """Dimensions in which data decide what moves."""
        return (0,)


def even(extent: int, parts: int) -> list[Interval]:
    """Parts of about as many elements each."""
    return list(itertools.pairwise(extent * k // parts for k in range(parts + 1)))
