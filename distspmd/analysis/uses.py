"""Uses: what an iteration space does to a container: it reads it, writes it, or updates it.

A space *updates* a container where a nested SDFG both reads and writes it: it has one tile of it.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.analysis.accesses import Access, Edge
from distspmd.analysis.inspectors import Inspection
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.layouts.layout import Layout


@dataclass(frozen=True, eq=False)
class _Use:
    """What all uses have.

    Attributes:
        space: the iteration space.
        data: the container.
        layout: box of each rank; partial where the ranks write, or read, operands of a reduction.
        edges: edges at the border of the space that carry the use.
        certain: whether the use happens in every run, exactly once.
        times: how often it happens, as far as that is known.
        share: part of its box that each time touches, on the average, where loops choose it.
        index: parameter that indexes each dimension by itself; None where it is not so simple.
    """

    space: IterationSpace
    data: str
    layout: Layout
    edges: tuple[Edge, ...] = field(repr=False)
    certain: bool = field(default=True, kw_only=True)
    times: int = field(default=1, kw_only=True)
    share: float = field(default=1.0, kw_only=True)
    index: tuple[str | None, ...] = field(default=(), kw_only=True)

    @property
    def repeats(self) -> float:
        """How often as much as the whole box is touched."""
        return self.share * self.times

    @property
    def tiles(self) -> Layout:
        """The tiles that the space works on."""
        return self.layout

    @property
    def needs(self) -> tuple[Layout, ...]:
        """Layouts whose tiles together are what the space needs of its tiles."""
        return (self.tiles,)

    @property
    def reduction(self) -> str | None:
        """Reduction that combines the operands of ranks, if they read or write operands."""
        return self.layout.partial.reduction if self.layout.partial else None


@dataclass(frozen=True, eq=False)
class Read(_Use):
    """A container as a space reads it; of a partial layout each rank reads its own operand.

    Attributes:
        parts: layouts whose tiles together are what is read; none for that of the use.
        approximate: dimensions that were taken whole because an index is unknown.
        moved: dimensions in which loops around the space choose what is read.
        accesses: all that it stands for.
        inspection: how to find at run time what data let it touch; None if all of its box is to be
            fetched.
    """

    parts: tuple[Layout, ...] = field(default=(), kw_only=True)
    approximate: tuple[int, ...] = field(default=(), kw_only=True)
    moved: tuple[int, ...] = field(default=(), kw_only=True)
    accesses: tuple[Access, ...] = field(default=(), kw_only=True, repr=False)
    inspection: Inspection | None = field(default=None, kw_only=True, repr=False)

    @property
    def needs(self) -> tuple[Layout, ...]:
        """Layouts whose tiles together are what the space needs of its tiles."""
        return self.parts or (self.layout,)

    @property
    def needs_values(self) -> bool:
        """Whether the space needs the values that its tile held before."""
        return True

    def is_asked_for(self, written: bool) -> bool:
        """Whether only what the use touches is fetched, found when the program runs.

        What loops choose of a container that nobody writes is fetched once, for all iterations.
        """
        return self.inspection is not None and (written or bool(self.approximate))


def asked_elements(
    read: Read,
    bounds: NDArray[np.int64],
    iterations: NDArray[Any],
    rewritten: Set[str],
) -> NDArray[np.float64]:
    """How many elements a rank asks for that data choose: one of each row that is read along.

    It is the mean of all times: ranks ask once where what decides does not change.

    Args:
        read: a use; loops choose what is read where data do not, and nothing is asked for then.
        bounds: boxes of its tiles, (..., dimensions, 2).
        iterations: of the space in each of them.
        rewritten: containers that are written more than once in a run.
    """
    sides = np.maximum(bounds[..., 1] - bounds[..., 0], 0)
    if not read.approximate:
        return np.zeros(sides.shape[:-1])
    along = [d for d in range(sides.shape[-1]) if d not in read.approximate]
    rows = sides[..., list(read.approximate)].prod(axis=-1)
    found = np.minimum(rows, iterations / np.maximum(sides[..., along].prod(axis=-1), 1))
    changes = read.inspection is None or not rewritten.isdisjoint(read.inspection.sources)
    asked: NDArray[np.float64] = found / (1 if changes else max(1, read.times))
    return asked


@dataclass(frozen=True, eq=False)
class Write(_Use):
    """A container as a space writes it; of a partial layout each rank writes its own operand.

    Attributes:
        exact: whether each element of each box is surely written.
        accumulates: whether the old values are operands too.
    """

    exact: bool = field(default=True, kw_only=True)
    accumulates: bool = field(default=False, kw_only=True)

    @property
    def needs_values(self) -> bool:
        """Whether the space needs the values that its tile held before: what it leaves out."""
        return self.layout.partial is None and (not self.exact or self.accumulates)


@dataclass(frozen=True, eq=False)
class Update(_Use):
    """A container that the body of a space reads and writes in one tile.

    The layout is that of what is written; no rank updates operands of a reduction.

    Attributes:
        exact: whether each element of each box is surely written.
        accumulates: whether the old values are operands too.
        works_on: the tiles of the body.
        reads_through: edges at the border through which it reads.
        approximate: dimensions of what it reads that were taken whole.
        brought: layouts whose tiles together are what is needed before the space begins, where its
            ranks hand on the rest to each other; none for the tiles of the body.
    """

    exact: bool = field(default=True, kw_only=True)
    accumulates: bool = field(default=False, kw_only=True)
    brought: tuple[Layout, ...] = field(default=(), kw_only=True)
    works_on: Layout = field(kw_only=True)
    reads_through: tuple[Edge, ...] = field(default=(), kw_only=True, repr=False)
    approximate: tuple[int, ...] = field(default=(), kw_only=True)

    @property
    def tiles(self) -> Layout:
        """The tiles that the space works on."""
        return self.works_on

    @property
    def needs(self) -> tuple[Layout, ...]:
        """Layouts whose tiles together are what the space needs of its tiles."""
        return self.brought or (self.works_on,)

    @property
    def needs_values(self) -> bool:
        """Whether the space needs the values that its tile held before."""
        return True


Use = Read | Write | Update
