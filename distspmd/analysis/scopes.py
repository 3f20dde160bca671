"""What lies in the scope of a map, and the edges there, without a walk over the whole state."""

from __future__ import annotations

from collections.abc import Iterable

from dace import Memlet, SDFGState
from dace.sdfg import nodes
from dace.sdfg.graph import MultiConnectorEdge

from distspmd.analysis.whole_program import edges_by_node


def nodes_inside(state: SDFGState, entry: nodes.MapEntry) -> list[nodes.Node]:
    """The map's entry, its exit, and all between them."""
    children = state.scope_children()
    found: list[nodes.Node] = [entry]
    pending: list[nodes.Node] = [entry]
    while pending:
        for node in children[pending.pop()]:
            found.append(node)
            if isinstance(node, nodes.EntryNode):
                pending.append(node)
    return found


def edges_at(state: SDFGState, inside: Iterable[nodes.Node]) -> list[MultiConnectorEdge[Memlet]]:
    """Edges from or to any of some nodes, in the order of the state."""
    known = edges_by_node(state)
    places = {place: edge for node in inside for place, edge in known[node]}
    return [places[place] for place in sorted(places)]
