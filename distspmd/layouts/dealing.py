"""Parts of an iteration space that are dealt in blocks, as a schedule says so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from distspmd.errors import ScheduleError


@dataclass(frozen=True, repr=False)
class Cyclic:
    """Parts that are dealt: each takes a block of each round; what :func:`cyclic` makes.

    Attributes:
        block: iterations of a part in a round; the last part of a round may have fewer.
        round: iterations of a round; as many as the blocks of all parts where it is None.

    Raises:
        ScheduleError: neither is a positive integer, or a round is shorter than a block.
    """

    block: int
    round: int | None = None

    def __post_init__(self) -> None:
        given = (self.block, self.block if self.round is None else self.round)
        are_numbers = all(isinstance(n, int) and not isinstance(n, bool) for n in given)
        if not are_numbers or not 1 <= given[0] <= given[1]:
            raise ScheduleError(
                f"{self} deals no blocks; write cyclic(64), or cyclic(64, 256) for rounds of 256."
            )

    def round_of(self, parts: int) -> int:
        """Iterations of a round that so many parts share."""
        return self.block * parts if self.round is None else self.round

    def __str__(self) -> str:
        return f"cyclic({self.block}{'' if self.round is None else f', {self.round}'})"

    __repr__ = __str__

    @classmethod
    def parse(cls, text: Any) -> Any:
        """Read ``cyclic(64)`` or ``cyclic(64, 256)``; anything else stays as it is."""
        found = (
            re.fullmatch(r"cyclic\((\d+)(?:, *(\d+))?\)", text) if isinstance(text, str) else None
        )
        return cls(int(found[1]), int(found[2]) if found[2] else None) if found else text


def cyclic(block: int, round: int | None = None) -> Cyclic:
    """Deal the iterations of a parameter in blocks: ``{"qkv": {"j": ("x", cyclic(64))}}``.

    Args:
        block: iterations of a part in each round.
        round: iterations of a round, which the extent must be a multiple of; by default as many as
            the parts have in a block each. A shorter one leaves the last part of a round less, or
            nothing.

    Raises:
        ScheduleError: neither is a positive integer, or a round is shorter than a block.
    """
    return Cyclic(block, round)
