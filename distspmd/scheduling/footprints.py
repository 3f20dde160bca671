"""What a space touches under any tiling: bounds of its accesses with symbols for ends of tiles.

The kinds of its uses (which reads are joined, what is partial, what cannot be split) depend on the
parameters that are split and not on how finely. They are found by :func:`constraints.uses` on a
small grid with two parts along each of them; boxes of all ranks and candidates then are arithmetic
on arrays.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from distspmd.analysis.accesses import Access, bound_around
from distspmd.analysis.constraints import Touched, uses
from distspmd.analysis.index_bounds import Range, bound_index
from distspmd.analysis.iteration_spaces import IterationSpace, ParameterRange
from distspmd.analysis.rank_boxes import evaluate, names_in
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.uses import Read, Update, Use, Write
from distspmd.errors import UnsupportedProgram
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.schedule import Grid
from distspmd.scheduling import boxes
from distspmd.scheduling.boxes import Stack

Splits = tuple[tuple[str, ...], ...]
"""Axes of a mesh that split each parameter, minor first."""
Candidate = Splits | Grid | None
"""How a space runs: on the mesh of all; on one of its own, as asked; or on rank 0 alone."""


@dataclass(frozen=True, eq=False)
class Tilings:
    """Candidates of a space as arrays.

    Attributes:
        candidates: how the space runs.
        parts: number of tiles along each parameter: (candidates, parameters).
        first: first value of each parameter: (candidates, ranks, parameters).
        last: last value.
        idle: whether a rank runs nothing: (candidates, ranks).
        steps: between values of each parameter.
        known: boxes that were found under them: what several spaces touch alike is kept once.
    """

    candidates: tuple[Candidate, ...]
    parts: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    idle: NDArray[np.bool_]
    steps: NDArray[np.int64]
    known: dict[Any, Stack] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        space: IterationSpace,
        mesh: Mesh,
        candidates: Sequence[Candidate],
        ranks: int | None = None,
    ) -> Tilings:
        """The tilings that :class:`~distspmd.analysis.tiling.Tiling` gives, of all candidates.

        Args:
            space: with numbers for ranges.
            mesh: of all ranks, and of the splits.
            candidates: how the space runs.
            ranks: of the first ranks only, which have the largest tiles.
        """
        ranks = mesh.size if ranks is None else ranks
        shape = (len(candidates), ranks, len(space.ranges))
        first, last = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        idle = np.zeros(shape[:2], bool)
        parts = np.ones((len(candidates), len(space.ranges)), np.int64)
        ends = [_Ends.of(extent) for extent in space.ranges]
        known: dict[tuple[Mesh, int, tuple[str, ...]], _Tiles] = {}
        for number, candidate in enumerate(candidates):
            own, splits = _on(mesh, candidate, len(space.ranges))
            idle[number, own.size :] = True
            for d, split in enumerate(splits):
                key = own, d, split
                if key not in known:
                    known[key] = ends[d].tiles(own, split, ranks)
                tiles = known[key]
                parts[number, d] = tiles.count
                first[number, :, d], last[number, :, d] = tiles.first, tiles.last
                idle[number] |= tiles.idle
        steps = np.array([int(extent.step) for extent in space.ranges], np.int64)
        return cls(tuple(candidates), parts, first, last, idle, steps)

    @property
    def iterations(self) -> NDArray[np.float64]:
        """Iterations of each rank: (candidates, ranks)."""
        lengths = ((self.last - self.first) // self.steps + 1).astype(np.float64)
        return np.where(self.idle, 0.0, lengths.prod(axis=2))


@dataclass(frozen=True, slots=True, eq=False)
class _Tiles:
    """Tiles of one parameter: their number, and of each rank its first and last value."""

    count: int
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    idle: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Ends:
    """The values of a parameter as numbers."""

    begin: int
    step: int
    iterations: int

    @classmethod
    def of(cls, extent: ParameterRange) -> _Ends:
        begin, end, step = int(extent.begin), int(extent.end), int(extent.step)
        return cls(begin, step, max(0, -(-(end - begin) // step)))

    def tiles(self, mesh: Mesh, split: tuple[str, ...], ranks: int) -> _Tiles:
        """Tiles along some axes, minor first, of the first ranks."""
        count = math.prod(mesh[axis] for axis in split)
        tile = -(-self.iterations // count)
        index, taking_part = np.zeros(ranks, np.int64), min(ranks, mesh.size)
        for axis in reversed(split):
            index[:taking_part] *= mesh[axis]
            index[:taking_part] += mesh.grid[axis][:taking_part]
        low = np.minimum(index * tile, self.iterations)
        high = np.minimum(low + tile, self.iterations)
        first, last = (self.begin + self.step * number for number in (low, high - 1))
        return _Tiles(count, first, last, high <= low)


def _on(mesh: Mesh, candidate: Candidate, parameters: int) -> tuple[Mesh, Splits]:
    """The mesh of a candidate, and its axes for each parameter."""
    if candidate is None:
        return Mesh(), ((),) * parameters
    if isinstance(candidate, Grid):
        return candidate.mesh, candidate.splits
    return mesh, candidate


@dataclass(frozen=True, eq=False)
class Slot:
    """One use of a container by a space, whatever the tiling.

    Attributes:
        use: an example of it.
        touched: accesses whose hull is the tile.
        written: accesses whose hull is written; the same but for updates.
        parts: accesses by parts of the tile that are needed; together they are all.
    """

    use: Use
    touched: tuple[Access, ...]
    written: tuple[Access, ...]
    parts: tuple[tuple[Access, ...], ...] = ()

    @property
    def data(self) -> str:
        """The container."""
        return self.use.data


@dataclass(eq=False)
class Footprint:
    """One space: which tilings are possible, and what each rank touches under them.

    Attributes:
        touched: accesses of the space, and what it initialises.
        like: the footprint of a space that touches containers of other names in the same way, of
            which all is known that is known of this one; itself where there is none.
        names: of its own containers by those of the other space.
    """

    space: IterationSpace
    touched: Touched
    like: Footprint = field(init=False)
    names: Mapping[str, str] = field(default_factory=dict)
    _kinds: dict[frozenset[str], list[Use] | None] = field(default_factory=dict)
    _bounds: dict[int, Any] = field(default_factory=dict)
    _partials: dict[frozenset[str], dict[str, frozenset[str]] | None] = field(default_factory=dict)
    _refused: dict[tuple[Mesh, Splits], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.like = self
        self._around = bound_around(self.space.state)
        self._ends: dict[str, Range | None] = {
            name: Range(sympy.Symbol(f"{name}__first"), sympy.Symbol(f"{name}__last"))
            for name in self.space.parameters
        }

    def _renamed(self, use: Use) -> Use:
        return replace(use, space=self.space, data=self.names[use.data])

    def kinds(self, split: frozenset[str]) -> list[Use] | None:
        """Uses where two ranks share each of some parameters; None where that is impossible."""
        if split not in self._kinds and self.like is not self:
            found = self.like.kinds(split)
            self._kinds[split] = None if found is None else [self._renamed(use) for use in found]
        if split not in self._kinds:
            names = [name for name in self.space.parameters if name in split]
            mesh = Mesh.of(tuple((name, 2) for name in names)) if names else Mesh()
            splits = [(name,) if name in split else () for name in self.space.parameters]
            try:
                tiling = Tiling.of(self.space.ranges, mesh, splits)
                self._kinds[split] = uses(self.space, tiling, self.touched)
            except UnsupportedProgram:
                self._kinds[split] = None
        return self._kinds[split]

    def partials(self, split: frozenset[str]) -> dict[str, frozenset[str]] | None:
        """Parameters along which ranks hold operands of what is written, by container.

        What is possible where all parameters are split is so where some are, and has operands
        along those of them that no write is indexed by. None where it is impossible; that is
        checked again for what is chosen (:meth:`refuses`).
        """
        if self.like is not self:
            found = self.like.partials(split)
            return found and {self.names[data]: along for data, along in found.items()}
        if split not in self._partials:
            most = self._operands_of_all
            if most is not None:
                self._partials[split] = {data: along & split for data, along in most.items()}
            else:
                kinds = self.kinds(split)
                self._partials[split] = None if kinds is None else operands_in(kinds)
        return self._partials[split]

    @functools.cached_property
    def _operands_of_all(self) -> dict[str, frozenset[str]] | None:
        """The same where all parameters are split; None if it does not tell where fewer are."""
        extents = zip(self.space.parameters, self.space.ranges, strict=True)
        kinds = self.kinds(frozenset(n for n, r in extents if r.end - r.begin > r.step))
        if kinds is None:
            return None
        found = operands_in(kinds)
        indexed = set().union(*(names_in(a) for a in self.touched[0] if a.is_write))
        return None if any(along & indexed for along in found.values()) else found

    def split(self, candidate: Candidate) -> frozenset[str]:
        """Parameters that a candidate splits."""
        splits = candidate.splits if isinstance(candidate, Grid) else candidate or ()
        pairs = zip(self.space.parameters, splits, strict=False)
        return frozenset(name for name, axes in pairs if axes)

    def refuses(self, mesh: Mesh, splits: Splits) -> bool:
        """Whether the space cannot be tiled so, for all that its kinds say."""
        if self.like is not self:
            return self.like.refuses(mesh, splits)
        key = mesh, splits
        if key not in self._refused:
            try:
                uses(self.space, Tiling.of(self.space.ranges, mesh, splits), self.touched)
                self._refused[key] = False
            except UnsupportedProgram:
                self._refused[key] = True
        return self._refused[key]

    def on(self, mesh: Mesh, candidate: Candidate) -> tuple[Mesh, Splits]:
        """The mesh on which a candidate runs, and its axes for each parameter."""
        return _on(mesh, candidate, len(self.space.parameters))

    def slots(self, candidates: Sequence[Candidate]) -> list[Slot]:
        """Uses of the space; reads are joined as where most parameters are split."""
        if self.like is not self:
            return [
                replace(slot, use=self._renamed(slot.use)) for slot in self.like.slots(candidates)
            ]
        most = max((self.split(candidate) for candidate in candidates), key=len)
        found = self.kinds(most)
        assert found is not None
        return [self._slot(use) for use in found]

    def _slot(self, use: Use) -> Slot:
        accesses = self.touched[0]
        own = [a for a in accesses if a.data == use.data]
        written = tuple(a for a in own if a.is_write)
        if isinstance(use, Write):
            return Slot(use, written, written)
        if isinstance(use, Update):
            return Slot(use, tuple(own), written)
        edges = {id(edge) for edge in use.edges}
        read = use.accesses or tuple(a for a in own if not a.is_write and id(a.edge) in edges)
        return Slot(use, read, (), self._parts(use, read))

    def _parts(self, use: Read, accesses: Sequence[Access]) -> tuple[tuple[Access, ...], ...]:
        """Accesses by the parts of a read that they lie in."""
        if len(use.parts) < 2:
            return ()
        splits = use.layout.mesh.names
        shown = tuple((n,) if n in splits else () for n in self.space.parameters)
        small = Tilings.of(self.space, use.layout.mesh, [shown])
        found: list[list[Access]] = [[] for _ in use.parts]
        bounds = [part.bounds for part in use.parts]
        for access in accesses:
            box = self.boxes([access], small)[0]
            for number, part in enumerate(bounds):
                inside = (part[..., 0] <= box[..., 0]) & (box[..., 1] <= part[..., 1])
                if (inside.all(axis=1) | (boxes.volumes(box) == 0)).all():
                    found[number].append(access)
                    break
        return tuple(tuple(part) for part in found if part)

    def boxes(self, accesses: Sequence[Access], tilings: Tilings) -> Stack:
        """Hull of some accesses to one container on each rank, under each candidate."""
        if self.like is not self:
            return self.like.boxes(accesses, tilings)
        ends = tuple((self.extents(a.data), tuple(self._ends_of(a))) for a in accesses)
        key = self.space.parameters, ends
        if key not in tilings.known:
            tilings.known[key] = functools.reduce(
                boxes.hull, (self._boxes(access, tilings) for access in accesses)
            )
        return tilings.known[key]

    def _boxes(self, access: Access, tilings: Tilings) -> Stack:
        extents = self.extents(access.data)
        values = {
            f"{name}__{end}": numbers[:, :, d]
            for d, name in enumerate(self.space.parameters)
            for end, numbers in (("first", tilings.first), ("last", tilings.last))
        }
        found = np.zeros((*tilings.idle.shape, len(extents), 2), np.int64)
        found[..., 1] = extents
        for d, ends in enumerate(self._ends_of(access)):
            if ends is not None:
                found[..., d, 0] = np.maximum(evaluate(ends.lower, values), 0)
                found[..., d, 1] = np.minimum(evaluate(ends.upper, values) + 1, extents[d])
        found[tilings.idle] = 0
        return boxes.emptied(found)

    def _ends_of(self, access: Access) -> list[Range | None]:
        """Bounds of an access in each dimension, in the ends of tiles; None: all of it."""
        key = id(access)
        if key not in self._bounds:
            tiled = {n: r for n, r in self._ends.items() if n in access.scope}
            scope = {**self._around, **access.scope, **tiled}
            known = {f"{n}__{end}" for n in self.space.parameters for end in ("first", "last")}
            bounds: list[Range | None] = []
            for dimension in access.dimensions:
                first = bound_index(dimension.first, scope) if dimension else None
                last = bound_index(dimension.last, scope) if dimension else None
                if first is None or last is None:
                    bounds.append(None)
                    continue
                names = {s.name for s in first.lower.free_symbols | last.upper.free_symbols}
                bounds.append(Range(first.lower, last.upper) if names <= known else None)
            self._bounds[key] = bounds
        found: list[Range | None] = self._bounds[key]
        return found

    def extents(self, data: str) -> tuple[int, ...]:
        """Extents of a container."""
        return tuple(int(extent) for extent in self.space.state.sdfg.arrays[data].shape)


def operands_in(uses: Sequence[Use]) -> dict[str, frozenset[str]]:
    """Parameters along which ranks hold operands of each container that is written."""
    return {
        use.data: partial_parameters(use)
        for use in uses
        if not isinstance(use, Read) and use.layout.partial
    }


def partial_parameters(use: Use) -> frozenset[str]:
    """Parameters along which ranks hold operands of one element, of a use on the small grid."""
    partial = use.layout.partial
    return frozenset(partial.axes or use.layout.mesh.names) if partial else frozenset()


def layout_of(mesh: Mesh, extents: Sequence[int], bounds: NDArray[np.int64]) -> Layout:
    """The layout with these boxes."""
    return Layout.of_boxes(
        mesh, tuple(extents), [tuple((lo, hi) for lo, hi in box) for box in bounds.tolist()]
    )
