"""Ranges that loops or data choose: ``for i in range(n): a[i, :i] = ...`` runs a map over ``0:i``.

The hull of all these ranges, ``0:n - 1``, is tiled; of a range of which data choose the ends, it is
the dimension that the map writes. When the map runs, each rank takes the part of
its tile that lies in the current range. A hull that is nearly all of the dimension that it indexes
is taken for all of it, as ``1:n`` of ``a[k + 1:, k]``: the map is cut where others cut the array.
"""

from __future__ import annotations

from dataclasses import replace

import sympy
from dace.sdfg import nodes

from distspmd.analysis.accesses import bound_around, map_accesses
from distspmd.analysis.index_bounds import Scope, bound_index
from distspmd.analysis.iteration_spaces import IterationSpace, ParameterRange, parameters_of
from distspmd.analysis.scopes import edges_at, nodes_inside

_PART = 8
"""Of a dimension, the part that a hull may leave out: tiles are so much less even at most."""


def widen_to_hulls(space: IterationSpace) -> IterationSpace:
    """The space with the hulls of its ranges, and what loops and data choose of them."""
    now = parameters_of(space.node)[1] if isinstance(space.node, nodes.MapEntry) else space.ranges
    scope = bound_around(space.state)
    hulls = {
        name: hull
        for name, extent in zip(space.parameters, now, strict=True)
        if (hull := _hull(extent, scope)) is not None
    }
    if isinstance(space.node, nodes.MapEntry):
        extents = _extents_indexed(space, space.node)
        for name, extent in zip(space.parameters, now, strict=True):
            own = extents.get(name, set())
            if name in hulls:
                hulls[name] = _completed(hulls[name], own)
            elif _is_chosen(extent, scope) and len(own) == 1 and _is_in_writes(name, space):
                hulls[name] = ParameterRange(sympy.Integer(0), own.pop(), sympy.Integer(1))
    chosen = tuple((n, own) for n, own in zip(space.parameters, now, strict=True) if n in hulls)
    ranges = [hulls.get(name, extent) for name, extent in zip(space.parameters, now, strict=True)]
    return replace(space, ranges=tuple(ranges), chosen=chosen)


def _is_chosen(extent: ParameterRange, scope: Scope) -> bool:
    """Whether loops or data choose where a range begins or ends."""
    symbols = extent.begin.free_symbols | extent.end.free_symbols
    return bool(extent.step == 1 and any(symbol.name in scope for symbol in symbols))


def _hull(extent: ParameterRange, scope: Scope) -> ParameterRange | None:
    """All values in any iteration of the loops; None for a fixed range, or one without bounds.

    Of steps of more than one, each range would begin elsewhere between two steps.
    """
    if not _is_chosen(extent, scope):
        return None
    begins, ends = bound_index(extent.begin, scope), bound_index(extent.end, scope)
    if begins is None or ends is None:
        return None
    return ParameterRange(begins.lower, sympy.Max(begins.lower, ends.upper), extent.step)


def _completed(hull: ParameterRange, extents: set[sympy.Expr]) -> ParameterRange:
    """The whole of the one dimension that is indexed, where the hull is nearly all of it."""
    if len(extents) != 1 or not all(each.is_Integer for each in (hull.begin, hull.end, *extents)):
        return hull
    (extent,) = extents
    left = extent - (hull.end - hull.begin)
    if hull.begin < 0 or hull.end > extent or left > max(1, extent // _PART):
        return hull
    return ParameterRange(sympy.Integer(0), extent, hull.step)


def _is_in_writes(parameter: str, space: IterationSpace) -> bool:
    """Whether each write of a map is indexed with a parameter: others write nothing beyond it."""
    assert isinstance(space.node, nodes.MapEntry)
    writes = [access for access in map_accesses(space.state, space.node) if access.is_write]
    return all(
        any(d and d.first == d.last and str(d.first) == parameter for d in write.dimensions)
        for write in writes
    )


def _extents_indexed(space: IterationSpace, entry: nodes.MapEntry) -> dict[str, set[sympy.Expr]]:
    """Extents of dimensions that each parameter of a map indexes by itself, where it writes."""
    found: dict[str, set[sympy.Expr]] = {}
    inside = nodes_inside(space.state, entry)
    arrays = space.state.sdfg.arrays
    for edge in edges_at(space.state, inside):
        if edge.data.is_empty() or edge.data.data not in space.writes:
            continue
        shape = arrays[edge.data.data].shape
        for (first, last, _), extent in zip(edge.data.subset.ranges, shape, strict=True):
            if first == last and str(first) in space.parameters:
                found.setdefault(str(first), set()).add(sympy.sympify(extent))
    return found
