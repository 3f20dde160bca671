"""Bring all top-level work into the form of maps and library nodes, or say what cannot be.

before -> after:  ``x -> y`` (a copy)  ->  ``x -> map -> y``;  ``x -> tasklet -> y``  ->  the same
in a map of one iteration.
"""

from __future__ import annotations

from dace import SDFG, Memlet, SDFGState, data, dtypes
from dace.frontend.operations import detect_reduction_type
from dace.libraries.standard import Reduce
from dace.sdfg import nodes

from distspmd.accesses import control_reads
from distspmd.errors import UnsupportedProgram
from distspmd.passes.copies import copies_to_maps, views_to_arrays
from distspmd.spaces import source


def prepare(sdfg: SDFG) -> None:
    """Rewrite copies and tasklets at the top level to maps, in place.

    Raises:
        UnsupportedProgram: a container or a node that has no place in a lowered program, or control
            flow that reads containers.
    """
    views_to_arrays(sdfg)
    for state in sdfg.states():
        for node in list(state.nodes()):
            _check(state, node)
            _correct_identity(node)
        copies_to_maps(state)
        for node in list(state.nodes()):
            if isinstance(node, nodes.Tasklet) and state.entry_node(node) is None:
                _wrap(state, node)
    _check_control_flow(sdfg)


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
    elif isinstance(node, nodes.NestedSDFG):
        raise UnsupportedProgram(
            f"{where}: the nested SDFG {node.label!r} cannot be partitioned as it stands. Run "
            "sdfg.simplify() before lower, which inlines it where that is possible."
        )
    elif isinstance(node, nodes.Tasklet) and node.has_side_effects(state.sdfg):
        raise UnsupportedProgram(
            f"{where}: {node.label!r} calls back into Python or has other side effects, "
            "which cannot be partitioned. Take the call out of the program."
        )
    elif isinstance(node, nodes.EntryNode) and not isinstance(node, nodes.MapEntry):
        raise UnsupportedProgram(
            f"{where}: the {type(node).__name__} {node} cannot be partitioned."
        )


def _correct_identity(node: nodes.Node) -> None:
    """DaCe starts ``np.all`` at False (2.0.0b1), so that it is never True."""
    if (
        isinstance(node, Reduce)
        and node.identity is not None
        and node.wcr is not None
        and detect_reduction_type(node.wcr) == dtypes.ReductionType.Logical_And
    ):
        node.identity = True


def _check_control_flow(sdfg: SDFG) -> None:
    for name in sorted(sdfg.arrays):
        if any(True for _ in control_reads(sdfg, name)):
            raise UnsupportedProgram(
                f"{_first_line(sdfg, name)}the values of {name!r} decide what runs or what is "
                "indexed: a branch, a loop or an index outside of a map that depends on data "
                "cannot be partitioned yet. Take it out of the program, to Python, or into a map."
            )


def _first_line(sdfg: SDFG, name: str) -> str:
    """Where the program first has the container, if DaCe kept it."""
    nodes_of_it = [(s, n) for s in sdfg.states() for n in s.data_nodes() if n.data == name]
    everything = [(s, n) for s in sdfg.states() for n in s.data_nodes()]
    lines = [source(state, node) for state, node in nodes_of_it or everything]
    found = min((line for line in lines if line), key=lambda line: line.line, default=None)
    return f"{found}: " if found else ""


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
