"""What ranks tell each other within a call of LAPACK on one matrix that several of them have."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from distspmd.layouts.intervals import Interval
from distspmd.plans.exchange import Exchange


@dataclass(frozen=True)
class MatrixExchange(Exchange):
    """A call of a function on one matrix in a lowered program.

    Attributes:
        data: the container of the first result.
        function: by its name in :mod:`distspmd.nodes.lapack`.
        itemsize: bytes of an element.
        columns: of the matrix.
        rows: parts of it by ranks.
        sides: right-hand sides, of an operand or of an identity.
        own_sides: parts of them by ranks.
        source: where in the user's program it is.
        times: how often it runs; None where that is not known before.
        turned: whether rows are dealt in the place of columns.
        lower: whether right-hand sides are solved with a lower triangle.
    """

    data: str
    function: str
    itemsize: int
    columns: int
    rows: tuple[Interval, ...]
    sides: int = 0
    own_sides: tuple[Interval, ...] = ()
    source: str = ""
    times: int | None = 1
    turned: bool = False
    lower: bool = False

    @property
    def ranks(self) -> int:
        """Ranks that take part in the run."""
        return len(self.rows)

    @functools.cached_property
    def workers(self) -> tuple[int, ...]:
        """Ranks that have blocks: those that have anything."""
        return tuple(r for r, (lo, hi) in enumerate(self.rows) if lo < hi and self._has_sides(r))

    def _has_sides(self, rank: int) -> bool:
        return not self.own_sides or self.own_sides[rank][0] < self.own_sides[rank][1]

    @property
    def is_split(self) -> bool:
        """Whether ranks have different rows."""
        return len({self.rows[rank] for rank in self.workers}) > 1

    @property
    def block(self) -> int:
        """Columns of a block, where they are dealt."""
        return 1
