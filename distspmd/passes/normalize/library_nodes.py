"""Library nodes that are not ours become maps, by their pure expansion in the windows they have.

before -> after:  ``x -> transpose -> y``  ->  ``x -> map -> y``;
``x, y -> tensordot -> z``  ->  ``x, y -> contraction -> z``

The expansions of DaCe (2.0.0b1) run over the whole containers, whatever the memlets say: a rank
that has a tile, or nothing, would run over the whole array. Products, reductions and contractions
have expansions of ours, which keep to their windows; they stay as they are. So do nodes of which
the user chose the implementation: they get containers of the sizes of their windows
(:mod:`distspmd.codegen.node_windows`).
"""

from __future__ import annotations

import string

from dace import SDFG, Memlet, SDFGState, dtypes
from dace.libraries import blas, standard
from dace.libraries.linalg import TensorDot, Transpose
from dace.libraries.standard.nodes import MergeLibraryNode
from dace.libraries.standard.nodes.copy.node import CopyLibraryNode
from dace.sdfg import nodes

from distspmd.analysis.declared_accesses import PURE, implementations, runs_as_it_is
from distspmd.analysis.iteration_spaces import main_map, pure_expansion, source, window_name
from distspmd.dace_compat.names import free_names
from distspmd.nodes.contraction import Contraction
from distspmd.nodes.host_call import HostCall
from distspmd.nodes.lapack import Lapack
from distspmd.nodes.line_in_parts import LineInParts
from distspmd.nodes.scatter import Scatter
from distspmd.nodes.tell import Told
from distspmd.passes.normalize.single_operations import element_of_window

WINDOWED = (
    *(blas.MatMul, blas.Gemm, blas.BatchedMatMul, blas.Gemv, blas.Dot, standard.Reduce),
    *(Contraction, HostCall, Lapack, Scatter, LineInParts, Told, MergeLibraryNode),
)
"""Library nodes that compute, from windows of their operands, that window of their result."""


def expand_library_nodes(sdfg: SDFG) -> None:
    """Expand them, in place, in all nested SDFGs; nodes without a pure expansion stay.

    Raises:
        UnsupportedProgram: a pure expansion that consists of nodes without one.
    """
    for each in list(sdfg.all_sdfgs_recursive()):
        found = [
            (state, node)
            for state in each.states()
            for node in state.nodes()
            if isinstance(node, nodes.LibraryNode)
        ]
        contractions = [node for _, node in found if isinstance(node, Contraction)]
        taken = {*each.symbols, *free_names(each)} if contractions else set()
        for contraction in contractions:
            contraction.avoid(taken)
        for state, node in found:
            _replace(state, node)


def _replace(state: SDFGState, node: nodes.LibraryNode) -> None:
    if isinstance(node, CopyLibraryNode) and state.entry_node(node) is None:
        _copy(state, node)
    elif runs_as_it_is(node):
        return
    elif isinstance(node, TensorDot):
        _contract(state, node)
    elif isinstance(node, Transpose) and _is_matrix(state, node):
        _turn(state, node)
    elif _is_foreign(state, node):
        _expand(state, node)


def _is_foreign(state: SDFGState, node: nodes.LibraryNode) -> bool:
    is_outside, known = state.entry_node(node) is None, implementations(node)
    return is_outside and not isinstance(node, WINDOWED) and bool({*PURE} & {*known})


def _copy(state: SDFGState, node: CopyLibraryNode) -> None:
    """An edge between what is read and what is written, as DaCe has it before it makes nodes."""
    (entering,), (leaving,) = state.in_edges(node), state.out_edges(node)
    if entering.data.is_empty() or leaving.data.is_empty():
        return
    memlet = Memlet(
        data=entering.data.data, subset=entering.data.subset, other_subset=leaving.data.subset
    )
    state.add_edge(entering.src, entering.src_conn, leaving.dst, leaving.dst_conn, memlet)
    state.remove_node(node)


def _contract(state: SDFGState, node: TensorDot) -> None:
    """The same as a contraction, which calls BLAS where it can."""
    letters = iter(string.ascii_lowercase)
    (left,) = (e for e in state.in_edges(node) if e.dst_conn == "_left_tensor")
    (right,) = (e for e in state.in_edges(node) if e.dst_conn == "_right_tensor")
    (leaving,) = state.out_edges(node)
    one = [next(letters) for _ in range(left.data.subset.dims())]
    other = [next(letters) for _ in range(right.data.subset.dims())]
    for mine, its in zip(node.left_axes, node.right_axes, strict=True):
        other[its] = one[mine]
    kept = [x for x in (*one, *other) if not (x in one and x in other)]
    order = node.permutation or range(len(kept))
    result = "".join(kept[d] for d in order)
    contraction = Contraction(node.label, f"{''.join(one)},{''.join(other)}->{result}")
    contraction.debuginfo = _line(state, node)
    state.add_node(contraction)
    for n, edge in enumerate((left, right)):
        state.add_edge(edge.src, edge.src_conn, contraction, f"_in{n}", edge.data)
    state.add_edge(contraction, "_out", leaving.dst, leaving.dst_conn, leaving.data)
    state.remove_node(node)


def _is_matrix(state: SDFGState, node: Transpose) -> bool:
    (entering,), (leaving,) = state.in_edges(node), state.out_edges(node)
    return bool(entering.data.subset.dims() == leaving.data.subset.dims() == 2)


def _turn(state: SDFGState, node: Transpose) -> None:
    """A map over a matrix; the expansion of DaCe refuses one of a single row or column."""
    (entering,), (leaving,) = state.in_edges(node), state.out_edges(node)
    rows, columns = entering.data.subset.size()
    names = ["__i0", "__i1"]
    entry, leave = state.add_map(node.label, {"__i0": f"0:{rows}", "__i1": f"0:{columns}"})
    entry.map.debuginfo = line = _line(state, node)
    tasklet = state.add_tasklet(node.label, {"_inp"}, {"_out"}, "_out = _inp", debuginfo=line)
    element = element_of_window(entering, names)
    state.add_memlet_path(entering.src, entry, tasklet, dst_conn="_inp", memlet=element)
    element = element_of_window(leaving, names[::-1])
    state.add_memlet_path(tasklet, leave, leaving.dst, src_conn="_out", memlet=element)
    state.remove_node(node)


def _expand(state: SDFGState, node: nodes.LibraryNode) -> None:
    inside, line = pure_expansion(state, node), _line(state, node)
    inside.name = node.label
    _, entry = main_map(inside)
    entry.map.label = node.label
    for found, _ in inside.all_nodes_recursive():
        if isinstance(found, (nodes.Tasklet, nodes.NestedSDFG)):
            found.debuginfo = line
        elif isinstance(found, (nodes.MapEntry, nodes.MapExit)):
            found.map.debuginfo = line
    incoming = [e for e in state.in_edges(node) if not e.data.is_empty()]
    leaving = [e for e in state.out_edges(node) if not e.data.is_empty()]
    whole = state.add_nested_sdfg(
        inside,
        {window_name(e.dst_conn or "_in") for e in incoming},
        {window_name(e.src_conn or "_out") for e in leaving},
        symbol_mapping={str(s): s for s in inside.free_symbols},
        debuginfo=line,
    )
    for edge in incoming:
        state.add_edge(
            edge.src, edge.src_conn, whole, window_name(edge.dst_conn or "_in"), edge.data
        )
    for edge in leaving:
        name = window_name(edge.src_conn or "_out")
        state.add_edge(whole, name, edge.dst, edge.dst_conn, edge.data)
    for edge in state.in_edges(node):
        if edge.data.is_empty():
            state.add_nedge(edge.src, whole, Memlet())
    for edge in state.out_edges(node):
        if edge.data.is_empty():
            state.add_nedge(whole, edge.dst, Memlet())
    state.remove_node(node)


def _line(state: SDFGState, node: nodes.LibraryNode) -> dtypes.DebugInfo | None:
    """The user's line, which the neighbours of a node may have instead of the node."""
    found = source(state, node)
    return dtypes.DebugInfo(found.line, 0, found.line, 0, found.file) if found else None
