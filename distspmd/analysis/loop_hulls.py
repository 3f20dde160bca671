"""Ranges that loops choose: ``for i in range(n): a[i, :i] = ...`` runs a map over ``0:i``.

The hull of all these ranges, ``0:n - 1``, is tiled. When the map runs, each rank takes the part of
its tile that lies in the current range.
"""

from __future__ import annotations

from dataclasses import replace

import sympy
from dace.sdfg import nodes

from distspmd.analysis.accesses import bound_around
from distspmd.analysis.index_bounds import Scope, bound_index
from distspmd.analysis.iteration_spaces import IterationSpace, ParameterRange, parameters_of


def widen_to_hulls(space: IterationSpace) -> IterationSpace:
    """The space with the hulls of its ranges, and the names of parameters whose range moves."""
    now = parameters_of(space.node)[1] if isinstance(space.node, nodes.MapEntry) else space.ranges
    scope = bound_around(space.state)
    hulls = {
        name: hull
        for name, extent in zip(space.parameters, now, strict=True)
        if (hull := _hull(extent, scope)) is not None
    }
    chosen = tuple((n, own) for n, own in zip(space.parameters, now, strict=True) if n in hulls)
    ranges = [hulls.get(name, extent) for name, extent in zip(space.parameters, now, strict=True)]
    return replace(space, ranges=tuple(ranges), chosen=chosen)


def _hull(extent: ParameterRange, scope: Scope) -> ParameterRange | None:
    """All values in any iteration of the loops; None for a fixed range, or one without bounds.

    Of steps of more than one, each range would begin elsewhere between two steps.
    """
    symbols = extent.begin.free_symbols | extent.end.free_symbols
    if extent.step != 1 or not any(symbol.name in scope for symbol in symbols):
        return None
    begins, ends = bound_index(extent.begin, scope), bound_index(extent.end, scope)
    if begins is None or ends is None:
        return None
    return ParameterRange(begins.lower, sympy.Max(begins.lower, ends.upper), extent.step)
