"""Library nodes of others get containers that are their windows, and no more.

before -> after:  ``x_tile[lo:hi] -> node -> y_tile[lo:hi]``  ->
``if lo < hi: x_tile[lo:hi] -> x_window -> node -> y_window -> y_tile[lo:hi]``

Whoever wrote the implementation may take extents and strides from the containers, and may count on
having something to do. The tile of a rank has the extents of the largest one, and may have a halo.
"""

from __future__ import annotations

import math
from typing import Any

import sympy
from dace import SDFG, Memlet, SDFGState, data
from dace.properties import CodeBlock
from dace.sdfg import nodes
from dace.sdfg.graph import SubgraphView
from dace.sdfg.state import ConditionalBlock, ControlFlowRegion
from dace.transformation.helpers import nest_state_subgraph

from distspmd.analysis.declared_accesses import is_of_others
from distspmd.dace_compat.settings import quiet
from distspmd.passes.normalize.library_nodes import WINDOWED


def give_windows(program: SDFG) -> None:
    """Give each library node of others its windows, in place, where its tiles are not such."""
    for node, state in list(program.all_nodes_recursive()):
        if (
            isinstance(state, SDFGState)
            and isinstance(node, nodes.LibraryNode)
            and is_of_others(node)
            and not isinstance(node, WINDOWED)
            and state.entry_node(node) is None
        ):
            _give(state, node)


def _give(state: SDFGState, node: nodes.LibraryNode) -> None:
    operands = [e for e in state.all_edges(node) if not e.data.is_empty()]
    if not any(_needs_window(state, edge) for edge in operands):
        return
    windows = []
    for edge in operands:
        enters = edge.dst is node
        connector = edge.dst_conn if enters else edge.src_conn
        container, sizes = state.sdfg.arrays[edge.data.data], edge.data.subset.size()
        name, _ = state.sdfg.add_transient(
            f"{edge.data.data}_window", sizes, container.dtype, find_new_name=True
        )
        own = state.add_access(name)
        windows.append(own)
        whole = Memlet.from_array(name, state.sdfg.arrays[name])
        moved = Memlet(data=edge.data.data, subset=edge.data.subset)
        if enters:
            state.add_edge(edge.src, edge.src_conn, own, None, moved)
            state.add_edge(own, None, node, connector, whole)
        else:
            state.add_edge(node, connector, own, None, whole)
            state.add_edge(own, None, edge.dst, edge.dst_conn, moved)
        state.remove_edge(edge)
    sizes = [size for edge in operands for size in edge.data.subset.size()]
    with quiet():
        nested = nest_state_subgraph(state.sdfg, state, SubgraphView(state, [node, *windows]))
    _run_if(nested.sdfg, sizes)


def _needs_window(state: SDFGState, edge: Any) -> bool:
    """Whether a window is less than its container, or does not lie in memory as an array does."""
    container: data.Data = state.sdfg.arrays[edge.data.data]
    sizes, shape = map(tuple, (edge.data.subset.size(), container.shape))
    packed = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    return str(sizes) != str(shape) or str(list(container.strides)) != str(packed)


def _run_if(inside: SDFG, sizes: list[Any]) -> None:
    """Let the one state of an SDFG run only if there is something in all windows."""
    symbolic = dict.fromkeys(str(size) for size in sizes if not sympy.sympify(size).is_number)
    if not symbolic:
        return
    (state,) = inside.states()
    inside.remove_node(state)
    block, region = ConditionalBlock("if_any"), ControlFlowRegion("any", sdfg=inside)
    inside.add_node(block, is_start_block=True)
    region.add_node(state, is_start_block=True)
    block.add_branch(CodeBlock(" and ".join(f"({size}) > 0" for size in symbolic)), region)
