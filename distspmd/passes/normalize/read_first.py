"""In the bodies of maps, what reads an element runs before what writes over it.

before -> after:  ``read x[i] -> f;  g -> write x[i]``, in any order  ->  ``f`` before ``g``.

DaCe's simplification (2.0.0b1) fuses states and takes copies out, so that reads of the old value
stand beside writes of the new one with nothing that orders them; its generator then takes either
first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import networkx as nx
from dace import SDFG, Memlet, SDFGState
from dace.sdfg import nodes

from distspmd.analysis.accesses import Edge


def read_first(sdfg: SDFG) -> None:
    """Order reads before writes of the same elements in maps and nested SDFGs, in place."""
    for inner in sdfg.all_sdfgs_recursive():
        for state in inner.states():
            if inner is not sdfg:
                _order(state, list(_reads(state)), list(_writes(state)))
            for entry in state.nodes():
                if isinstance(entry, nodes.MapEntry):
                    _order(state, state.out_edges(entry), state.in_edges(state.exit_node(entry)))


def _order(state: SDFGState, reads: Sequence[Edge], writes: Sequence[Edge]) -> None:
    """Order those that meet, unless the values that they pass on do so."""
    sources = [(read, _container(state.memlet_path(read)[0].src)) for read in reads]
    targets = [(write, _container(state.memlet_path(write)[-1].dst)) for write in writes]
    for write, target in targets:
        for read, source in sources:
            if target and source == target and _meet(read, write, target):
                for writer in _producers(state, write.src):
                    _order_two(state, _end(state, read.dst), _begin(state, writer))


def _reads(state: SDFGState) -> Iterator[Edge]:
    """Reads of values that no node of the state writes."""
    for node in state.data_nodes():
        if state.in_degree(node) == 0 and state.entry_node(node) is None:
            yield from state.out_edges(node)


def _writes(state: SDFGState) -> Iterator[Edge]:
    for node in state.data_nodes():
        if state.entry_node(node) is None:
            yield from state.in_edges(node)


def _container(node: nodes.Node) -> str:
    return str(node.data) if isinstance(node, nodes.AccessNode) else ""


def _meet(read: Edge, write: Edge, name: str) -> bool:
    """Whether a read and a write of a container may be of the same element."""
    if read.data.is_empty() or write.data.is_empty():
        return False
    ours, theirs = (
        edge.data.subset if edge.data.data == name else edge.data.other_subset
        for edge in (read, write)
    )
    try:
        return ours is None or theirs is None or ours.intersects(theirs) is not False
    except TypeError:  # of what cannot be compared
        return True


def _producers(state: SDFGState, node: nodes.Node) -> list[nodes.Node]:
    """What computes a value that is written: of a copy, what writes the source of it."""
    if not isinstance(node, nodes.AccessNode):
        return [node]
    return [e.src for e in state.in_edges(node) if not isinstance(e.src, nodes.EntryNode)]


def _end(state: SDFGState, node: nodes.Node) -> nodes.Node:
    leave = state.exit_node(node) if isinstance(node, nodes.EntryNode) else node
    assert leave is not None
    return leave


def _begin(state: SDFGState, node: nodes.Node) -> nodes.Node:
    entry = state.entry_node(node) if isinstance(node, nodes.ExitNode) else node
    assert entry is not None
    return entry


def _order_two(state: SDFGState, first: nodes.Node, second: nodes.Node) -> None:
    ordered = nx.has_path(state.nx, first, second) or nx.has_path(state.nx, second, first)
    if not ordered and not isinstance(second, nodes.AccessNode):
        state.add_nedge(first, second, Memlet())
