"""Nested SDFGs at the top level are inlined, so that their maps are iteration spaces.

before -> after:  ``x -> [f] -> y``  ->  the states of ``f``, in place of the state that had it.
DaCe's simplify leaves a nested SDFG with views around it; it is inlined once these are arrays.
"""

from __future__ import annotations

from dace import SDFG, SDFGState
from dace.sdfg import nodes
from dace.transformation.interstate import InlineMultistateSDFG

from distspmd.analysis.iteration_spaces import source
from distspmd.dace_compat.settings import quiet
from distspmd.errors import UnsupportedProgram
from distspmd.passes.normalize.copies import views_to_arrays
from distspmd.passes.tiles import describe_inside


def inline_nested(sdfg: SDFG) -> None:
    """Inline all nested SDFGs outside of maps, in place; views become arrays on the way.

    Raises:
        UnsupportedProgram: one that cannot be inlined.
    """
    views_to_arrays(sdfg)
    while found := _first(sdfg):
        _inline(sdfg, *found)
        views_to_arrays(sdfg)


def _first(sdfg: SDFG) -> tuple[SDFGState, nodes.NestedSDFG] | None:
    for state in sdfg.states():
        for node in state.nodes():
            if isinstance(node, nodes.NestedSDFG) and state.entry_node(node) is None:
                return state, node
    return None


def _inline(sdfg: SDFG, state: SDFGState, node: nodes.NestedSDFG) -> None:
    for edge, connector in [
        *((edge, edge.dst_conn) for edge in state.in_edges(node)),
        *((edge, edge.src_conn) for edge in state.out_edges(node)),
    ]:
        outer = sdfg.arrays.get(edge.data.data)
        inner = node.sdfg.arrays.get(connector)
        if outer and inner and outer.shape == inner.shape and outer.strides != inner.strides:
            describe_inside(sdfg, outer, node, connector)
    inlining = InlineMultistateSDFG()
    inlining.setup_match(
        sdfg,
        state.parent_graph.cfg_id,
        state.block_id,
        {InlineMultistateSDFG.nested_sdfg: state.node_id(node)},  # type: ignore[dict-item]
        0,
    )
    where = source(state, node) or node
    with quiet():
        if not inlining.can_be_applied(state, 0, sdfg):
            raise UnsupportedProgram(
                f"{where}: the function {node.label!r} cannot be inlined, because its arguments "
                "are parts of arrays in another shape. Pass whole arrays, or copy the part before."
            )
        inlining.apply(state, sdfg)
