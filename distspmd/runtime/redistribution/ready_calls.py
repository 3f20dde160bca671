"""What a rank keeps of a redistribution that it called, so that the next call like it is fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from distspmd.layouts.layout import Layout
from distspmd.runtime.engine import arrays
from distspmd.runtime.engine.arrays import Tile


@dataclass(frozen=True, slots=True)
class Asked:
    """A call as it prints."""

    source: Layout
    target: Layout

    def __str__(self) -> str:
        return f"redistribute({self.source} -> {self.target})"


@dataclass(frozen=True, slots=True)
class Ready:
    """What a rank knows of a call that it has made before.

    Attributes:
        serial: the number of the engine.
        offsets: bytes from what the engine gets to the first element of either tile, None where it
            gets nothing; no offsets where it does not get the caller's own tiles.
        apart: from the first pointer to the second it is at most the one or at least the other,
            where the tiles have no memory in common.
        distance: what it is where they have, as each element has its place.
        call: as it prints.
        neutral: with what the target is filled before, if that is partial.
    """

    serial: int
    offsets: tuple[int | None, ...] | None = None
    apart: tuple[int, int] = (0, 0)
    distance: int | None = None
    call: Asked | None = None
    neutral: Any = None

    def takes(self, source: int | None, target: int | None) -> bool:
        """Whether tiles lie to each other as they did, in one memory or apart."""
        if source is None or target is None:
            return True
        least, most = self.apart
        distance = target - source
        return distance <= least or distance >= most or distance == self.distance


UNKNOWN = Ready(-1)


def pointers_of(
    tiles: Sequence[Tile | None], offsets: Sequence[int | None]
) -> tuple[int | None, ...]:
    """What an engine gets for tiles that lie as they did; see :class:`Ready`."""
    return tuple(
        None if tile is None or offset is None else arrays.address(tile) - offset
        for tile, offset in zip(tiles, offsets, strict=True)
    )
