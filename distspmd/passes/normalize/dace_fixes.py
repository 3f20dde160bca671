"""Corrects, or refuses, programs for which DaCe (2.0.0b1) does not compute what NumPy does.

before -> after:  ``np.all`` from False  ->  from True;  ``z / 6`` of a complex ``z``, which is no
C++  ->  ``z / complex(6)``.
"""

from __future__ import annotations

import ast

from dace import SDFG, SDFGState, dtypes
from dace.frontend.operations import detect_reduction_type
from dace.libraries.standard import Reduce
from dace.sdfg import nodes

from distspmd.analysis.iteration_spaces import source
from distspmd.errors import UnsupportedProgram

_COMPLEX = (dtypes.complex64, dtypes.complex128)
_COUNTS = {
    dtypes.ReductionType.Sum: "np.sum",
    dtypes.ReductionType.Product: "np.multiply.reduce",
}


def correct(sdfg: SDFG) -> None:
    """Correct all nodes of an SDFG, in place.

    Raises:
        UnsupportedProgram: a sum or a product of bools, which DaCe gives as a bool.
    """
    for node, state in sdfg.all_nodes_recursive():
        if not isinstance(state, SDFGState):
            continue
        if isinstance(node, Reduce):
            _check_bools(state, node)
            _correct_identity(node)
        elif isinstance(node, nodes.Tasklet):
            _correct_constants(state, node)


def _check_bools(state: SDFGState, node: Reduce) -> None:
    """NumPy counts where it adds bools; a bool at DaCe is True or False."""
    operation = node.wcr and detect_reduction_type(node.wcr)
    types = {state.sdfg.arrays[e.data.data].dtype for e in state.all_edges(node)}
    if operation in _COUNTS and types == {dtypes.bool}:
        raise UnsupportedProgram(
            f"{source(state, node) or node}: a reduction of bools by {_COUNTS[operation]} gives a "
            "bool at DaCe, where NumPy counts. Convert them first: "
            f"{_COUNTS[operation]}(x.astype(np.int64), axis=...), or to np.float64 for a mean."
        )


def _correct_identity(node: Reduce) -> None:
    """DaCe starts ``np.all`` at False, so that it is never True."""
    if (
        node.identity is not None
        and node.wcr is not None
        and detect_reduction_type(node.wcr) == dtypes.ReductionType.Logical_And
    ):
        node.identity = True


class _ComplexConstants(ast.NodeTransformer):
    """Converts an integer beside a complex name to its type: C++ has no such operator for both."""

    def __init__(self, types: dict[str, dtypes.typeclass]) -> None:
        self.types = types

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Convert the operands that are integers."""
        self.generic_visit(node)
        sides = (node.left, node.right)
        found = [self.types[s.id] for s in sides if isinstance(s, ast.Name) and s.id in self.types]
        if found and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
            node.left, node.right = (_converted(side, found[0]) for side in sides)
        return node


def _converted(node: ast.expr, dtype: dtypes.typeclass) -> ast.expr:
    if not isinstance(node, ast.Constant) or type(node.value) is not int:
        return node
    expression = ast.parse(f"dace.{dtype.to_string()}({node.value})", mode="eval").body
    return ast.copy_location(expression, node)


def _correct_constants(state: SDFGState, node: nodes.Tasklet) -> None:
    if node.code.language != dtypes.Language.Python:
        return
    read = {
        edge.dst_conn: state.sdfg.arrays[edge.data.data].dtype
        for edge in state.in_edges(node)
        if not edge.data.is_empty()
    }
    types = {name: dtype for name, dtype in read.items() if dtype in _COMPLEX}
    if types:
        visitor = _ComplexConstants(types)
        node.code.code = [
            ast.fix_missing_locations(visitor.visit(statement)) for statement in node.code.code
        ]
