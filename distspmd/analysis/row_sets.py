"""Which rows of a container each rank has, or needs, where data decide that.

A space that *picks* touches some rows alone. ``y[r] += m[r] == e ? x[r] * w[e] : 0``, split
along ``e``, needs the rows of ``x`` whose member ``m`` is in the rank's part of ``e``, and writes
those of ``y``. ``z[s] = x[i[s]]``, split along ``s``, needs the rows of ``x`` that are at its
indices, and ``x[i[s]] += z[s]`` writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.tiling import Tiling
from distspmd.expressions.ir import Argument, Constant, IndexValue, Operation
from distspmd.layouts.intervals import Interval
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.nodes.contraction import Contraction
from distspmd.nodes.contraction_loops import parameter
from distspmd.nodes.subscripts import Subscripts, plain_letter
from distspmd.plans.row_exchange import RowSet


@dataclass(frozen=True)
class Rows:
    """Rows of each rank of a mesh."""

    mesh: Mesh
    set: RowSet

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """Axes of the mesh along which ranks have different rows."""
        return tuple(axis for axis in self.mesh.names if self._differs(axis))

    def _differs(self, axis: str) -> bool:
        others = [self.mesh.grid[name] for name in self.mesh.names if name != axis]
        known: dict[tuple[int, ...], Interval] = {}
        for rank, part in enumerate(self.set.parts):
            place = tuple(int(coordinate[rank]) for coordinate in others)
            if known.setdefault(place, part) != part:
                return True
        return False

    @property
    def idle(self) -> tuple[bool, ...]:
        """Which ranks have none."""
        return tuple(lo >= hi for lo, hi in self.set.parts)


def flat_parts(layout: Layout, dims: int | None = None) -> tuple[Interval, ...] | None:
    """Each rank's box in the first dimensions, as numbers in row-major order; None if it is no run.

    Args:
        layout: boxes of the ranks.
        dims: how many dimensions there are to be; in all others boxes must be whole.
    """
    extents = layout.extents
    dims = len(extents) if dims is None else dims
    found = []
    for box in layout.boxes:
        if any(hi <= lo for lo, hi in box):
            found.append((0, 0))
            continue
        whole = [(lo, hi) == (0, n) for (lo, hi), n in zip(box, extents, strict=True)]
        first = next((d for d in range(len(box)) if not whole[d]), 0)
        ones = all(extents[d] == 1 for d in range(first))
        if not all(whole[first + 1 :]) or not ones or (first >= dims and not whole[first]):
            return None
        below = int(np.prod(extents[first + 1 : dims], dtype=np.int64))
        found.append((box[first][0] * below, box[first][1] * below) if box else (0, 1))
    return tuple(found)


@dataclass(frozen=True)
class Picks:
    """The letter along which a contraction picks, and the operand that holds what it picks."""

    node: Contraction
    space: IterationSpace

    @property
    def subscripts(self) -> Subscripts:
        """Of the contraction."""
        return Subscripts.parse(self.node.subscripts)

    def data(self, operand: int) -> str | None:
        """The container of an operand, if the space reads it through this operand alone."""
        edges = [e for e in self.space.state.in_edges(self.node) if e.dst_conn]
        name = next(e.data.data for e in edges if e.dst_conn == f"_in{operand}")
        return str(name) if sum(e.data.data == name for e in edges) == 1 else None

    def letters(self, operand: int) -> list[str | None]:
        """The letter that indexes each dimension of an operand."""
        return [plain_letter(dim) for dim in self.subscripts.operands[operand]]

    def operand_of(self, data: str) -> int | None:
        """The operand that a container is, if it is one alone."""
        operands = range(len(self.subscripts.operands))
        return next((n for n in operands if self.data(n) == data), None)


def picks_of(space: IterationSpace) -> Picks | None:
    """How a space picks, if it is a sum of picked elements, or of a product of them."""
    node = space.node
    if isinstance(node, Contraction) and node.operation == "sum":
        return Picks(node, space)
    return None


def index_read_at(space: IterationSpace, tiling: Tiling, data: str) -> str | None:
    """The container ``i`` of ``z[s] = x[i[s]]``, where ``x`` is read so; None: it is not.

    The letter of rows is not split, for then each rank would read only its own.
    """
    picks = picks_of(space)
    if picks is None or picks.node.pick is None:
        return None
    letter, holder = picks.node.pick
    operand = picks.operand_of(data)
    if operand is None or operand == holder or letter not in picks.subscripts.reduced:
        return None
    own = picks.letters(operand)
    if own[:1] != [letter] or letter in own[1:] or None in own or _is_split(space, tiling, letter):
        return None
    return picks.data(holder)


def index_written_at(space: IterationSpace, tiling: Tiling) -> str | None:
    """The container ``i`` of ``x[i[s]] += z[s]``, of which ``s`` is summed; None: it is not so."""
    picks = picks_of(space)
    if picks is None or picks.node.pick is None:
        return None
    letter, holder = picks.node.pick
    result = [plain_letter(dim) for dim in picks.subscripts.result]
    if result[:1] != [letter] or letter in result[1:] or _is_split(space, tiling, letter):
        return None
    if not set(picks.letters(holder)) <= set(picks.subscripts.reduced):
        return None
    return picks.data(holder)


def member_compared(space: IterationSpace, tiling: Tiling, data: str) -> RowSet | None:
    """Rows of ``x`` in ``z[b, s] += m[r] == 8 * b + s ? x[r] : 0``, split along ``b``.

    A rank needs those whose member is a number that its part of ``b`` and ``s`` makes.
    """
    picks = picks_of(space)
    value = picks.node.reduced if picks is not None else None
    if picks is None or picks.node.pick is not None or not isinstance(value, Operation):
        return None
    operand = picks.operand_of(data)
    if value.name != "pick" or operand is None:
        return None
    member, place, _, other = value.arguments
    if not isinstance(member, Argument) or not isinstance(place, IndexValue):
        return None
    holder = int(member.name.removeprefix("_v"))
    row = picks.letters(holder)
    names = picks.data(holder)
    is_zero = isinstance(other, Constant) and other.value == 0
    if not is_zero or len(row) != 1 or row[0] is None or names is None or operand == holder:
        return None
    if picks.letters(operand)[:1] != row or row[0] not in picks.subscripts.reduced:
        return None
    terms = [(str(letter), factor) for letter, factor in place.terms]
    if any(letter not in picks.subscripts.letters or factor < 0 for letter, factor in terms):
        return None
    if _is_split(space, tiling, row[0]):
        return None
    return RowSet(_values(space, tiling, terms, place.constant), member=names)


def _values(
    space: IterationSpace, tiling: Tiling, terms: Sequence[tuple[str, int]], constant: int
) -> tuple[Interval, ...]:
    """From the least to behind the greatest value of an index on each rank."""
    low = np.full(tiling.mesh.size, constant, np.int64)
    high = low.copy()
    for letter, factor in terms:
        place = space.parameters.index(parameter(letter))
        low += factor * tiling.lower[:, place]
        high += factor * (tiling.upper[:, place] - 1)
    pairs = zip(low.tolist(), (high + 1).tolist(), tiling.idle.tolist(), strict=True)
    return tuple((0, 0) if idle else (lo, hi) for lo, hi, idle in pairs)


def _is_split(space: IterationSpace, tiling: Tiling, letter: str) -> bool:
    return tiling.parts[space.parameters.index(parameter(letter))] > 1
