"""Queries on a graph, answered without a walk over all of its nodes.

DaCe's generator asks for the sinks of a state once for each of its containers, and for the number
of a node once for each line. In programs with thousands of nodes, this is most of its time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from dace import SDFGState
from dace.sdfg.graph import NodeNotFoundError, OrderedDiGraph

Graph: TypeAlias = "OrderedDiGraph[Any, Any]"


def _sink_nodes(graph: Graph) -> list[Any]:
    """Nodes with no outgoing edges, in order."""
    return [node for node, (_, leaving) in graph._nodes.items() if not leaving]


def _node_id(graph: Graph, node: Any) -> int:
    """The place of a node."""
    try:
        return list(graph._nodes).index(node)
    except ValueError:
        raise NodeNotFoundError(node) from None


@contextmanager
def quick_graphs() -> Iterator[None]:
    """Let the graphs of DaCe answer quickly."""
    quick = {"sink_nodes": _sink_nodes, "node_id": _node_id}
    before = {name: OrderedDiGraph.__dict__.get(name) for name in quick}
    for name, method in quick.items():
        setattr(OrderedDiGraph, name, method)
    try:
        yield
    finally:
        for name, own in before.items():
            if own is None:
                delattr(OrderedDiGraph, name)
            else:
                setattr(OrderedDiGraph, name, own)


@contextmanager
def symbols_known_once() -> Iterator[None]:
    """Let each state find the symbols around it once: nothing changes edges between states.

    To connect a map, DaCe asks for them at each edge, and looks at all states before.
    """
    own = SDFGState.symbols_defined_at_state
    known: dict[SDFGState, dict[str, Any]] = {}

    def kept(state: SDFGState) -> dict[str, Any]:
        if state not in known:
            known[state] = own(state)
        return known[state]

    setattr(SDFGState, own.__name__, kept)
    try:
        yield
    finally:
        setattr(SDFGState, own.__name__, own)
