"""Pipelines: ranks run a loop in order in blocks, and hand on a rim of what they have written.

Rank after rank runs its iterations for a block of an inner loop, and sends the last rows of that to
the next one. A block costs a message, and until the first one is through all ranks the last rank
waits: so the number of blocks is about the square root of the time of a tile over that of a
message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.plans.exchange import Exchange
from distspmd.plans.machine import Machine
from distspmd.plans.tile_work import TileWork


@dataclass(frozen=True)
class Handing:
    """What each rank hands on in a run of a loop.

    Attributes:
        values: of the inner loop, which are cut into blocks.
        skew: values by which each iteration begins the inner loop earlier than the one before.
        nbytes: of the rim at one value of the inner loop.
    """

    values: int
    skew: int
    nbytes: int

    def width(self, machine: Machine, parts: int, rows: int, seconds: float) -> int:
        """Values of the inner loop in a block.

        Args:
            machine: what messages cost.
            parts: ranks, one behind the other.
            rows: iterations of the longest tile.
            seconds: of the work of a tile.
        """
        blocks = self._blocks(machine, np.array([parts]), np.array([rows]), np.array([seconds]))
        return int(np.ceil(self._length(np.array([rows]))[0] / blocks[0]))

    def waiting(self, machine: Machine, parts: Any, rows: Any, seconds: Any) -> Any:
        """Seconds of a run beside the work of a tile: until it begins, and for messages.

        Arguments are those of :meth:`width`, of many tilings at once.
        """
        parts, rows, seconds = np.asarray(parts), np.asarray(rows), np.asarray(seconds)
        blocks = self._blocks(machine, parts, rows, seconds)
        message = machine.alpha + machine.beta * self.values * self.nbytes / blocks
        later = seconds * self.skew * rows / max(1, self.values)
        found = blocks * message + (parts - 1) * (seconds / blocks + message + later)
        return np.where(parts > 1, found, 0.0)

    def _length(self, rows: Any) -> Any:
        """Values of the inner loop from the first to the last in a tile, skewed."""
        return self.values + self.skew * np.maximum(rows - 1, 0)

    def _blocks(self, machine: Machine, parts: Any, rows: Any, seconds: Any) -> Any:
        """Blocks of a tile for which it waits least."""
        once = seconds + machine.beta * self.values * self.nbytes
        best = np.sqrt((parts - 1) * once / max(machine.alpha, 1e-9))
        return np.clip(best, 1, np.maximum(1, self._length(rows)))


@dataclass(frozen=True)
class Pipeline(Exchange):
    """A loop of a lowered program that ranks run one behind the other, in blocks.

    Attributes:
        data: what they hand on.
        variable: of the loop.
        handing: how much.
        width: values of the inner loop in a block.
        begin: the first iteration.
        tiles: first iteration and end on each rank.
        chains: ranks that hand on, each to the next one.
        depth: iterations of the rim.
        work: of the longest tile.
        number: of the talk of the ranks in the program.
        source: where in the user's program it is.
        times: how often it runs; None where that is not known before.
    """

    data: str
    variable: str
    handing: Handing
    width: int
    begin: int
    tiles: tuple[tuple[int, int], ...]
    chains: tuple[tuple[int, ...], ...]
    depth: int
    work: TileWork
    number: int = 0
    source: str = ""
    times: int | None = 1

    @property
    def ranks(self) -> int:
        """Ranks that take part in the run."""
        return len(self.tiles)

    @property
    def workers(self) -> tuple[int, ...]:
        """Ranks that hand on, or get."""
        return tuple(rank for chain in self.chains if len(chain) > 1 for rank in chain)

    @property
    def rows(self) -> int:
        """Iterations of the longest tile."""
        return max(end - first for first, end in self.tiles)

    @property
    def blocks(self) -> int:
        """Blocks of the inner loop on all ranks together."""
        last = max(end for _, end in self.tiles) - 1
        length = self.handing.values + self.handing.skew * (last - self.begin)
        return -(-length // self.width)

    @property
    def expected_bytes(self) -> int:
        """Bytes that all ranks receive in one run: the rim of each boundary, once."""
        at_once = self.handing.nbytes * self.handing.values
        firsts = (self.tiles[rank][0] for chain in self.chains for rank in chain[1:])
        return sum(
            at_once * min(self.depth, first - self.begin) // max(1, self.depth) for first in firsts
        )

    def seconds(self, machine: Machine) -> float:
        """Seconds of one run beside the work of a tile."""
        parts = max((len(chain) for chain in self.chains), default=1)
        own = self.work.seconds(machine) / max(1, self.work.times)
        return float(self.handing.waiting(machine, parts, self.rows, own))

    @property
    def what(self) -> str:
        """What it is, in messages."""
        return f"the pipeline over {self.variable}"

    @property
    def layouts(self) -> str:
        """Where what is handed on comes from, and goes to."""
        rows = "the last row" if self.depth == 1 else f"the last {self.depth} rows"
        return f"{rows} of a tile -> the next rank"

    @property
    def found(self) -> str:
        """Who finds out what moves."""
        return f"a pipeline over {self.variable}"

    @property
    def steps(self) -> str:
        """What carries it out."""
        return f"{self.blocks} blocks of {self.width}, a message each"


def chains_of(
    first: NDArray[np.int64], idle: NDArray[np.bool_], groups: NDArray[np.int64]
) -> tuple[tuple[int, ...], ...]:
    """Ranks one behind the other: those of a group that have iterations, by their first ones.

    Args:
        first: iteration of each rank.
        idle: ranks that have none.
        groups: a number for each rank; ranks with the same one share iterations.
    """
    found: dict[int, list[int]] = {}
    for rank in sorted(np.flatnonzero(~idle).tolist(), key=lambda rank: int(first[rank])):
        found.setdefault(int(groups[rank]), []).append(rank)
    return tuple(map(tuple, found.values()))
