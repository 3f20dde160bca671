"""What ranks tell each other within a call on a line of which each has a part."""

from __future__ import annotations

from dataclasses import dataclass

from distspmd.layouts.intervals import Interval


@dataclass(frozen=True)
class LineExchange:
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
    def holders(self) -> tuple[int, ...]:
        """Ranks that work, by their parts: the first of those with the same part."""
        first: dict[Interval, int] = {}
        for rank, (lo, hi) in enumerate(self.parts):
            if lo < hi:
                first.setdefault((lo, hi), rank)
        return tuple(first[part] for part in sorted(first))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Elements of the parts of the holders."""
        return tuple(self.parts[rank][1] - self.parts[rank][0] for rank in self.holders)

    @property
    def is_split(self) -> bool:
        """Whether anything moves."""
        return len(self.holders) > 1

    @property
    def given_bytes(self) -> int:
        """Bytes of results that ranks get from others with the same part."""
        return (sum(hi - lo for lo, hi in self.parts) - sum(self.sizes)) * self.itemsize

    @property
    def expected_bytes(self) -> int:
        """Bytes that all ranks receive, as far as they are known before the run."""
        raise NotImplementedError

    @property
    def rounds(self) -> int:
        """How often ranks wait for each other's messages."""
        return 1

    @property
    def title(self) -> str:
        """What it is called in messages."""
        raise NotImplementedError

    @property
    def received(self) -> int | None:
        """Bytes that all ranks receive in a run; None where data decide them."""
        return None

    @property
    def asked(self) -> tuple[int, ...]:
        """Dimensions in which data decide what moves."""
        return (0,)

    @property
    def layouts(self) -> str:
        """The parts, in which the line is before and after."""
        raise NotImplementedError

    @property
    def found(self) -> str:
        """Who finds out what moves."""
        raise NotImplementedError

    @property
    def steps(self) -> str:
        """What carries it out."""
        raise NotImplementedError

    @property
    def bytes_text(self) -> str:
        """The bytes that ranks receive, as far as they are known before the run."""
        raise NotImplementedError
