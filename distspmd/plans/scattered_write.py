"""Writes at places that data choose: what goes from the ranks that have indices to the owners.

Each rank has a part of the indices, and of the values that belong to them. What is written at a
place goes once to each rank that holds the place, from a rank that has the index
(``kernels/own_places.hpp``): of ranks with the same indices one that holds the place itself, or
they take turns. A part of the values that is as long in other dimensions as the tile of the rank
goes to ranks with the same of these dimensions. Places move again only where indices have changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts.intervals import Box, Interval
from distspmd.plans.line_exchange import LineExchange
from distspmd.plans.machine import Machine


@dataclass(frozen=True)
class ScatteredWrite(LineExchange):
    """A write at places that data choose, in a lowered program; the indices are the line.

    An element is one of the values; none moves where all places get one number.

    Attributes:
        picked: dimensions of the container that indices pick.
        extents: of the container.
        place_bytes: of a place as it moves.
        boxes: tiles of the container by ranks.
        keeps_places: whether the indices are the same all through a run.
        keeps_values: the same of the values.
    """

    picked: tuple[int, ...] = field(kw_only=True)
    extents: tuple[int, ...] = field(kw_only=True)
    place_bytes: int = field(kw_only=True)
    boxes: tuple[Box, ...] = field(kw_only=True)
    keeps_places: bool = field(default=False, kw_only=True)
    keeps_values: bool = field(default=False, kw_only=True)

    @property
    def is_split(self) -> bool:
        """Whether some rank that writes has not all of the indices, so that anything moves."""
        count = max((hi for _, hi in self.parts), default=0)
        writing = (self.parts[rank] for rank in range(self.ranks) if self._has_places(rank))
        return any(part != (0, count) for part in writing if count)

    def _of(self, box: Box, picked: bool) -> Box:
        return tuple(side for d, side in enumerate(box) if (d in self.picked) == picked)

    def _width(self, rank: int) -> int:
        sides = self._of(self.boxes[rank], picked=False)
        return int(np.prod([hi - lo for lo, hi in sides], dtype=np.int64)) * self.itemsize

    def _has_places(self, rank: int) -> bool:
        return all(lo < hi for lo, hi in self.boxes[rank])

    def senders(self, to: int) -> list[int]:
        """The ranks from which a rank gets what others have, one for each part of the indices."""
        if not self._has_places(to):
            return []
        rest, own = self._of(self.boxes[to], False), self._of(self.boxes[to], True)
        group = [
            rank
            for rank in range(self.ranks)
            if self._has_places(rank) and self._of(self.boxes[rank], False) == rest
        ]
        turn = sum(self._of(self.boxes[rank], True) == own for rank in group if rank < to)
        holders: dict[Interval, list[int]] = {}
        for rank in group:
            if self.parts[rank][0] < self.parts[rank][1]:
                holders.setdefault(self.parts[rank], []).append(rank)
        return [
            to if to in ranks else ranks[turn % len(ranks)] for _, ranks in sorted(holders.items())
        ]

    def received_bytes(
        self, indices: Sequence[NDArray[Any]], places: bool = True, values: bool = True
    ) -> int:
        """Bytes that all ranks receive of arrays of indices of one shape."""
        lengths = [self.extents[d] for d in self.picked]
        flat = [i.reshape(-1) % n for i, n in zip(indices, lengths, strict=True)]
        total = 0
        for to in range(self.ranks):
            sides = self._of(self.boxes[to], picked=True)
            each = places * self.place_bytes + values * self._width(to)
            for rank in self.senders(to):
                if rank != to:
                    lo, hi = self.parts[rank]
                    inside = [
                        (i[lo:hi] >= a) & (i[lo:hi] < b)
                        for i, (a, b) in zip(flat, sides, strict=True)
                    ]
                    total += int(np.logical_and.reduce(inside).sum()) * each
        return total

    @property
    def expected_bytes(self) -> int:
        """Bytes that all ranks receive each time, on the average, if places are evenly chosen."""
        runs = max(1, self.times or 1)
        room = np.prod([self.extents[d] for d in self.picked], dtype=np.float64)
        total = 0.0
        for to in range(self.ranks):
            sides = self._of(self.boxes[to], picked=True)
            share = np.prod([hi - lo for lo, hi in sides], dtype=np.float64) / max(1.0, room)
            each = self.place_bytes / (runs if self.keeps_places else 1)
            kept = self.keeps_places and self.keeps_values
            each += self._width(to) / (runs if kept else 1)
            lengths = (self.parts[r][1] - self.parts[r][0] for r in self.senders(to) if r != to)
            total += share * each * sum(lengths)
        return round(total)

    def seconds(self, machine: Machine) -> float:
        """Of what moves each time, on the average: nothing, where all of it moves but once."""
        often = 1 / max(1, self.times or 1) if self.keeps_places and self.keeps_values else 1.0
        moving = super().seconds(machine)
        waiting = self.rounds * (len(self.workers) - 1) * machine.alpha if self.is_split else 0.0
        return moving - (1 - often) * waiting

    @property
    def what(self) -> str:
        """What it is, in messages."""
        return f"the write to {self.data}"

    @property
    def asked(self) -> tuple[int, ...]:
        """Dimensions in which data decide what moves."""
        return self.picked

    @property
    def layouts(self) -> str:
        """Where the indices are, and what is written."""
        parts = len({part for part in self.parts if part[0] < part[1]})
        tiles = len({box for rank, box in enumerate(self.boxes) if self._has_places(rank)})
        return f"indices in {parts} parts -> {tiles} tiles"

    @property
    def found(self) -> str:
        """Who finds out what moves."""
        often = "once" if self.keeps_places else "when indices change"
        return f"found by who has the indices, {often}"

    @property
    def steps(self) -> str:
        """What carries it out."""
        return "all-to-all of places and values"

    @property
    def bytes_text(self) -> str:
        """The bytes that ranks receive, as far as that is known before the run."""
        value = max(map(self._width, range(self.ranks)), default=0)
        each = f"{self.place_bytes} a place" + f" and {value:,} a value" * bool(value)
        return f"{each}, {self.expected_bytes:,} each time if evenly chosen"
