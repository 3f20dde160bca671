"""A read whose place a loop chooses enters a map by an edge of its own.

before -> after:  ``x -> map`` with ``x[i, j]`` and ``x[k, j]`` inside, in a loop over ``k``  ->
two edges, one for each. One of them can then be in place while the other is fetched.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence, Set

from dace import SDFG, SDFGState
from dace.sdfg import nodes

from distspmd.analysis.accesses import Edge, bound_around
from distspmd.analysis.whole_program import unchanged_control_flow


@unchanged_control_flow()
def split_reads(sdfg: SDFG) -> None:
    """Give such reads of all top-level maps edges of their own, in place."""
    for state in sdfg.states():
        separate_reads(state)


def separate_reads(state: SDFGState) -> None:
    """Give such reads of the top-level maps of a state edges of their own, in place."""
    around = bound_around(state).keys()
    if not around:
        return
    for entry in state.nodes():
        if isinstance(entry, nodes.MapEntry) and state.entry_node(entry) is None:
            for edge in list(state.in_edges(entry)):
                if edge.dst_conn and edge.dst_conn.startswith("IN_") and not edge.data.is_empty():
                    _separate(state, entry, edge, around)


def _separate(state: SDFGState, entry: nodes.MapEntry, edge: Edge, around: Set[str]) -> None:
    inside = list(state.out_edges_by_connector(entry, "OUT_" + edge.dst_conn[3:]))
    groups: dict[tuple[str, ...], list[Edge]] = {}
    for inner in inside:
        groups.setdefault(_chosen(state, inner, around), []).append(inner)
    split = [found for chosen, found in groups.items() if chosen and len(groups) > 1]
    lead_apart(state, entry, edge, split)


def lead_apart(
    state: SDFGState, entry: nodes.MapEntry, edge: Edge, groups: Iterable[Sequence[Edge]]
) -> None:
    """Let groups of the reads behind an edge into a map enter by edges of their own, in place."""
    for found in groups:
        name = entry.next_connector(edge.data.data)
        entry.add_in_connector(f"IN_{name}")
        entry.add_out_connector(f"OUT_{name}")
        state.add_edge(edge.src, edge.src_conn, entry, f"IN_{name}", copy.deepcopy(edge.data))
        for inner in found:
            state.remove_edge(inner)
            state.add_edge(entry, f"OUT_{name}", inner.dst, inner.dst_conn, inner.data)
    if not list(state.out_edges_by_connector(entry, "OUT_" + edge.dst_conn[3:])):
        entry.remove_in_connector(edge.dst_conn)
        entry.remove_out_connector("OUT_" + edge.dst_conn[3:])
        state.remove_edge(edge)


def _chosen(state: SDFGState, inner: Edge, around: Set[str]) -> tuple[str, ...]:
    """The subsets below an edge of which a loop around the map chooses the place."""
    tree = state.memlet_tree(inner)
    below = tree.traverse_children(include_self=True)
    leaves = [leaf.edge.data for leaf in below if not leaf.children]
    moved = [m for m in leaves if {str(s) for s in m.subset.free_symbols} & around]
    return tuple(sorted({str(m.subset) for m in moved}))
