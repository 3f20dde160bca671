"""Temporaries that pass on just what was written, whichever part of them a loop chooses."""

from __future__ import annotations

import networkx as nx
from dace import SDFGState
from dace.data import View
from dace.sdfg import nodes

from distspmd.analysis.accesses import control_reads, loops_around
from distspmd.analysis.whole_program import is_straight, nodes_by_container


def is_read_as_written(state: SDFGState, data: str) -> bool:
    """Whether what a state writes of a temporary is all that anybody reads of it.

    So it is where one edge writes it, and all that read it come behind in the same iteration of all
    loops around, and read that part: what is left in its other elements does not matter.
    """
    sdfg, region = state.sdfg, state.parent_graph
    if not sdfg.arrays[data].transient or any(control_reads(sdfg, data)):
        return False
    written, read = [], []
    for own, node in nodes_by_container(sdfg).get(data, []):
        written += [(own, node, e.data.get_dst_subset(e, own)) for e in own.in_edges(node)]
        read += [(own, node, e.data.get_src_subset(e, own)) for e in own.out_edges(node)]
        ends = (end for e in own.all_edges(node) for end in (e.src, e.dst))
        if any(isinstance(e, nodes.AccessNode) and isinstance(e.desc(own), View) for e in ends):
            return False
    if len(written) != 1 or not is_straight(region):
        return False
    ((at, first, part),) = written
    chosen = {loop.loop_variable for loop in loops_around(state)}
    return (
        at is state
        and {str(symbol) for symbol in part.free_symbols} <= chosen
        and all(str(each) == str(part) for *_, each in read)
        and all(
            node is first if own is state else own.parent_graph is region for own, node, _ in read
        )
        and all(nx.has_path(region.nx, state, own) for own, *_ in read)
    )
