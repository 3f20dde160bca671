"""Index expressions on all ranks of a tiling at once: boxes of accesses, and if these are filled.

The bounds of an expression name the ends of tiles, which differ between ranks; the value of an
expression is therefore an array with one number for each rank.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import sympy
from dace import SDFG
from numpy.typing import NDArray

from distspmd.analysis.accesses import Access, bound_around
from distspmd.analysis.evaluation import evaluate
from distspmd.analysis.index_bounds import Range, bound_index, constant
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.loop_runs import Runs
from distspmd.analysis.mixed_radix import digits_of, ends_of, is_filled
from distspmd.analysis.tiling import Tiling
from distspmd.errors import UnsupportedProgram
from distspmd.layouts.intervals import Numbers


class OnRanks:
    """Evaluates accesses of a space over the tiles of all ranks."""

    def __init__(self, space: IterationSpace, tiling: Tiling, sdfg: SDFG) -> None:
        self.space, self.tiling, self.sdfg = space, tiling, sdfg
        self.around = bound_around(space.state)
        self.ends: dict[str, Range | None] = {}
        values = {}
        steps = [constant(extent.step) for extent in space.ranges]
        for d, (name, parts) in enumerate(zip(space.parameters, tiling.parts, strict=True)):
            first, last = sympy.Symbol(f"{name}__first"), sympy.Symbol(f"{name}__last")
            values[first.name], values[last.name] = tiling.lower[:, d], tiling.last[:, d]
            ends = [np.unique(each[~tiling.idle, d]) for each in (tiling.lower, tiling.last)]
            if parts == 1 and all(len(each) == 1 for each in ends):  # whichever ranks have it
                first, last = (sympy.Integer(each[0]) for each in ends)
            self.ends[name] = Range(first, last, steps[d])
        self.values = values

    def extents(self, data: str) -> tuple[int, ...]:
        """Extents of a container as numbers."""
        shape = self.sdfg.arrays[data].shape
        try:
            return tuple(int(extent) for extent in shape)
        except TypeError:
            raise UnsupportedProgram(
                f"{self.space.where}: {data!r} has the extents {tuple(map(str, shape))}, "
                "which are no numbers. "
                "Give the sizes, for example with sdfg.replace_dict({'N': 1024})."
            ) from None

    def _scope(self, access: Access) -> dict[str, Range | None]:
        tiled = {n: r for n, r in self.ends.items() if n in access.scope}
        return {**self.around, **access.scope, **tiled}

    def boxes(self, access: Access) -> tuple[Numbers, tuple[int, ...]]:
        """Box of each rank, zeros where it is idle, and dimensions whole for want of a bound."""
        extents = self.extents(access.data)
        scope = self._scope(access)
        ranks = self.tiling.mesh.size
        bounds = np.zeros((ranks, len(extents), 2), np.int64)
        bounds[:, :, 1] = extents
        whole = []
        for d, dimension in enumerate(access.dimensions):
            first = bound_index(dimension.first, scope) if dimension else None
            last = bound_index(dimension.last, scope) if dimension else None
            if first is None or last is None:
                whole.append(d)
                continue
            bounds[:, d, 0] = np.maximum(self._evaluate(first.lower), 0)
            bounds[:, d, 1] = np.minimum(self._evaluate(last.upper) + 1, extents[d])
        bounds[self.tiling.idle | (bounds[:, :, 1] <= bounds[:, :, 0]).any(axis=1)] = 0
        return bounds, tuple(whole)

    def _evaluate(self, expression: sympy.Expr) -> NDArray[np.int64]:
        names = sorted(symbol.name for symbol in expression.free_symbols)
        unknown = [name for name in names if name not in self.values]
        if unknown:
            raise UnsupportedProgram(
                f"{self.space.where}: a subset of the space {self.space.name!r} depends on "
                f"{', '.join(unknown)}, which has no value before the call. Give sizes as numbers."
            )
        value = evaluate(expression, self.values)
        return np.broadcast_to(np.asarray(value, np.int64), (self.tiling.mesh.size,))

    def is_exact(self, access: Access) -> bool:
        """Whether the accesses of a rank touch each element of their box."""
        if access.conditional or self.is_moved(access) or not self._surely_runs(access):
            return False
        return fills_its_box(access, self._scope(access), self._evaluate, self.tiling.idle)

    def _surely_runs(self, access: Access) -> bool:
        """Whether no range that moves, or is inside, may be empty where a rank has a part."""
        scope = self._scope(access)
        for name, values in access.scope.items():
            if name in self.space.moving:
                return False
            if name in self.space.parameters:
                continue
            if values is None:
                return False
            for lower, upper in itertools.product(*ends_of(values)):
                length = bound_index(upper - lower, scope)
                if length is None or (self._evaluate(length.lower) < 0)[~self.tiling.idle].any():
                    return False
        return True

    def is_moved(self, access: Access) -> bool:
        """Whether the space touches other elements in another iteration of a loop around it."""
        return bool(names_in(access) & self.around.keys() - access.scope.keys())

    def share(self, group: Sequence[Access]) -> float:
        """The part of its boxes that a run of the space touches, where loops choose, on average."""
        runs = Runs.of(self.space.state)
        weights = runs.weights
        if not weights.sum():
            return 1.0
        values, now = dict(runs.values), dict(self.space.chosen)
        first, last = dict(values), dict(values)
        for name, extent in zip(self.space.parameters, self.space.ranges, strict=True):
            extent = now.get(name, extent)
            symbols = extent.begin.free_symbols | extent.end.free_symbols
            if {symbol.name for symbol in symbols} <= values.keys():
                first[name] = evaluate(extent.begin, values)
                last[name] = evaluate(extent.end - 1, values)
        shares = sum(self._share(access, first, last) for access in group)
        return float((np.minimum(shares, 1.0) * weights).sum() / weights.sum())

    def _share(self, access: Access, *ends: Mapping[str, Numbers]) -> NDArray[np.float64]:
        """The part of what all runs touch that each of them touches, if no parameter is split."""
        share = np.ones(1)
        for d in self.moved(access):
            dimension = access.dimensions[d]
            assert dimension is not None
            try:
                pairs = zip((dimension.first, dimension.last), ends, strict=True)
                low, high = (np.atleast_1d(evaluate(end, values)) for end, values in pairs)
            except (KeyError, UnsupportedProgram):  # data choose where, and not how much
                share = share * self._part_chosen(access, d)
                continue
            length = np.maximum(high - low + 1, 0)
            share = share * length / max(1, int(high.max() - low.min()) + 1)
        return share

    def _part_chosen(self, access: Access, d: int) -> float:
        """The part of a dimension that is touched where data choose its place; 1 if unknown."""
        dimension = access.dimensions[d]
        assert dimension is not None
        now = dict(self.space.chosen)
        first = dimension.first.subs({name: extent.begin for name, extent in now.items()})
        last = dimension.last.subs({name: extent.end - 1 for name, extent in now.items()})
        count = sympy.expand(last - first + 1)
        if not count.is_Integer or access.data not in self.sdfg.arrays:
            return 1.0
        return min(1.0, max(0, int(count)) / max(1, self.extents(access.data)[d]))

    def moved(self, access: Access) -> set[int]:
        """Dimensions in which an iteration of a loop around the space chooses what is touched."""
        chosen = self.around.keys() - access.scope.keys()
        return {
            d
            for d, dimension in enumerate(access.dimensions)
            if dimension and names_in(replace(access, dimensions=(dimension,))) & chosen
        }


def fills_its_box(
    access: Access,
    scope: dict[str, Range | None],
    value: Callable[[sympy.Expr], NDArray[np.int64]],
    idle: NDArray[np.bool_],
) -> bool:
    """Whether an access whose ranges are not empty touches each element of its box, on all ranks.

    Args:
        access: the access.
        scope: ranges of the symbols in it.
        value: of an expression on each rank.
        idle: ranks that touch nothing.
    """
    seen: set[str] = set()
    for dimension in access.dimensions:
        if dimension is None:
            return False
        names = names_in(replace(access, dimensions=(dimension,), scope=scope)) & scope.keys()
        indices = Range(dimension.first, dimension.last, dimension.step)
        digits = digits_of(indices, scope)
        if names & seen or digits is None:
            return False
        if not (is_filled(digits, value) | idle).all():
            return False
        seen |= names
    return True


def is_affine(access: Access) -> bool:
    """Whether what an access touches depends on nothing but sums of parameters times numbers."""
    ends = [end for d in access.dimensions for end in ((d.first, d.last) if d else (sympy.nan,))]
    polynomials = all(end.is_polynomial() and end is not sympy.nan for end in ends)
    return polynomials and not access.conditional


def names_in(access: Access) -> set[str]:
    """Symbols that the indices of an access depend on, through the ranges of others too."""
    pending = {
        symbol.name
        for dimension in access.dimensions
        if dimension is not None
        for symbol in dimension.first.free_symbols | dimension.last.free_symbols
    }
    if any(dimension is None for dimension in access.dimensions):
        pending |= access.scope.keys()
    found: set[str] = set()
    while pending:
        name = pending.pop()
        found.add(name)
        values = access.scope.get(name)
        if values is not None:
            more = {s.name for s in values.lower.free_symbols | values.upper.free_symbols}
            pending |= more - found
    return found
