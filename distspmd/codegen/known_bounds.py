"""Ends of maps and windows lose the comparisons that the loops around them decide.

before -> after:  ``k = Max(1, i) ... Min(98, i)`` in a loop of ``i`` over 1 to 98  ->  ``k = i``

A map over an element's own indices is met with the tile of its rank. Where a tile is known to have
what a loop names, as on one rank, the map has one iteration: the compiler keeps the element in a
register, and threads are not asked.
"""

from __future__ import annotations

import sympy
from dace import SDFG, SDFGState, subsets
from dace.sdfg import nodes

from distspmd.analysis.accesses import bound_around
from distspmd.analysis.index_bounds import Scope, bound_index

_Known = dict[sympy.Expr, sympy.Expr]


def drop_known_bounds(sdfg: SDFG) -> None:
    """Simplify the ranges of maps, and the subsets of memlets, by the loops around, in place."""
    for inner in sdfg.all_sdfgs_recursive():
        for state in inner.states():
            scope = bound_around(state)
            if any(values is not None for values in scope.values()):
                _in_state(state, scope)


def _in_state(state: SDFGState, scope: Scope) -> None:
    known: _Known = {}
    for node in state.nodes():
        if isinstance(node, nodes.MapEntry):
            node.map.range = _simpler(node.map.range, scope, known)
    for edge in state.edges():
        memlet = edge.data
        if memlet.is_empty():
            continue
        if isinstance(memlet.subset, subsets.Range):
            memlet.subset = _simpler(memlet.subset, scope, known)
        if isinstance(memlet.other_subset, subsets.Range):
            memlet.other_subset = _simpler(memlet.other_subset, scope, known)


def _simpler(given: subsets.Range, scope: Scope, known: _Known) -> subsets.Range:
    ranges = [tuple(_decided(end, scope, known) for end in dim) for dim in given.ndrange()]
    if ranges == [tuple(dim) for dim in given.ndrange()]:
        return given
    return subsets.Range([(*dim, tile) for dim, tile in zip(ranges, given.tile_sizes, strict=True)])


def _decided(end: object, scope: Scope, known: _Known) -> object:
    """An expression without the arguments of ``Max`` and ``Min`` that never count."""
    if not isinstance(end, sympy.Basic) or not end.has(sympy.Max, sympy.Min):
        return end
    if end not in known:
        known[end] = end.replace(
            lambda part: isinstance(part, sympy.Max | sympy.Min),
            lambda part: part.func(*_that_count(part, scope)),
        )
    return known[end]


def _that_count(extreme: sympy.Expr, scope: Scope) -> list[sympy.Expr]:
    """The arguments of a ``Max`` or ``Min``, without those that another one always excels."""
    sign = 1 if isinstance(extreme, sympy.Max) else -1
    left = list(extreme.args)
    for one in extreme.args:
        if any(_never_negative(sign * (other - one), scope) for other in left if other is not one):
            left.remove(one)
    return left


def _never_negative(difference: sympy.Expr, scope: Scope) -> bool:
    values = bound_index(difference, scope)
    return values is not None and values.lower.is_Integer and bool(values.lower >= 0)
