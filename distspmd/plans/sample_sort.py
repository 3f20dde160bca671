"""Sorts of a line that lies in parts on several ranks, and choices: what moves, and its meaning.

Each rank sorts its part. Where the parts of the result begin in those is found exactly, by samples;
then each element moves once, to the rank that holds its place, which merges what comes
(``kernels/sample_sort.hpp``). So a rank receives its part of the result at most, less what it had
of it, and data decide how much that is. Elements that a mask chooses close up as they are: each
moves once at most, and those of the first part not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.plans.line_exchange import LineExchange


@dataclass(frozen=True)
class SampleSort(LineExchange):
    """A sort of a line in a lowered program.

    Attributes:
        chooses: whether chosen elements close up, in their order, and none is sorted.
    """

    chooses: bool = False

    @property
    def most_bytes(self) -> int:
        """Bytes that all ranks receive at most: each element, once."""
        if not self.is_split:
            return 0
        first, *others = self.sizes
        moving = sum(others) if self.chooses else first + sum(others)
        return moving * self.itemsize + self.given_bytes

    @property
    def expected_bytes(self) -> int:
        """Bytes that all ranks receive of a line in no order."""
        if not self.is_split:
            return 0
        sizes = self.sizes
        if self.chooses:  # half of them
            return sum(sizes[1:]) // 2 * self.itemsize + self.given_bytes
        stays = sum(n * n for n in sizes) / sum(sizes)
        return round((sum(sizes) - stays) * self.itemsize) + self.given_bytes

    def received_bytes(self, line: NDArray[Any]) -> int:
        """Bytes that all ranks receive of a line, or of a mask that chooses from one."""
        if not self.is_split:
            return 0
        order = np.flatnonzero(line) if self.chooses else np.argsort(line, kind="stable")
        ends = [self.parts[rank] for rank in self.workers]
        stays = sum(int(((order[lo:hi] >= lo) & (order[lo:hi] < hi)).sum()) for lo, hi in ends)
        return (len(order) - stays) * self.itemsize + self.given_bytes

    def simulate(self, tiles: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The parts of the line in order, of its parts: the meaning of a sort of elements."""
        line = np.concatenate([tiles[rank] for rank in self.workers] or [np.zeros(0)])
        found = np.sort(line, kind="stable")
        return [found[lo:hi] for lo, hi in self.parts]

    @property
    def what(self) -> str:
        """What it is, in messages."""
        return f"the {'choice' if self.chooses else 'sort'} of {self.data}"

    @property
    def layouts(self) -> str:
        """The parts, in which the line is before and after."""
        done = "closed up" if self.chooses else "in order"
        return f"{len(self.workers)} parts -> {len(self.workers)} parts {done}"

    @property
    def found(self) -> str:
        """Who finds out what moves."""
        return f"found by {'counts' if self.chooses else 'samples'} at run time"

    @property
    def steps(self) -> str:
        """What carries it out."""
        return "a message from each part to each" if self.chooses else "sample sort"

    @property
    def bytes_text(self) -> str:
        """The bytes that ranks receive, as far as that is known before the run."""
        expected = "if half is chosen" if self.chooses else "if in no order"
        return f"{self.expected_bytes:,} {expected}, {self.most_bytes:,} at most"
