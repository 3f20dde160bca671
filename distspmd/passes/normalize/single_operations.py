"""Single operations outside of maps become maps, the only form of work that has a space.

before -> after:  ``x -> tasklet -> y``  ->  the same in a map of one iteration;
``np.where``, a library node  ->  a map over its result.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from dace import SDFG, Memlet, SDFGState, dtypes
from dace.libraries.standard.helper import broadcast_indices
from dace.libraries.standard.nodes import MergeLibraryNode
from dace.sdfg import nodes
from dace.subsets import Subset

from distspmd.analysis.accesses import Edge
from distspmd.analysis.control_values import is_control_value, mark_control_value
from distspmd.dace_compat.fast_graphs import symbols_known_once


def operations_to_maps(sdfg: SDFG) -> None:
    """Wrap tasklets and expand ``np.where`` at the top level, in place."""
    with symbols_known_once():
        for state in sdfg.states():
            for node in list(state.nodes()):
                if state.entry_node(node) is not None:
                    continue
                if isinstance(node, nodes.Tasklet):
                    _wrap(state, node)
                elif isinstance(node, MergeLibraryNode):
                    _merge_to_map(state, node)


def _wrap(state: SDFGState, tasklet: nodes.Tasklet) -> None:
    entry, leave = state.add_map(
        tasklet.label, {"__once": "0:1"}, schedule=dtypes.ScheduleType.Sequential
    )
    entry.map.debuginfo = tasklet.debuginfo
    if is_control_value(tasklet):
        mark_control_value(entry)
        mark_control_value(leave)
    for edge in list(state.in_edges(tasklet)):
        state.remove_edge(edge)
        _connect(state, (edge.src, entry, tasklet), edge.data, dst_conn=edge.dst_conn)
    if not state.in_edges(tasklet):
        state.add_nedge(entry, tasklet, Memlet())
    for edge in list(state.out_edges(tasklet)):
        state.remove_edge(edge)
        _connect(state, (tasklet, leave, edge.dst), edge.data, src_conn=edge.src_conn)
    if not state.out_edges(tasklet):
        state.add_nedge(tasklet, leave, Memlet())


def _connect(
    state: SDFGState, path: Sequence[nodes.Node], memlet: Memlet, **connectors: str
) -> None:
    """Add a path through one border of a map of one iteration, which moves the same outside."""
    state.add_memlet_path(*path, memlet=memlet, propagate=False, **connectors)
    (border,) = {node for node in path if isinstance(node, (nodes.MapEntry, nodes.MapExit))}
    for edge in state.all_edges(border):
        if edge.data is memlet:
            edge.data = copy.deepcopy(memlet)


def _merge_to_map(state: SDFGState, node: MergeLibraryNode) -> None:
    """``x -> where -> y``  ->  ``x -> map -> y``, with the operands broadcast."""
    (leaving,) = state.out_edges(node)
    extents = leaving.data.subset.size()
    parameters: dict[str, str | Subset] = {
        f"__i{d}": f"0:{extent}" for d, extent in enumerate(extents)
    }
    entry, leave = state.add_map(node.label, parameters)
    entry.map.debuginfo = leaving.dst.debuginfo
    tasklet = state.add_tasklet(
        node.label,
        set(node.in_connectors),
        set(node.out_connectors),
        "_mrg_out = _mrg_t if _mrg_mask else _mrg_f",
        debuginfo=leaving.dst.debuginfo,
    )
    for edge in state.in_edges(node):
        element = element_of_window(edge, broadcast_indices(edge.data.subset.size(), extents))
        state.add_memlet_path(edge.src, entry, tasklet, dst_conn=edge.dst_conn, memlet=element)
    element = element_of_window(leaving, list(parameters))
    state.add_memlet_path(tasklet, leave, leaving.dst, src_conn=leaving.src_conn, memlet=element)
    state.remove_node(node)


def element_of_window(edge: Edge, indices: list[str]) -> Memlet:
    """The element at the indices of the window that an edge has."""
    ranges = zip(edge.data.subset.ranges, indices, strict=True)
    subset = ", ".join(f"({begin}) + ({step}) * ({index})" for (begin, _, step), index in ranges)
    return Memlet(data=edge.data.data, subset=subset)
