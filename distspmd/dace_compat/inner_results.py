"""Containers of nested SDFGs that DaCe would take for results of theirs.

DaCe (2.0.0b1) gives the nested SDFG of a library node the containers around it, under their names,
and then refuses a ``__return_1`` in it that has no ``__return_0`` beside it.
"""

from __future__ import annotations

from dace import SDFG, SDFGState
from dace.sdfg import nodes


def rename_inner_results(program: SDFG) -> None:
    """Give what is called ``__return...`` in nested SDFGs other names, in place."""
    for node, state in list(program.all_nodes_recursive()):
        if isinstance(node, nodes.NestedSDFG) and isinstance(state, SDFGState):
            for name in [each for each in node.sdfg.arrays if each.startswith("__return")]:
                new = node.sdfg._find_new_name(f"inner{name}")
                node.sdfg.replace(name, new)
                _rename_connector(state, node, name, new)


def _rename_connector(state: SDFGState, node: nodes.NestedSDFG, name: str, new: str) -> None:
    for own in ("in_connectors", "out_connectors"):
        kinds = getattr(node, own)
        setattr(node, own, {new if each == name else each: kind for each, kind in kinds.items()})
    for edge in state.in_edges(node):
        if edge.dst_conn == name:
            edge.dst_conn = new
    for edge in state.out_edges(node):
        if edge.src_conn == name:
            edge.src_conn = new
