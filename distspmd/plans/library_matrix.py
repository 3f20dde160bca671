"""Functions on one matrix in dealt columns that ScaLAPACK does: what moves is what textbooks count.

A matrix is brought to a tridiagonal or bidiagonal one column by column: each column's reflection
goes to all ranks, and so does its product with the rest of the matrix. Vectors go back through the
reflections in blocks. The library does not say what it moves; the moves at both ends are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from distspmd.plans.dealt_matrix import DealtMatrix
from distspmd.plans.machine import Machine


@dataclass(frozen=True)
class LibraryMatrix(DealtMatrix):
    """A call of a library of which ranks have dealt columns, in a lowered program."""

    @property
    def expected_bytes(self) -> int:
        """Bytes that all ranks receive: of what the library moves, what textbooks count."""
        return self.ends + self.textbook if self.is_split else 0

    def seconds(self, machine: Machine) -> float:
        """Of what moves in one call: two messages to all others for each column, and panels."""
        if not self.is_split:
            return 0.0
        count, n = len(self.workers), self.columns
        levels = math.ceil(math.log2(count))
        ends = machine.passing(2 * (count - 1), -(-self.ends // count))
        reduced = 2 * n * levels * machine.passing(1, n * self.itemsize // 2)
        blocks = math.ceil(n / self.block) * self._row.solves
        return (
            ends
            + reduced
            + blocks * levels * machine.passing(1, n * self.block * self.itemsize // 2)
        )

    @property
    def steps(self) -> str:
        """What carries it out."""
        return f"{self._row.title} by {self._row.library}"

    @property
    def textbook(self) -> int:
        """Bytes of a reflection and a product for each column, and of panels for vectors."""
        triangle = self.columns**2 // 2 * self.itemsize * (len(self.workers) - 1)
        return (2 + self._row.solves) * triangle

    @property
    def bytes_text(self) -> str:
        """The bytes that ranks receive."""
        return (
            f"{self.expected_bytes:,}: {self.ends:,} to and from rows, and about "
            f"{self.textbook:,} by {self._row.library}"
        )
