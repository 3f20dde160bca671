"""Queries on a graph, answered without a walk over all of its nodes.

DaCe's generator asks for the sinks of a state once for each of its containers, and for the number
of a node once for each line. In programs with thousands of nodes, this is most of its time. All who
look into a map ask for its scope, for which DaCe copies what it knows of the whole state, and looks
at each node and edge of it in Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from dace import SDFGState
from dace.sdfg import nodes
from dace.sdfg.graph import NodeNotFoundError, OrderedDiGraph, SubgraphView
from dace.sdfg.scope import ScopeSubgraphView

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


def _entry_node(state: SDFGState, node: nodes.Node) -> nodes.EntryNode | None:
    """The entry of the map around a node; None outside of all."""
    around: dict[Any, Any] = state._scope_dict_toparent_cached or state.scope_dict()
    entry: nodes.EntryNode | None = around[node]
    return entry


def _children(state: SDFGState) -> dict[Any, list[nodes.Node]]:
    """The nodes in each scope, not in those within it."""
    found: dict[Any, list[nodes.Node]]
    found = state._scope_dict_tochildren_cached or state.scope_children()
    return found


def _exit_node(state: SDFGState, entry: nodes.EntryNode) -> nodes.ExitNode:
    """The exit of a map."""
    return next(node for node in _children(state)[entry] if isinstance(node, nodes.ExitNode))


def _scope_subgraph(
    state: SDFGState,
    entry_node: nodes.EntryNode,
    include_entry: bool = True,
    include_exit: bool = True,
) -> ScopeSubgraphView:
    """A map with all that lies in it, in the order of the state."""
    if not isinstance(entry_node, nodes.EntryNode):
        raise TypeError(f"Received {type(entry_node).__name__}: should be dace.nodes.EntryNode")
    children = _children(state)
    found = set(children[entry_node])
    if not include_exit:
        found = {node for node in found if not isinstance(node, nodes.ExitNode)}
    pending = [node for node in found if isinstance(node, nodes.EntryNode)]
    while pending:
        inside = children[pending.pop()]
        found.update(inside)
        pending += [node for node in inside if isinstance(node, nodes.EntryNode)]
    if include_entry:
        found.add(entry_node)
    view = ScopeSubgraphView(state, [], entry_node)
    view._subgraph_nodes = dict.fromkeys(node for node in state._nodes if node in found)
    return view


def _edges_between(view: Any) -> list[Any]:
    """The edges between the nodes of a part of a graph, in the order of the graph."""
    inside, graph = view._subgraph_nodes, view._graph
    if not isinstance(graph, OrderedDiGraph):
        return [e for e in graph.edges() if e.src in inside and e.dst in inside]
    found = {id(e) for node in inside for e in graph.out_edges(node) if e.dst in inside}
    return [edge for edge in graph.edges() if id(edge) in found]


_QUICK: dict[type, dict[str, Any]] = {
    OrderedDiGraph: {"sink_nodes": _sink_nodes, "node_id": _node_id},
    SDFGState: {
        "entry_node": _entry_node,
        "exit_node": _exit_node,
        "scope_subgraph": _scope_subgraph,
    },
    SubgraphView: {"edges": _edges_between},
}
"""Methods by the class of DaCe that has them, or inherits them."""


@contextmanager
def quick_graphs() -> Iterator[None]:
    """Let the graphs of DaCe answer quickly."""
    before = [(k, name, k.__dict__.get(name)) for k, own in _QUICK.items() for name in own]
    for kind, own in _QUICK.items():
        for name, method in own.items():
            setattr(kind, name, method)
    try:
        yield
    finally:
        for kind, name, slow in before:
            if slow is None:
                delattr(kind, name)
            else:
                setattr(kind, name, slow)


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
