"""Functions of LAPACK on one matrix that several ranks have rows of: what moves, and its time.

The columns are dealt in blocks, in turn (``kernels/dealt_matrix.hpp``). What ranks have of the
matrix goes to its blocks; each block is factorised by its owner and sent to the others, who bring
theirs up to date; and results go to the ranks that have their rows. That is half a matrix to each
rank, as in textbooks, beside the moves at both ends.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from distspmd.layouts.intervals import Interval
from distspmd.plans.machine import Machine
from distspmd.plans.matrix_exchange import MatrixExchange

WIDEST = 64
"""Columns of a block at most."""
_TURNS = 4
"""Blocks that each rank has at least, where there are so many columns."""
SCALAPACK = "ScaLAPACK"
_TOLD = 8
"""Bytes by which a panel tells of each exchange of rows, and whether there is an error."""


@dataclass(frozen=True)
class Together:
    """What ranks do together of one function.

    Attributes:
        title: in the record.
        takes: parts of the deal that operands fill: 0 is the matrix, and 1 right-hand sides.
        gives: the parts that are results; none where all ranks find them.
        exchanges: whether rows change places, of which each panel tells.
        factorises: whether blocks are factorised.
        solves: whether right-hand sides are solved with the triangle, from the last block on.
        reflects: whether blocks are made of reflections, whose factors go with them.
        library: what does it on the deal, if we do not.
        times: the work of it, as a multiple of LAPACK's on one rank.
    """

    title: str
    takes: tuple[int, ...] = (0,)
    gives: tuple[int, ...] = (0,)
    exchanges: bool = False
    factorises: bool = True
    solves: bool = False
    reflects: bool = False
    library: str = ""
    times: float = 1.0


TOGETHER: Mapping[str, Together] = {
    "cholesky": Together("Cholesky's factorisation"),
    "diagonal_of_factor": Together("elimination", gives=(), exchanges=True),
    "solve": Together("elimination and substitution", (0, 1), (1,), exchanges=True, solves=True),
    "solve_triangle": Together("substitution", (0, 1), (1,), factorises=False, solves=True),
    "inverse": Together("elimination and substitution", (0,), (1,), exchanges=True, solves=True),
    "qr_by_columns": Together("reflections", gives=(0, 1), solves=True, reflects=True),
    "triangle_by_columns": Together("reflections", reflects=True),
    "eigenvectors": Together("eigenvectors", solves=True, library=SCALAPACK, times=1.6),
    "eigenvalues": Together("eigenvalues", gives=(), library=SCALAPACK, times=2.0),
    "svd": Together("singular vectors", gives=(0, 0), solves=True, library=SCALAPACK, times=1.4),
    "singular_values": Together("singular values", gives=(), library=SCALAPACK, times=1.1),
}
"""Functions of :data:`distspmd.nodes.lapack.FUNCTIONS` that ranks can do together."""


def block_of(columns: int, workers: int) -> int:
    """Columns of a block of a matrix of so many columns."""
    return max(1, min(WIDEST, -(-columns // (_TURNS * max(1, workers)))))


@dataclass(frozen=True)
class DealtMatrix(MatrixExchange):
    """A call on a matrix whose columns are dealt, in a lowered program."""

    def _columns_of(self, rank: int, part: int) -> Interval:
        """Columns that a rank has of a part."""
        if not part:
            return 0, self.columns
        return self.own_sides[rank] if self.own_sides else (0, self.sides)

    @property
    def block(self) -> int:
        """Columns of a block."""
        return block_of(self.columns, len(self.workers))

    @property
    def _row(self) -> Together:
        return TOGETHER[self.function]

    @functools.cached_property
    def _blocks(self) -> tuple[list[Interval], list[Interval]]:
        """Columns of the blocks of the matrix, and of those of right-hand sides."""
        starts = range(0, self.columns, self.block), range(0, self.sides, self.block)
        ends = self.columns, self.sides
        first, second = (
            [(lo, min(lo + self.block, end)) for lo in own]
            for own, end in zip(starts, ends, strict=True)
        )
        return first, second

    def _owned(self, part: int, columns: Interval) -> Mapping[int, int]:
        """How many of some columns of a part each worker has."""
        found = dict.fromkeys(self.workers, 0)
        before = len(self._blocks[0]) if part else 0
        for number, (lo, hi) in enumerate(self._blocks[part], before):
            owner = self.workers[number % len(self.workers)]
            found[owner] += max(0, min(hi, columns[1]) - max(lo, columns[0]))
        return found

    def _crossing(self, part: int, holders: Sequence[int]) -> int:
        """Elements that go between the windows of some ranks and the blocks of a part."""
        total = 0
        for rank in holders:
            own = self.rows[rank], self._columns_of(rank, part)
            (lo, hi), columns = own[::-1] if self.turned else own
            owned = self._owned(part, columns)
            total += (hi - lo) * (sum(owned.values()) - owned.get(rank, 0))
        return total

    def _givers(self, part: int) -> list[int]:
        """Ranks whose windows are taken: the first of those with the same."""
        first: dict[tuple[Interval, Interval], int] = {}
        for rank in self.workers:
            own = self.rows[rank], self._columns_of(rank, part)
            first.setdefault(own, rank)
        return list(first.values())

    @functools.cached_property
    def ends(self) -> int:
        """Bytes between the windows of operands and results and the blocks."""
        row = self._row
        taken = sum(self._crossing(part, self._givers(part)) for part in row.takes)
        given = sum(self._crossing(part, self.workers) for part in self._given)
        return (taken + given) * self.itemsize

    @property
    def _given(self) -> list[int]:
        """Parts that go to their windows: not a triangle that has fewer rows, which is summed."""
        is_summed = self._row.reflects and max(hi for _, hi in self.rows) > self.columns
        return [part for part in self._row.gives if part or not is_summed]

    @functools.cached_property
    def panels(self) -> tuple[tuple[int, int], ...]:
        """Bytes of each panel that is sent, and how many ranks get it."""
        count, (blocks, sides) = len(self.workers), self._blocks
        row, rows = self._row, max(hi for _, hi in self.rows)
        told = _TOLD if row.exchanges else 0
        blocks = [(lo, hi) for lo, hi in blocks if lo < rows]
        found = []
        if row.factorises:
            for lo, hi in blocks:
                below = rows - lo + row.reflects
                found.append((below * (hi - lo) * self.itemsize + (hi - lo + 1) * told, count - 1))
        if row.solves:
            before = len(self._blocks[0])
            for number, (lo, hi) in enumerate(blocks):
                first = number if row.reflects else 0  # columns before are not reflected
                owners = {(before + n) % count for n in range(first, len(sides))}
                below = rows - lo + row.reflects if self.lower or row.reflects else hi
                others = len(owners - {number % count})
                found.append((below * (hi - lo) * self.itemsize, others))
        return tuple(found)

    @property
    def expected_bytes(self) -> int:
        """Bytes that all ranks receive."""
        if not self.is_split:
            return 0
        return self.ends + sum(nbytes * others for nbytes, others in self.panels)

    def seconds(self, machine: Machine) -> float:
        """Of what moves in one call: panels are passed on one after the other."""
        if not self.is_split:
            return 0.0
        count = len(self.workers)
        moves = 1 + len(self._row.takes)
        ends = machine.passing(moves * (count - 1), -(-self.ends // count))
        return ends + sum(
            math.ceil(math.log2(others + 1)) * machine.passing(1, nbytes)
            for nbytes, others in self.panels
        )

    @property
    def what(self) -> str:
        """What it is, in messages."""
        return self._row.title

    @property
    def layouts(self) -> str:
        """How the matrix lies before, within and after."""
        parts = len({self.rows[rank] for rank in self.workers})
        lines = "rows" if self.turned else "columns"
        dealt = f"{lines} by {self.block} dealt to {len(self.workers)} ranks"
        return f"{parts} parts of rows -> {dealt} -> {parts} parts of rows"

    @property
    def steps(self) -> str:
        """What carries it out."""
        return f"{self._row.title} by blocks"

    @property
    def textbook(self) -> int:
        """Bytes that textbooks count: to each of the others what is below the diagonal, each time.

        That is half a square for one triangle.
        """
        row, rows = self._row, max(hi for _, hi in self.rows)
        times, least = row.factorises + row.solves, min(rows, self.columns)
        below = rows * least - least**2 // 2 if row.reflects else self.columns**2 // 2
        return times * below * self.itemsize * (len(self.workers) - 1)

    @property
    def bytes_text(self) -> str:
        """The bytes that ranks receive, beside those of textbooks."""
        return (
            f"{self.expected_bytes:,}: {self.expected_bytes - self.ends:,} of panels "
            f"({self.textbook:,} in textbooks), {self.ends:,} to and from rows"
        )
