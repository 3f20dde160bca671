"""Maps that write where a loop, or data, choose the place: an element, a row, a column, a panel."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import sympy
from dace import SDFGState, subsets
from dace.sdfg import nodes

from distspmd.analysis.accesses import Edge, bound_around

CHOSEN = "__k"
"""What begins the name of a parameter of which one value runs: that which loops or data choose."""


@dataclass(frozen=True, eq=False)
class ChosenPlace:
    """The write of such a map, and by which parameters it could index each dimension.

    Attributes:
        write: the edge at the end of the map.
        kept: parameters of the map that stay; none of a map of one iteration.
        indices: by the name of a new parameter its dimension, and the index that is chosen.
    """

    write: Edge
    kept: tuple[str, ...]
    indices: dict[str, tuple[int, sympy.Expr]]

    @property
    def parameters(self) -> tuple[str, ...]:
        """All parameters of the map that indexes with them, in order."""
        return (*self.kept, *self.indices)


def chosen_place(
    state: SDFGState, entry: nodes.MapEntry, pieces: Mapping[str, Collection[int]] | None = None
) -> ChosenPlace | None:
    """Where a map writes, if loops or data choose some of its indices; None for any other map.

    All ranks know an index that data choose, for it is a symbol when the map runs. A number is an
    index that is chosen, too, where other spaces write other parts of the dimension.

    Args:
        state: of the map.
        entry: its entry.
        pieces: by containers that several spaces write, the dimensions in which they do.
    """
    inside = state.scope_subgraph(entry, include_entry=False, include_exit=False).nodes()
    writes = list(state.in_edges(state.exit_node(entry)))
    if (
        not all(isinstance(node, nodes.Tasklet | nodes.AccessNode) for node in inside)
        or len(writes) != 1
        or not isinstance(writes[0].data.subset, subsets.Range)
    ):
        return None
    scope, own = bound_around(state), set(entry.map.params)
    apart = (pieces or {}).get(writes[0].data.data, ())
    found, kept = {}, any(size != 1 for size in entry.map.range.size())
    for d, (at, end, _) in enumerate(writes[0].data.subset.ranges):
        names = {symbol.name for symbol in at.free_symbols}
        if names & own:
            kept = True
        elif at == end and (names & scope.keys() or (d in apart and at.is_Integer)):
            found[f"{CHOSEN}{d}"] = d, at
    parameters = tuple(map(str, entry.map.params)) if kept else ()
    return ChosenPlace(writes[0], parameters, found) if found else None
