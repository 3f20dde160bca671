"""Containers that several spaces write piece by piece, and whose blocks these pieces are cut by.

``v[1:-1] = ...; v[0] = ...; v[-1] = ...`` and the two halves of ``np.roll`` write disjoint parts of
one dimension. Cut each by itself, the first element and the last would be on every rank, or on
rank 0, whose tile would be the hull of both ends. So they are cut where the *frame* is: the longest
interval of the dimension over which a space runs. Who holds an element then computes it, of
whichever piece it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy
from dace import SDFG
from dace.sdfg import nodes

from distspmd.analysis.accesses import Access, map_accesses
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.work import work_of

_RIM = 8
"""Of a dimension, the part that a piece may have at most to be small, whatever it computes."""

Container = tuple[int, str]
"""An SDFG, by its identity, and the name of a container in it."""


@dataclass(frozen=True)
class Piece:
    """What a space touches of a dimension: a parameter of it plus a constant, or one index.

    Attributes:
        space: the space.
        dimension: of the container.
        parameter: of the space; None for one index.
        shift: what is added to the parameter, or the index.
        begin, end: the indices.
    """

    space: IterationSpace
    dimension: int
    parameter: str | None
    shift: int
    begin: int
    end: int

    @property
    def length(self) -> int:
        """Elements along the dimension."""
        return self.end - self.begin


Frames = Mapping[Container, Mapping[int, tuple[int, int]]]
"""By container and dimension, the interval whose blocks its pieces are cut by."""


def frames_of(spaces: Sequence[IterationSpace]) -> dict[Container, dict[int, tuple[int, int]]]:
    """The frames of all containers that spaces write piece by piece."""
    writers: dict[Container, list[IterationSpace]] = {}
    for space in spaces:
        for data in space.writes:
            writers.setdefault((id(space.state.sdfg), data), []).append(space)
    several = {key for key, own in writers.items() if len(own) > 1}
    written: dict[Container, list[Piece]] = {}
    read: dict[Container, list[Piece]] = {}
    for space in spaces:
        if isinstance(space.node, nodes.MapEntry) and any(k in several for k in _touched(space)):
            for access in map_accesses(space.state, space.node):
                key = id(space.state.sdfg), access.data
                if key in several:
                    found = written if access.is_write else read
                    found.setdefault(key, []).extend(_pieces(space, access))
    frames: dict[Container, dict[int, tuple[int, int]]] = {}
    for key, pieces in written.items():
        for d in sorted({piece.dimension for piece in pieces}):
            own = [piece for piece in pieces if piece.dimension == d]
            if _are_apart(own):
                others = [piece for piece in read.get(key, []) if piece.dimension == d]
                longest = max((*own, *others), key=lambda piece: piece.length)
                frames.setdefault(key, {})[d] = longest.begin, longest.end
    return frames


def dimensions_in(frames: Frames, sdfg: SDFG) -> dict[str, list[int]]:
    """By containers of an SDFG, the dimensions that have frames."""
    return {data: [*own] for (of, data), own in frames.items() if of == id(sdfg)}


def framed(space: IterationSpace, frames: Frames) -> IterationSpace:
    """The space, of which ranges that index pieces are cut by the blocks of their frames."""
    own = {data: at for data in space.writes if (at := frames.get((id(space.state.sdfg), data)))}
    if not own or not isinstance(space.node, nodes.MapEntry):
        return space
    found: dict[str, tuple[int, int]] = {}
    for access in map_accesses(space.state, space.node):
        if access.is_write and access.data in own:
            for piece in _pieces(space, access):
                if piece.parameter and (frame := own[access.data].get(piece.dimension)):
                    begin, end = (at - piece.shift for at in frame)
                    found.setdefault(piece.parameter, (begin, end))
    ranges = zip(space.parameters, space.ranges, strict=True)
    return replace(space, ranges=tuple(replace(r, frame=found.get(name)) for name, r in ranges))


def cut_together(spaces: Sequence[IterationSpace]) -> list[list[str]]:
    """Names of spaces that write pieces of one container and are cut by the same blocks, by groups;
    the longest one first."""
    groups: dict[Any, list[IterationSpace]] = {}
    for space in spaces:
        if any(extent.frame for extent in space.ranges) and len(space.writes) == 1:
            (data,) = space.writes
            writes = [a for a in map_accesses(space.state, space.node) if a.is_write]  # type: ignore[arg-type]
            index = tuple(
                next((str(s) for s in d.first.free_symbols), None) if d else None
                for access in writes
                for d in access.dimensions
            )
            places = tuple(space.parameters.index(i) if i in space.parameters else i for i in index)
            cut = tuple(extent.divisible for extent in space.ranges)
            groups.setdefault((id(space.state.sdfg), data, places, cut), []).append(space)
    return [
        [s.name for s in sorted(own, key=_length, reverse=True)]
        for own in groups.values()
        if len(own) > 1
    ]


def _length(space: IterationSpace) -> int:
    return math.prod(extent.iterations for extent in space.ranges)


def _touched(space: IterationSpace) -> Iterator[Container]:
    assert isinstance(space.node, nodes.MapEntry)
    leave = space.state.exit_node(space.node)
    assert leave is not None
    for edge in (*space.state.in_edges(space.node), *space.state.out_edges(leave)):
        if edge.data.data is not None:
            yield id(space.state.sdfg), edge.data.data


def _pieces(space: IterationSpace, access: Access) -> Iterator[Piece]:
    """What an access touches of each dimension, where that is so simple."""
    ranges = dict(zip(space.parameters, space.ranges, strict=True))
    for d, dimension in enumerate(access.dimensions):
        if dimension is None or dimension.first != dimension.last:
            continue
        names = [symbol.name for symbol in dimension.first.free_symbols]
        if not names and dimension.first.is_Integer:
            at = int(dimension.first)
            yield Piece(space, d, None, at, at, at + 1)
        if len(names) != 1 or names[0] not in ranges or names[0] in space.moving:
            continue
        (symbol,) = dimension.first.free_symbols
        extent, shift = ranges[names[0]], sympy.expand(dimension.first - symbol)
        are_numbers = all(end.is_Integer for end in (shift, extent.begin, extent.end))
        if are_numbers and extent.step == 1 and extent.begin < extent.end:
            begin, end = (int(end + shift) for end in (extent.begin, extent.end))
            yield Piece(space, d, names[0], int(shift), begin, end)


def _are_apart(pieces: Sequence[Piece]) -> bool:
    """Whether pieces of one dimension lie beside each other, and may be cut by the same blocks.

    Of those beside each other, all but one are rims, or all copy parts of one container, as where
    it is shifted around its end. One that computes more than the others would leave the ranks
    waiting that hold none of it, and what is joined of several containers lies as these do.
    """
    ends = {(piece.begin, piece.end) for piece in pieces}
    if not any(itertools.starmap(_lie_beside, itertools.combinations(ends, 2))):
        return False
    most = max(end for _, end in ends) - min(begin for begin, _ in ends)
    large = [piece for piece in pieces if piece.length * _RIM > most]
    beside = itertools.combinations({(piece.begin, piece.end) for piece in large}, 2)
    return not any(itertools.starmap(_lie_beside, beside)) or _is_one_copied(large)


def _lie_beside(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[1] <= b[0] or b[1] <= a[0]


def _is_one_copied(pieces: Sequence[Piece]) -> bool:
    sources = {
        edge.data.data
        for piece in pieces
        for edge in piece.space.state.in_edges(piece.space.node)
        if edge.data.data is not None
    }
    return len(sources) == 1 and all(work_of(p.space).operations <= 1.0 for p in pieces)
