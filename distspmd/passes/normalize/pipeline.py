"""Bring all top-level work into the form of maps and library nodes, or say what cannot be.

before -> after:  ``x -> y`` (a copy)  ->  ``x -> map -> y``;  ``x -> tasklet -> y``  ->  the same
in a map of one iteration;  ``np.where``, a library node  ->  a map over its result.
"""

from __future__ import annotations

from dace import SDFG, Memlet, SDFGState, data, dtypes
from dace.libraries.standard.helper import broadcast_indices
from dace.libraries.standard.nodes import MergeLibraryNode
from dace.sdfg import nodes
from dace.subsets import Subset

from distspmd.analysis.accesses import Edge
from distspmd.analysis.iteration_spaces import source
from distspmd.errors import UnsupportedProgram
from distspmd.passes.autodiff.backward import expand_backward, plain_parameters
from distspmd.passes.normalize.callbacks import refuse_callbacks
from distspmd.passes.normalize.control_flow import control_values
from distspmd.passes.normalize.copies import copies_to_maps
from distspmd.passes.normalize.dace_fixes import correct
from distspmd.passes.normalize.inline import inline_nested
from distspmd.passes.normalize.loops_to_maps import map_data_loops
from distspmd.passes.normalize.split_reads import separate_reads
from distspmd.passes.normalize.temporary_sizes import widen
from distspmd.passes.normalize.uninitialised import initialise


def prepare(sdfg: SDFG) -> None:
    """Rewrite copies and tasklets at the top level to maps, in place.

    Raises:
        UnsupportedProgram: a container or a node that has no place in a lowered program.
    """
    plain_parameters(sdfg)
    refuse_callbacks(sdfg)
    correct(sdfg)
    initialise(sdfg)
    inline_nested(sdfg)
    map_data_loops(sdfg)
    widen(sdfg)
    control_values(sdfg)
    for state in sdfg.states():
        for node in list(state.nodes()):
            _check(state, node)
        copies_to_maps(state)
        for node in list(state.nodes()):
            if state.entry_node(node) is not None:
                continue
            if isinstance(node, nodes.Tasklet):
                _wrap(state, node)
            elif isinstance(node, MergeLibraryNode):
                _merge_to_map(state, node)
        separate_reads(state)
    expand_backward(sdfg)


def _check(state: SDFGState, node: nodes.Node) -> None:
    if state.entry_node(node) is not None:
        return
    where = source(state, node) or node
    if isinstance(node, nodes.AccessNode):
        container = node.desc(state.sdfg)
        if not isinstance(container, (data.Array, data.Scalar)) or isinstance(
            container.dtype, dtypes.pyobject
        ):
            raise UnsupportedProgram(
                f"{where}: {node.data!r} is a {type(container).__name__} of {container.dtype}; "
                "only arrays and scalars of numbers can be partitioned."
            )
    elif isinstance(node, nodes.EntryNode) and not isinstance(node, nodes.MapEntry):
        raise UnsupportedProgram(
            f"{where}: the {type(node).__name__} {node} cannot be partitioned."
        )


def _wrap(state: SDFGState, tasklet: nodes.Tasklet) -> None:
    entry, leave = state.add_map(
        tasklet.label, {"__once": "0:1"}, schedule=dtypes.ScheduleType.Sequential
    )
    entry.map.debuginfo = tasklet.debuginfo
    for edge in list(state.in_edges(tasklet)):
        state.remove_edge(edge)
        state.add_memlet_path(edge.src, entry, tasklet, dst_conn=edge.dst_conn, memlet=edge.data)
    if not state.in_edges(tasklet):
        state.add_nedge(entry, tasklet, Memlet())
    for edge in list(state.out_edges(tasklet)):
        state.remove_edge(edge)
        state.add_memlet_path(tasklet, leave, edge.dst, src_conn=edge.src_conn, memlet=edge.data)
    if not state.out_edges(tasklet):
        state.add_nedge(tasklet, leave, Memlet())


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
        element = _element(edge, broadcast_indices(edge.data.subset.size(), extents))
        state.add_memlet_path(edge.src, entry, tasklet, dst_conn=edge.dst_conn, memlet=element)
    element = _element(leaving, list(parameters))
    state.add_memlet_path(tasklet, leave, leaving.dst, src_conn=leaving.src_conn, memlet=element)
    state.remove_node(node)


def _element(edge: Edge, indices: list[str]) -> Memlet:
    """The element at the indices of the window that an edge has."""
    ranges = zip(edge.data.subset.ranges, indices, strict=True)
    subset = ", ".join(f"({begin}) + ({step}) * ({index})" for (begin, _, step), index in ranges)
    return Memlet(data=edge.data.data, subset=subset)
