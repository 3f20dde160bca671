"""Queries on a graph, answered without a walk over all of its nodes.

DaCe's generator asks for the sinks of a state once for each of its containers, and for the number
of a node once for each line. In programs with thousands of nodes, this is most of its time. All who
look into a map ask for its scope, for which DaCe copies what it knows of the whole state, and looks
at each node and edge of it in Python. Which containers a state uses, which parts of it could run
beside each other, and whether it has cycles, DaCe finds by walks that begin anew at each source.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import dace
import networkx as nx
from dace import SDFGState, subsets
from dace.sdfg import nodes
from dace.sdfg.graph import NodeNotFoundError, OrderedDiGraph, SubgraphView
from dace.sdfg.scope import ScopeSubgraphView

Graph: TypeAlias = "OrderedDiGraph[Any, Any]"


def _sink_nodes(graph: Graph) -> list[Any]:
    """Nodes with no outgoing edges, in order."""
    return [node for node, (_, leaving) in graph._nodes.items() if not leaving]


_NUMBERS: dict[int, tuple[Graph, dict[Any, int]]] = {}
"""The places of the nodes of graphs that were asked, by identity; the graph stays alive with it."""


def _places(graph: Graph) -> dict[Any, int]:
    """The places of all nodes of a graph."""
    if id(graph) not in _NUMBERS:
        _NUMBERS[id(graph)] = graph, {known: place for place, known in enumerate(graph._nodes)}
    return _NUMBERS[id(graph)][1]


def _node_id(graph: Graph, node: Any) -> int:
    """The place of a node."""
    try:
        return _places(graph)[node]
    except KeyError:
        raise NodeNotFoundError(node) from None


def _add_node(graph: Graph, node: Any) -> None:
    """A new node comes last."""
    _SLOW_ADD(graph, node)
    if id(graph) in _NUMBERS:
        _NUMBERS[id(graph)][1][node] = len(graph._nodes) - 1


def _remove_node(graph: Graph, node: Any) -> None:
    """Those behind it move."""
    _NUMBERS.pop(id(graph), None)
    _SLOW_REMOVE(graph, node)


_SLOW_ADD, _SLOW_REMOVE = OrderedDiGraph.add_node, OrderedDiGraph.remove_node


def _has_cycles(graph: Graph) -> bool:
    """Whether a node follows itself: it remains when all that nothing precedes is taken away."""
    preceding = {node: len(entering) for node, (entering, _) in graph._nodes.items()}
    free = [node for node, number in preceding.items() if not number]
    taken = 0
    while free:
        taken += 1
        for edge in graph._nodes[free.pop()][1].values():
            preceding[edge.dst] -= 1
            if not preceding[edge.dst]:
                free.append(edge.dst)
    return taken < len(preceding)


def _read_and_written(state: SDFGState) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Of each container that a state reads, and of each that it writes, the parts."""
    read: dict[str, list[Any]] = {}
    written: dict[str, list[Any]] = {}
    edge: Any
    for edge in state.edges():
        edge.data.try_initialize(state.sdfg, state, edge)
    for node in state.data_nodes():
        for edge in state.in_edges(node):
            if not edge.data.is_empty():
                written.setdefault(node.data, []).append(_part(state, node, edge.data.dst_subset))
        for edge in state.out_edges(node):
            if not edge.data.is_empty():
                read.setdefault(node.data, []).append(_part(state, node, edge.data.src_subset))
    return read, written


def _part(state: SDFGState, node: nodes.AccessNode, part: Any) -> Any:
    """What an edge has of a container: all, where it does not say."""
    return subsets.Range.from_array(node.desc(state.sdfg)) if part is None else part


def _concurrent_subgraphs(graph: Any) -> list[ScopeSubgraphView]:
    """The parts of a state that only share containers that they read."""
    sources = dict.fromkeys(graph.source_nodes())
    read = [node for node in sources if isinstance(node, nodes.AccessNode)]
    readers = {node: [edge.dst for edge in graph.out_edges(node)] for node in read}
    starts: dict[Any, None] = {}
    for node in sources:
        starts.update(dict.fromkeys(readers.get(node, [node])))
    joined: nx.Graph[Any] = nx.Graph()
    joined.add_nodes_from(node for node in graph.nodes() if node not in readers)
    joined.add_edges_from((e.src, e.dst) for e in graph.edges() if e.src not in readers)
    part_of = {
        node: number for number, part in enumerate(nx.connected_components(joined)) for node in part
    }
    last = {part_of[start]: order for order, start in enumerate(starts)}
    members: dict[int, set[Any]] = {part: set() for part in sorted(last, key=last.__getitem__)}
    for node, part in part_of.items():
        members[part].add(node)
    for source, after in readers.items():
        for reader in after:
            members[part_of[reader]].add(source)
    return [ScopeSubgraphView(graph, list(inside), None) for inside in members.values()]


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
    view._subgraph_nodes = dict.fromkeys(sorted(found, key=_places(state).__getitem__))
    return view


def _edges_between(view: Any) -> list[Any]:
    """The edges between the nodes of a part of a graph, in the order of the graph."""
    inside, graph = view._subgraph_nodes, view._graph
    if not isinstance(graph, OrderedDiGraph):
        return [e for e in graph.edges() if e.src in inside and e.dst in inside]
    found = {id(e) for node in inside for e in graph.out_edges(node) if e.dst in inside}
    return [edge for edge in graph.edges() if id(edge) in found]


_QUICK: dict[Any, dict[str, Any]] = {
    OrderedDiGraph: {
        "sink_nodes": _sink_nodes,
        "node_id": _node_id,
        "add_node": _add_node,
        "remove_node": _remove_node,
        "has_cycles": _has_cycles,
    },
    SDFGState: {
        "_read_and_write_subsets": _read_and_written,
        "entry_node": _entry_node,
        "exit_node": _exit_node,
        "scope_subgraph": _scope_subgraph,
    },
    SubgraphView: {"edges": _edges_between},
    dace.sdfg: {"concurrent_subgraphs": _concurrent_subgraphs},
}
"""Methods by the class of DaCe that has them, or inherits them, and functions by the module."""


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
        _NUMBERS.clear()


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
