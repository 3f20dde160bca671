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

from distspmd.analysis.accesses import Access, Dimension, bound_around
from distspmd.analysis.constraints import Touched, uses
from distspmd.analysis.evaluation import evaluate
from distspmd.analysis.index_bounds import Range, bound_index
from distspmd.analysis.iteration_spaces import IterationSpace, ParameterRange
from distspmd.analysis.rank_boxes import names_in
from distspmd.analysis.tiling import Tiling, ends_of_tiles
from distspmd.analysis.uses import Read, Update, Use, Write
from distspmd.analysis.wavefronts import handing_of, reads_rim, rims_of
from distspmd.errors import UnsupportedProgram
from distspmd.layouts.mesh import Mesh
from distspmd.plans.pipeline import Handing
from distspmd.schedule import Grid
from distspmd.scheduling import boxes
from distspmd.scheduling.columns import Columns
from distspmd.scheduling.tiles import Tiles

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
        ends: first and last value of each parameter on each rank.
        idle: the ranks that run nothing under each candidate; None if all run something.
        steps: between values of each parameter.
        known: boxes that were found under them: what several spaces touch alike is kept once.
    """

    candidates: tuple[Candidate, ...]
    parts: NDArray[np.int64]
    ends: Tiles
    idle: tuple[NDArray[np.bool_] | None, ...]
    steps: NDArray[np.int64]
    known: dict[Any, Tiles] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        space: IterationSpace,
        mesh: Mesh,
        candidates: Sequence[Candidate],
        columns: Columns | None = None,
    ) -> Tilings:
        """The tilings that :class:`~distspmd.analysis.tiling.Tiling` gives, of all candidates.

        Args:
            space: with numbers for ranges.
            mesh: of all ranks, and of the splits.
            candidates: how the space runs.
            columns: where tiles are kept; of the first ranks only, which have the largest ones, if
                it has fewer ranks.
        """
        columns = columns or Columns(mesh.size)
        numbers = np.zeros((len(candidates), len(space.ranges)), np.int64)
        parts = np.ones_like(numbers)
        idle: list[NDArray[np.bool_] | None] = []
        known: dict[tuple[Any, ...], _Tiled] = {}
        counted: dict[tuple[Mesh, tuple[str, ...]], int] = {}
        for number, candidate in enumerate(candidates):
            own, splits = on_its_mesh(mesh, candidate, len(space.ranges))
            without = [np.arange(columns.ranks) >= own.size] if own.size < columns.ranks else []
            for d, split in enumerate(splits):
                if (own, split) not in counted:
                    counted[own, split] = math.prod(own[axis] for axis in split)
                parts[number, d] = count = counted[own, split]
                key = d, count if columns.ranks == 1 else (own, split)  # the first tile is as long
                if key not in known:
                    known[key] = _tiles(space.ranges[d], own, split, count, columns)
                tiled = known[key]
                numbers[number, d] = tiled.ends
                without += [] if tiled.idle is None else [tiled.idle]
            idle.append(np.logical_or.reduce(without) if without else None)
        steps = np.array([int(extent.step) for extent in space.ranges], np.int64)
        return cls(tuple(candidates), parts, Tiles(columns, numbers), tuple(idle), steps)

    @property
    def iterations(self) -> NDArray[np.float64]:
        """Iterations of each rank: (candidates, ranks)."""
        found = np.ones((len(self.candidates), self.ends.columns.ranks))
        for own, step in zip(self.ends.numbers.T, self.steps, strict=True):
            held = self.ends.columns.bounds(own)
            found *= (held[..., 1] - held[..., 0]) // step + 1
        for number, idle in enumerate(self.idle):
            if idle is not None:
                found[number, idle] = 0.0
        return found

    def chosen_parts(self, space: IterationSpace) -> NDArray[np.int64]:
        """Tiles of all that loops choose, under each candidate: they work in few of them."""
        own = [d for d, name in enumerate(space.parameters) if name in space.moving]
        found: NDArray[np.int64] = self.parts[:, own].prod(axis=1)
        return found

    @property
    def working(self) -> NDArray[np.int64]:
        """Ranks that run anything under each candidate."""
        ranks = self.ends.columns.ranks
        return np.array([ranks if idle is None else int((~idle).sum()) for idle in self.idle])


@dataclass(frozen=True, slots=True, eq=False)
class _Tiled:
    """Tiles of one parameter: the column of their ends, and idle ranks."""

    ends: int
    idle: NDArray[np.bool_] | None


def _tiles(
    extent: ParameterRange, mesh: Mesh, split: tuple[str, ...], count: int, columns: Columns
) -> _Tiled:
    """So many tiles of a range along some axes, minor first; of one rank alone the largest one."""
    ranks = columns.ranks
    if ranks == 1:
        length = min(-(-extent.divisible // count), extent.iterations)
        extent, count = extent.start(length), 1
    index, taking_part = np.zeros(ranks, np.int64), min(ranks, mesh.size)
    for axis in reversed(split) if ranks > 1 else ():
        index[:taking_part] *= mesh[axis]
        index[:taking_part] += mesh.grid[axis][:taking_part]
    first, last, busy = ends_of_tiles(extent, index, count)
    idle = ~busy
    return _Tiled(columns.number(np.stack([first, last], axis=1)), idle if idle.any() else None)


def on_its_mesh(mesh: Mesh, candidate: Candidate, parameters: int) -> tuple[Mesh, Splits]:
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
        unsplit: parameters that no schedule can split: digits of one that is dealt in blocks.
    """

    space: IterationSpace
    touched: Touched
    like: Footprint = field(init=False)
    names: Mapping[str, str] = field(default_factory=dict)
    unsplit: frozenset[str] = frozenset()
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

    @functools.cached_property
    def handing(self) -> Handing | None:
        """What ranks hand on to each other within the space, where its iterations have an order."""
        return handing_of(self.space)

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
        if split & self.unsplit:
            return None
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
        writes = [a for a in self.touched[0] if a.is_write]
        if any(self._is_mixed(d) for a in writes for d in a.dimensions if d is not None):
            return None
        indexed = set().union(*map(names_in, writes))
        return None if any(along & indexed for along in found.values()) else found

    def _is_mixed(self, dimension: Dimension) -> bool:
        """Whether several parameters make up an index: ranks that share one may write in turns."""
        symbols = {str(s) for s in sympy.sympify(dimension.first).free_symbols}
        return len(symbols & {*self.space.parameters}) > 1

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
        return on_its_mesh(mesh, candidate, len(self.space.parameters))

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
            return Slot(use, tuple(own), written, self._brought(use, own))
        edges = {id(edge) for edge in use.edges}
        read = use.accesses or tuple(a for a in own if not a.is_write and id(a.edge) in edges)
        return Slot(use, read, (), self._parts(use, read))

    def _brought(self, use: Update, own: Sequence[Access]) -> tuple[tuple[Access, ...], ...]:
        """Accesses to what an update needs before it begins, but for what ranks hand on."""
        rim = rims_of(self.space.state, self.space.node).get(use.data) if use.brought else None
        if rim is None:
            return ()
        parameter = str(self.space.parameters[0])
        kept = (a for a in own if a.is_write or not reads_rim(a, rim, parameter))
        return (tuple(kept),)

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
            box = self.boxes([access], small).bounds[0]
            for number, part in enumerate(bounds):
                inside = (part[..., 0] <= box[..., 0]) & (box[..., 1] <= part[..., 1])
                if (inside.all(axis=1) | (boxes.volumes(box) == 0)).all():
                    found[number].append(access)
                    break
        return tuple(tuple(part) for part in found if part)

    def boxes(self, accesses: Sequence[Access], tilings: Tilings) -> Tiles:
        """Hull of some accesses to one container on each rank, under each candidate."""
        if self.like is not self:
            return self.like.boxes(accesses, tilings)
        ends = tuple((self.extents(a.data), tuple(self._ends_of(a))) for a in accesses)
        key = self.space.parameters, ends
        if key not in tilings.known:
            tilings.known[key] = functools.reduce(
                Tiles.hull, (self._boxes(access, tilings) for access in accesses)
            )
        return tilings.known[key]

    def _boxes(self, access: Access, tilings: Tilings) -> Tiles:
        extents, columns = self.extents(access.data), tilings.ends.columns
        numbers = np.zeros((len(tilings.candidates), len(extents)), np.int64)
        for d, ends in enumerate(self._ends_of(access)):
            if ends is None:
                numbers[:, d] = columns.whole(extents[d])
            else:
                numbers[:, d] = self._along(ends, extents[d], tilings)
        for candidate, own in enumerate(numbers.tolist()):
            masks = [columns.idle(number) for number in own]
            without = [m for m in (*masks, tilings.idle[candidate]) if m is not None]
            if without:
                idle = np.logical_or.reduce(without).tobytes()
                numbers[candidate] = [columns.without(number, idle) for number in own]
        return Tiles(columns, numbers)

    def _along(self, ends: Range, extent: int, tilings: Tilings) -> NDArray[np.int64]:
        """Columns of what an access touches along one dimension, under each candidate."""
        columns = tilings.ends.columns
        names = {s.name for s in ends.lower.free_symbols | ends.upper.free_symbols}
        own = [
            d
            for d, name in enumerate(self.space.parameters)
            if {f"{name}__first", f"{name}__last"} & names
        ]
        different, of = np.unique(tilings.ends.numbers[:, own], axis=0, return_inverse=True)
        values = {}
        for place, d in enumerate(own):
            held = columns.bounds(different[:, place])
            name = self.space.parameters[d]
            values[f"{name}__first"], values[f"{name}__last"] = held[..., 0], held[..., 1]
        found = np.empty((len(different), columns.ranks, 2), np.int64)
        found[..., 0] = np.maximum(evaluate(ends.lower, values), 0)
        found[..., 1] = np.minimum(evaluate(ends.upper, values) + 1, extent)
        each = np.array([columns.number(column) for column in found], np.int64)
        return each[of.reshape(-1)]

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
