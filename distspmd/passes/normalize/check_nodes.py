"""Refuses containers and nodes that have no place in a lowered program, with the source line."""

from __future__ import annotations

from dace import SDFG, SDFGState, data, dtypes
from dace.sdfg import nodes

from distspmd.analysis.iteration_spaces import source
from distspmd.dace_compat.names import free_names
from distspmd.errors import UnsupportedProgram


def check_nodes(sdfg: SDFG) -> None:
    """Look at all nodes outside of maps, and at the names that code reads.

    Raises:
        UnsupportedProgram: a container or a node that has no place in a lowered program; code that
            reads what is neither an input nor a symbol.
    """
    for name in sorted(free_names(sdfg) - sdfg.symbols.keys()):
        _refuse_unknown(sdfg, name)
    for state in sdfg.states():
        for node in state.nodes():
            if state.entry_node(node) is None:
                _check(state, node)


def _refuse_unknown(sdfg: SDFG, name: str) -> None:
    """Refuse a name that code reads without a memlet: DaCe's parser drops the one of ``x - x``."""
    where = name
    for node, state in sdfg.all_nodes_recursive():
        if isinstance(node, nodes.Tasklet) and name in map(str, node.free_symbols):
            assert isinstance(state, SDFGState)
            where = str(source(state, node) or node)
            break
    raise UnsupportedProgram(
        f"{where}: {name!r} is read, which is neither a symbol of the SDFG nor an input of "
        "the code. Add a memlet, or the symbol."
    )


def _check(state: SDFGState, node: nodes.Node) -> None:
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
