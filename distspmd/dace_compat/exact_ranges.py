"""Ranges and subsets that say exactly what runs.

before -> after:  ``i in k:min(19, k + 127) (~k + 127)``  ->  ``i in k:min(19, k + 127)``

DaCe (2.0.0b1) writes both where a tiling need not divide a range: what runs, and something simpler
above it, for its own propagation. Neither SymPy nor an analysis can compute with such a pair.
"""

from __future__ import annotations

from typing import Any

from dace import SDFG, Memlet, subsets
from dace.sdfg import nodes
from dace.symbolic import SymExpr


def exact(expression: Any) -> Any:
    """What runs, of an expression that DaCe may have written with an approximation."""
    return expression.expr if isinstance(expression, SymExpr) else expression


def take_exact(sdfg: SDFG) -> None:
    """Leave the approximations out, in place, in all maps and memlets of an SDFG."""
    for each in sdfg.all_sdfgs_recursive():
        for state in each.states():
            for node in state.nodes():
                if isinstance(node, nodes.MapEntry):
                    node.map.range = _exactly(node.map.range)
            for edge in state.edges():
                _take_exact_memlet(edge.data)


def _take_exact_memlet(memlet: Memlet) -> None:
    memlet.subset, memlet.other_subset = map(_exactly, (memlet.subset, memlet.other_subset))
    if isinstance(memlet.volume, SymExpr):
        memlet.volume = memlet.volume.expr


def _exactly(subset: subsets.Subset | None) -> Any:
    """A subset without approximations; the same one where it has none."""
    if not isinstance(subset, subsets.Range):
        return subset
    ends = [tuple(map(exact, each)) for each in subset.ranges]
    sizes = [exact(size) for size in subset.tile_sizes]
    if all(
        new is old
        for given, made in zip((*subset.ranges, subset.tile_sizes), (*ends, sizes), strict=True)
        for old, new in zip(given, made, strict=True)
    ):
        return subset
    return subsets.Range([(*each, size) for each, size in zip(ends, sizes, strict=True)])
