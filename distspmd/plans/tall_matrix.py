"""Orthogonal factorisations of one matrix of many rows, which ranks have parts of: what moves.

Ranks factorise their rows, and triangles are joined along a binary tree
(``kernels/tall_matrix.hpp``): each rank but the first sends one triangle up, and gets its factor
back where the orthogonal factor is wanted. The rows stay where they are.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from distspmd.layouts.intervals import Interval
from distspmd.plans.machine import Machine
from distspmd.plans.matrix_exchange import MatrixExchange

TALL = {
    "qr": "orthogonal factorisation",
    "triangle_of_qr": "triangle of an orthogonal factorisation",
}
"""Functions of :data:`distspmd.nodes.lapack.FUNCTIONS` on tall matrices, and what they are."""
ROWS = 4
"""Rows for each column that a tall matrix has at least."""


@dataclass(frozen=True)
class TallMatrix(MatrixExchange):
    """A factorisation of a tall matrix in a lowered program."""

    @functools.cached_property
    def holders(self) -> tuple[int, ...]:
        """Ranks that factorise, by their rows: the first of those with the same."""
        first: dict[Interval, int] = {}
        for rank in self.workers:
            first.setdefault(self.rows[rank], rank)
        return tuple(first[own] for own in sorted(first))

    @functools.cached_property
    def sent(self) -> tuple[int, ...]:
        """Elements of the triangle that each holder but the first sends."""
        sizes = [self.rows[rank][1] - self.rows[rank][0] for rank in self.holders]
        found = []
        for holder in range(1, len(sizes)):
            below = holder & -holder  # it has joined those of so many
            found.append(min(sum(sizes[holder : holder + below]), self.columns) * self.columns)
        return tuple(found)

    @property
    def ends(self) -> int:
        """Bytes of first rows that the first holder needs for the signs, and of copies of rows."""
        ends = [self.rows[rank] for rank in self.holders]
        above = sum(max(0, min(hi, self.columns) - lo) for lo, hi in ends[1:])
        copied = sum(hi - lo for lo, hi in self.rows) - sum(hi - lo for lo, hi in ends)
        return (above + (copied if self.returns else 0)) * self.columns * self.itemsize

    @property
    def returns(self) -> bool:
        """Whether the orthogonal factor is made."""
        return self.function == "qr"

    @property
    def expected_bytes(self) -> int:
        """Bytes that all ranks receive."""
        if not self.is_split:
            return 0
        return (1 + self.returns) * sum(self.sent) * self.itemsize + self.ends

    def seconds(self, machine: Machine) -> float:
        """Of what moves in one call: a triangle up on each level of the tree, and one down."""
        if not self.is_split:
            return 0.0
        levels = (1 + self.returns) * math.ceil(math.log2(len(self.holders)))
        return levels * machine.passing(1, max(self.sent) * self.itemsize)

    @property
    def what(self) -> str:
        """What it is, in messages."""
        return TALL[self.function]

    @property
    def layouts(self) -> str:
        """The rows stay."""
        return f"{len(self.holders)} parts of rows, triangles along a tree"

    @property
    def steps(self) -> str:
        """What carries it out."""
        return f"{self.what} by a tree"

    @property
    def textbook(self) -> int:
        """Bytes that textbooks count: half a square for each triangle that is sent."""
        each = self.columns * (self.columns + 1) // 2 * self.itemsize
        return (1 + self.returns) * each * (len(self.holders) - 1)

    @property
    def bytes_text(self) -> str:
        """The bytes that ranks receive, beside those of textbooks."""
        return f"{self.expected_bytes:,} ({self.textbook:,} in textbooks)"
