"""Maps of one iteration that write the element of which a loop chooses the place."""

from __future__ import annotations

import sympy
from dace import SDFGState, subsets
from dace.sdfg import nodes

from distspmd.analysis.accesses import Edge, bound_around
from distspmd.analysis.index_bounds import bound_index

CHOSEN = "__k"
"""What begins the name of a parameter of which one value runs: that which loops choose."""


def written_element(
    state: SDFGState, entry: nodes.MapEntry
) -> tuple[Edge, dict[str, tuple[int, sympy.Expr]]] | None:
    """The write of such a map, and by which parameter it could index each dimension.

    Returns:
        the edge, and by the name of the parameter its dimension and the index that loops choose;
        None for any other map.
    """
    inside = state.scope_subgraph(entry, include_entry=False, include_exit=False).nodes()
    writes = list(state.in_edges(state.exit_node(entry)))
    if (
        any(size != 1 for size in entry.map.range.size())
        or not all(isinstance(node, nodes.Tasklet | nodes.AccessNode) for node in inside)
        or len(writes) != 1
        or not isinstance(writes[0].data.subset, subsets.Range)
    ):
        return None
    scope, own = bound_around(state), set(entry.map.params)
    found = {}
    for d, (at, end, _) in enumerate(writes[0].data.subset.ranges):
        names = {symbol.name for symbol in at.free_symbols}
        if names & own:
            return None
        if at == end and names & scope.keys() and bound_index(at, scope) is not None:
            found[f"{CHOSEN}{d}"] = d, at
    return (writes[0], found) if found else None
