"""Queries for nodes and states of a graph, and small edits that several passes need."""

from __future__ import annotations

from collections.abc import Collection

import networkx as nx
from dace import SDFG, InterstateEdge, SDFGState
from dace.sdfg import nodes
from dace.sdfg import utils as sdfg_utils
from dace.sdfg.state import ReturnBlock


def node_of(state: SDFGState, name: str) -> nodes.AccessNode:
    """The first node of a container in a state, or a new one."""
    for node in state.data_nodes():
        if node.data == name:
            return node
    return state.add_access(name)


def last(state: SDFGState, among: Collection[nodes.Node]) -> nodes.AccessNode:
    """The last of some access nodes of a state, which must have one."""
    order: list[nodes.Node] = list(sdfg_utils.dfs_topological_sort(state))
    return [n for n in order if isinstance(n, nodes.AccessNode) and n in among][-1]


def latest_before(state: SDFGState, name: str, node: nodes.Node) -> nodes.AccessNode | None:
    """The last access node of a container that a node of the same state comes after."""
    earlier = nx.ancestors(state.nx, node)
    found = [
        other
        for other in sdfg_utils.dfs_topological_sort(state)
        if other in earlier and isinstance(other, nodes.AccessNode) and other.data == name
    ]
    return found[-1] if found else None


def last_written(sdfg: SDFG, name: str) -> tuple[SDFGState, nodes.AccessNode] | None:
    """The node that a container is written through after all others, and its state, if there is."""
    written = [
        (state, node)
        for state in sdfg.states()
        for node in state.data_nodes()
        if node.data == name and state.in_degree(node)
    ]
    for state, node in written:
        before = {*nx.ancestors(state.nx, node), node}
        if all(other in before for _, other in written):
            return state, node
    return None


def state_before(block: ReturnBlock) -> SDFGState:
    """A new state through which control flow comes to a block."""
    region = block.parent_graph
    starts = region.start_block is block
    state = region.add_state("collect", is_start_block=starts)
    for edge in region.in_edges(block):
        region.remove_edge(edge)
        region.add_edge(edge.src, state, edge.data)
    region.add_edge(state, block, InterstateEdge())
    return state
