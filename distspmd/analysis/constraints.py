"""Constraints: the box of each container that each rank reads and writes, from the memlets.

Reads over-approximate: their box is the hull of all accesses, or the whole dimension if an index is
unknown. In such a dimension, only the elements that the index names are fetched, if the index can
be computed ahead (:mod:`distspmd.analysis.inspectors`). A write is *exact* if it surely writes each
element of its box. A write that is not exact also reads its box, so that elements that it skips
keep their values.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import replace

import numpy as np
import sympy
from dace import SDFG, SDFGState
from dace.sdfg import nodes
from numpy.typing import NDArray

from distspmd.analysis.accesses import (
    Access,
    Dimension,
    Edge,
    bound_around,
    happens_once,
    map_accesses,
)
from distspmd.analysis.inspectors import UnboundedRead, inspections
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.library_nodes import library_accesses
from distspmd.analysis.loop_runs import times
from distspmd.analysis.passing import is_read_as_written
from distspmd.analysis.rank_boxes import OnRanks, is_affine, names_in
from distspmd.analysis.scopes import nodes_inside
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.uses import Read, Update, Use, Write
from distspmd.analysis.wavefronts import without_rims
from distspmd.analysis.wcr import operation_of
from distspmd.errors import UnsupportedProgram
from distspmd.layouts import intervals, relations
from distspmd.layouts.intervals import Box, Numbers
from distspmd.layouts.layout import Layout, Partial

Touched = tuple[Sequence[Access], Collection[str]]
"""Accesses of a space, and the containers that it initialises before it writes them."""


def touched_by(space: IterationSpace) -> Touched:
    """What a space touches, whatever its tiling."""
    if isinstance(space.node, nodes.MapEntry):
        return map_accesses(space.state, space.node), ()
    return library_accesses(space)


def uses(space: IterationSpace, tiling: Tiling, touched: Touched | None = None) -> list[Use]:
    """Constraints of an iteration space on the containers that it touches.

    Args:
        space: the space.
        tiling: its parts.
        touched: what :func:`touched_by` found, if that is known.

    Raises:
        UnsupportedProgram: a write that ranks would do to overlapping boxes, or to one that they
            read too, a reduction that MPI has no operation for, or an extent that is no number.
    """
    state, node = space.state, space.node
    accesses, initialised = touched or touched_by(space)
    scoped = _Scoped(space, tiling, state.sdfg)
    read = [a for a in accesses if not a.is_write]
    written = [a for a in accesses if a.is_write]
    reads = [scoped.read(data, edges, group) for data, edges, group in _groups(read)]
    if isinstance(node, nodes.MapEntry):
        reads = _merge_reads(reads)
    writes = [
        scoped.write(data, edges, group, data in initialised)
        for data, edges, group in _groups(written)
    ]
    found: list[Use] = [*reads, *writes]
    if isinstance(node, nodes.MapEntry):
        scoped.check_no_race(reads, writes)
        found = without_rims(space, _join_in_and_out(space, reads, writes))
    found = _inspected(space, found)
    return [replace(use, certain=happens_once(state), times=times(state)) for use in found]


def _inspected(space: IterationSpace, found: list[Use]) -> list[Use]:
    """Say of reads that data or loops decide how what they touch is found at run time."""
    reads = [
        UnboundedRead(use.accesses, sorted({*use.approximate, *use.moved}), use.edges)
        for use in found
        if isinstance(use, Read)
    ]
    written = {use.data for use in found if not isinstance(use, Read)}
    ways = iter(inspections(reads, written, bound_around(space.state).keys()))
    return [replace(use, inspection=next(ways)) if isinstance(use, Read) else use for use in found]


def _groups(accesses: Iterable[Access]) -> list[tuple[str, tuple[Edge, ...], list[Access]]]:
    """Reads by the edge through which they come; all writes of a container together."""
    found: dict[tuple[str, object], list[Access]] = {}
    for access in accesses:
        through = None if access.is_write else id(access.edge)
        found.setdefault((access.data, through), []).append(access)
    return [
        (data, tuple({id(a.edge): a.edge for a in group}.values()), group)
        for (data, _), group in found.items()
    ]


def _merge_reads(reads: Sequence[Read]) -> list[Read]:
    """Join reads of one container whose common hull costs no more than both apart.

    Not for library nodes, which take the extents of an operand from its subset.
    """
    merged: list[Read] = []
    for read in reads:
        for position, other in enumerate(merged):
            if other.data != read.data or other.moved or read.moved:
                continue
            hulls = relations.hull(other.layout.bounds, read.layout.bounds)
            apart = sum(int(use.layout.volumes.sum()) for use in (other, read))
            if int(relations.volumes(hulls).sum()) <= apart:
                layout = Layout.of_bounds(read.layout.mesh, read.layout.extents, hulls)
                merged[position] = replace(
                    other,
                    layout=layout,
                    edges=other.edges + read.edges,
                    parts=relations.joined_exactly([*other.parts, *read.parts]),
                    approximate=tuple(sorted({*other.approximate, *read.approximate})),
                    accesses=other.accesses + read.accesses,
                )
                break
        else:
            merged.append(read)
    return merged


def _join_in_and_out(
    space: IterationSpace, reads: Sequence[Read], writes: Sequence[Write]
) -> list[Use]:
    """One use for what a nested SDFG both reads and writes: it has one tile of each container.

    Raises:
        UnsupportedProgram: ranks write operands of a reduction that the body also reads.
    """
    assert isinstance(space.node, nodes.MapEntry)
    inside = nodes_inside(space.state, space.node)
    both = {
        name
        for node in inside
        if isinstance(node, nodes.NestedSDFG)
        for name in _names_outside(space.state, node)
    }
    updated = both & {write.data for write in writes} & {read.data for read in reads}
    joined: list[Use] = [read for read in reads if read.data not in updated]
    for write in writes:
        own = [read for read in reads if read.data == write.data]
        joined.append(_joined(write, own) if write.data in updated else write)
    return joined


def _names_outside(state: SDFGState, node: nodes.NestedSDFG) -> Iterable[str]:
    """Containers at the connectors through which a nested SDFG both reads and writes."""
    both = node.in_connectors.keys() & node.out_connectors.keys()
    return (e.data.data for e in state.in_edges(node) if e.dst_conn in both and e.data.data)


def _joined(write: Write, reads: Sequence[Read]) -> Update:
    if write.layout.partial:
        raise UnsupportedProgram(
            f"{write.space.where}: the space {write.space.name!r} reads {write.data!r}, into which "
            "its ranks also reduce. Reduce into a temporary, and copy that."
        )
    bounds = write.layout.bounds
    for read in reads:
        bounds = relations.hull(bounds, read.layout.bounds)
    return Update(
        write.space,
        write.data,
        write.layout,
        write.edges,
        index=write.index,
        share=write.share,
        exact=write.exact,
        accumulates=write.accumulates,
        works_on=Layout.of_bounds(write.layout.mesh, write.layout.extents, bounds),
        reads_through=tuple(edge for read in reads for edge in read.edges),
        approximate=tuple(sorted({d for read in reads for d in read.approximate})),
    )


class _Scoped:
    """Constraints of one space, from its accesses on all ranks."""

    def __init__(self, space: IterationSpace, tiling: Tiling, sdfg: SDFG) -> None:
        self.space, self.tiling = space, tiling
        self.on_ranks = OnRanks(space, tiling, sdfg)
        split = {axis for axes in tiling.splits for axis in axes}
        self.unsplit = {axis for axis in tiling.mesh.names if axis not in split}

    def read(self, data: str, edges: tuple[Edge, ...], group: Sequence[Access]) -> Read:
        """Hull of all that the accesses read."""
        bounds, whole = self.on_ranks.boxes(group[0])
        apart = [bounds]
        for access in group[1:]:
            more, more_whole = self.on_ranks.boxes(access)
            apart.append(more)
            bounds = relations.hull(bounds, more)
            whole = tuple(sorted({*whole, *more_whole}))
        mesh, extents = self.tiling.mesh, self.on_ranks.extents(data)
        moved = tuple(sorted(set().union(*map(self.on_ranks.moved, group))))
        return Read(
            self.space,
            data,
            Layout.of_bounds(mesh, extents, bounds),
            edges,
            approximate=whole,
            moved=moved,
            share=self.on_ranks.share(group) if moved else 1.0,
            parts=relations.joined_exactly(
                [Layout.of_bounds(mesh, extents, each) for each in apart]
            ),
            index=self._index(group),
            accesses=tuple(group),
        )

    def write(
        self, data: str, edges: tuple[Edge, ...], group: Sequence[Access], initialised: bool
    ) -> Write:
        """What the accesses write, and how the writes of several ranks to one element combine."""
        bounds, whole = self.on_ranks.boxes(group[0])
        exact = not whole
        for access in group[1:]:
            more, _ = self.on_ranks.boxes(access)
            exact = exact and np.array_equal(more, bounds)
            bounds = relations.hull(bounds, more)
        reductions = {access.reduction for access in group}
        exact = exact and len(reductions) == 1 and all(map(self.on_ranks.is_exact, group))
        resolution = reductions.pop() if len(reductions) == 1 else None
        partial = self._partial(data, group, bounds, resolution)
        moved = any(map(self.on_ranks.is_moved, group))
        if initialised and moved and is_read_as_written(self.space.state, data):
            moved = False  # what is not written is not read either
        if partial is None:
            known = not whole and all(map(is_affine, group))
            self._check_disjoint(data, bounds, exact, known)
        elif initialised and moved:
            raise UnsupportedProgram(
                f"{self.space.where}: the space {self.space.name!r} reduces into a part of "
                f"{data!r} that a loop chooses. Leave what is reduced whole (1 part), or reduce "
                "into a temporary, and copy that."
            )
        extents = self.on_ranks.extents(data)
        layout = Layout.of_bounds(self.tiling.mesh, extents, bounds, partial)
        share = self.on_ranks.share(group) if any(map(self.on_ranks.moved, group)) else 1.0
        return Write(
            self.space,
            data,
            layout,
            edges,
            exact=exact or (initialised and not moved),
            accumulates=resolution is not None and not initialised,
            share=share,
            index=self._index(group),
        )

    def _index(self, group: Sequence[Access]) -> tuple[str | None, ...]:
        """Parameter ``p`` of each dimension that all accesses index with ``p`` plus a constant."""
        found = []
        for dimensions in zip(*(access.dimensions for access in group), strict=True):
            names = {d and self._parameter(d) for d in dimensions}
            found.append(names.pop() if len(names) == 1 else None)
        return tuple(found)

    def _parameter(self, dimension: Dimension) -> str | None:
        symbols = {s.name: s for s in dimension.first.free_symbols}
        if len(symbols) != 1 or dimension.first != dimension.last:
            return None
        ((name, symbol),) = symbols.items()
        constant = sympy.expand(dimension.first - symbol).is_Integer
        return name if constant and name in self.space.parameters else None

    def _partial(
        self, data: str, group: Sequence[Access], bounds: Numbers, resolution: str | None
    ) -> Partial | None:
        """Axes over which ranks write different operands of one element."""
        if resolution is None:
            return None
        used = set().union(*(names_in(access) for access in group))
        mesh = self.tiling.mesh
        split = {
            axis: name in used
            for name, axes in zip(self.space.parameters, self.tiling.splits, strict=True)
            for axis in axes
            if mesh[axis] > 1
        }
        alone = bounds[self._at_origin({axis for axis in mesh.names if not split.get(axis)})]
        tiles = relations.are_disjoint(alone)
        axes = tuple(axis for axis in mesh.names if axis in split and not (split[axis] and tiles))
        if not axes:
            return None
        container = self.space.state.sdfg.arrays[data]
        operation = operation_of(resolution, np.dtype(container.dtype.as_numpy_dtype()))
        if operation is None:
            raise UnsupportedProgram(
                f"{self.space.where}: the space {self.space.name!r} writes {data!r} of "
                f"{container.dtype} with the conflict resolution {resolution}, and ranks cannot "
                "combine what each of them makes of it: it is neither an operation that is "
                "associative, commutative and has a neutral element, nor a sum, product, minimum "
                "or maximum of the old value and a function of the new one, such as a + 2*b. Leave "
                "the parameters that the index of the write leaves out whole (1 part), or write "
                "with +=."
            )
        return Partial(operation, axes)

    def _at_origin(self, axes: Set[str]) -> NDArray[np.bool_]:
        """Which ranks are the first along all of these axes."""
        grid = self.tiling.mesh.grid
        found = np.ones(self.tiling.mesh.size, bool)
        for axis in axes:
            found &= grid[axis] == 0
        return found

    def check_no_race(self, reads: Sequence[Read], writes: Sequence[Write]) -> None:
        """Refuse what several ranks write, unless it surely is one value: the last one would stay.

        It is one value if the ranks read the same for it, and none of it from one another.
        """
        for write in writes:
            if write.layout.partial:
                continue
            own = [use.layout for use in reads if use.data == write.data]
            for ranks in self._writers_of_one_box(write.layout):
                box = write.layout.bounds[ranks[0]]
                again = any(
                    relations.volumes(relations.common(box, w.bounds[ranks])).any() for w in own
                )
                same = all(
                    (use.layout.bounds[ranks] == use.layout.bounds[ranks[0]]).all() for use in reads
                )
                if again or not same or self._names_place(ranks):
                    raise UnsupportedProgram(
                        f"{self._several_ranks}write into one part of {write.data!r}: ranks "
                        f"{ranks[0]} and {ranks[1]} into "
                        f"[{intervals.box_text(write.layout.box(ranks[0]))}]{_THE_LAST}"
                    )

    def _writers_of_one_box(self, layout: Layout) -> Iterator[list[int]]:
        """Ranks that write the same box; of replicas along axes that split nothing the first."""
        writing = np.flatnonzero((layout.volumes > 0) & self._at_origin(self.unsplit))
        tiles, counts = np.unique(layout.tiles.of[writing], return_counts=True)
        if (counts > 1).any():
            several = writing[np.isin(layout.tiles.of[writing], tiles[counts > 1])]
            found: dict[int, list[int]] = {}
            for rank in several.tolist():
                found.setdefault(int(layout.tiles.of[rank]), []).append(rank)
            yield from found.values()

    def _names_place(self, ranks: Sequence[int]) -> bool:
        """Whether the body computes with a parameter whose part differs between ranks."""
        places = [self.tiling.mesh.coordinates(rank) for rank in ranks]
        differ = {axis for axis in self.tiling.mesh.names if len({p[axis] for p in places}) > 1}
        parameters = {
            name
            for name, axes in zip(self.space.parameters, self.tiling.splits, strict=True)
            if differ & set(axes)
        }
        assert isinstance(self.space.node, nodes.MapEntry)
        inside = nodes_inside(self.space.state, self.space.node)
        code = (nodes.Tasklet, nodes.NestedSDFG)
        return any(parameters & set(node.free_symbols) for node in inside if isinstance(node, code))

    def _check_disjoint(self, data: str, bounds: Numbers, exact: bool, known: bool) -> None:
        writing = relations.volumes(bounds) > 0
        distinct = np.unique(bounds[writing], axis=0)
        held = int((writing & self._at_origin(self.unsplit)).sum())
        if relations.are_disjoint(distinct) and (exact or held == len(distinct)):
            return
        if known:
            raise UnsupportedProgram(
                f"{self._several_ranks}write into one part of {data!r}: "
                f"{_overlap(bounds)}{_THE_LAST}"
            )
        raise UnsupportedProgram(
            f"{self._several_ranks}may write the same elements of {data!r}: which elements each of "
            "them writes is not known before the run. Leave the parameters that the written index "
            "mixes whole (1 part), index with a parameter plus a constant, or write with a "
            "reduction (+=)."
        )

    @property
    def _several_ranks(self) -> str:
        axes = ", ".join(f"{name}={size}" for name, size in self.tiling.mesh.axes)
        return f"{self.space.where}: with the grid {axes} several ranks "


_THE_LAST = (
    ", and what stays there would depend on which of them comes last. Leave the parameters that "
    "the written index leaves out or mixes whole (1 part), give each assignment a map of its own "
    "where one map has several, or let DaCe see a reduction: +=, or a memlet such as "
    "y(1, lambda a, b: min(a, b))[j]."
)


def _overlap(bounds: Numbers) -> str:
    """Two ranks whose boxes overlap, and the boxes."""
    boxes: list[Box] = [tuple((lo, hi) for lo, hi in box) for box in bounds.tolist()]
    for (a, left), (b, right) in itertools.combinations(enumerate(boxes), 2):
        if not intervals.is_empty(intervals.intersect(left, right)):
            texts = intervals.box_text(left), intervals.box_text(right)
            return f"rank {a} into [{texts[0]}], rank {b} into [{texts[1]}]"
    raise AssertionError("no boxes overlap")
