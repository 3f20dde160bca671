"""Corrects, or refuses, programs for which DaCe (2.0.0b1) does not compute what NumPy does.

before -> after:  ``np.all`` from False  ->  from True;  ``np.max`` from the smallest finite number
->  from minus infinity;  ``np.argmax``, which passes over a NaN and finds no place among infinities
->  the first place of all;  ``max(a, b)`` of Python, which keeps ``a`` unless ``b`` is larger  ->
``b if b > a else a``;  ``min(a + b, 1)``, which resolves conflicts and is taken for a minimum  ->
``+min(a + b, 1)``;  ``z / 6`` of a complex ``z``, which is no C++  ->  ``z / complex(6)``;
ranges with approximations  ->  exact ones.
"""

from __future__ import annotations

import ast
import copy
import functools
import math
import re
from collections.abc import Callable

import numpy as np
from dace import SDFG, SDFGState, dtypes
from dace.frontend.operations import detect_reduction_type
from dace.libraries.standard import Reduce
from dace.sdfg import nodes

from distspmd.analysis.iteration_spaces import source
from distspmd.dace_compat.exact_ranges import take_exact
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
    take_exact(sdfg)
    for node, state in list(sdfg.all_nodes_recursive()):
        if isinstance(state, SDFGState) and isinstance(node, Reduce):
            _correct_reduction(state, node)
        elif isinstance(state, SDFGState) and isinstance(node, nodes.Tasklet):
            _correct_constants(state, node)
            _correct_choice(node)
    for own in sdfg.all_sdfgs_recursive():
        for state in own.states():
            _correct_places(state)
            for edge in state.edges():
                if edge.data.wcr is not None:
                    edge.data.wcr = _as_it_is(str(edge.data.wcr))


def _correct_reduction(state: SDFGState, node: Reduce) -> None:
    if not _correct_axes(state, node):
        return
    _check_bools(state, node)
    _correct_identity(state, node)
    if node.wcr is not None:
        node.wcr = _as_it_is(str(node.wcr))


def _correct_axes(state: SDFGState, node: Reduce) -> bool:
    """DaCe passes over axes that an operand has not, as one has none that lost a dimension.

    Returns:
        Whether the reduction is still there; one over no axis is a copy.
    """
    (entering,), (leaving,) = state.in_edges(node), state.out_edges(node)
    if node.axes is None or max(node.axes, default=0) < entering.data.subset.dims():
        return True
    node.axes = [axis for axis in node.axes if axis < entering.data.subset.dims()]
    if node.axes:
        return True
    memlet = copy.deepcopy(leaving.data)
    memlet.other_subset = entering.data.subset
    if node.identity is None:
        memlet.wcr = node.wcr
    state.add_edge(entering.src, entering.src_conn, leaving.dst, leaving.dst_conn, memlet)
    state.remove_node(node)
    return False


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


def _correct_identity(state: SDFGState, node: Reduce) -> None:
    """DaCe starts ``np.all`` at False, so that it is never True, and ``np.max`` above infinity."""
    if node.identity is None or node.wcr is None:
        return
    operation = detect_reduction_type(node.wcr)
    if operation == dtypes.ReductionType.Logical_And:
        node.identity = True
        return
    (leaving,) = state.out_edges(node)
    element = state.sdfg.arrays[leaving.data.data].dtype.as_numpy_dtype()
    if operation in _UNBOUNDED and np.issubdtype(element, np.floating):
        end, neutral = _UNBOUNDED[operation]
        if np.asarray(node.identity).astype(element) == getattr(np.finfo(element), end):
            node.identity = neutral


_UNBOUNDED = {
    dtypes.ReductionType.Max: ("min", -math.inf),
    dtypes.ReductionType.Min: ("max", math.inf),
}
"""Of each reduction the end of the finite numbers, where DaCe starts, and where NumPy does."""


def _correct_choice(node: nodes.Tasklet) -> None:
    """``max`` and ``min`` of a tasklet are NumPy's, but these tasklets are Python's own."""
    if not re.fullmatch(r"__(max|min)2", node.label) or len(node.code.code) != 1:
        return
    statement = node.code.code[0]
    call = statement.value if isinstance(statement, ast.Assign) else None
    if isinstance(call, ast.Call) and len(call.args) == 2:
        first, second = map(ast.unparse, call.args)
        sign = ">" if node.label == "__max2" else "<"
        chosen = f"({second}) if ({second}) {sign} ({first}) else ({first})"
        statement.value = ast.parse(chosen, mode="eval").body


_PLACES = {
    ">": re.compile(r"_val_and_idx\(val=max\("),
    "<": re.compile(r"_val_and_idx\(val=min\("),
}
"""How DaCe resolves conflicts for ``np.argmax`` and ``np.argmin``, by what is better."""


def _correct_places(state: SDFGState) -> None:
    """The first place of a NaN, or else of the extreme; DaCe begins at the place -1."""
    for edge in state.edges():
        resolution = str(edge.data.wcr or "")
        for sign, known in _PLACES.items():
            if known.search(resolution):
                equal = "(x.val == y.val or (x.val != x.val and y.val != y.val))"
                better = f"(y.val {sign} x.val or (y.val != y.val and x.val == x.val))"
                first = f"(y.idx < x.idx and {equal})"
                edge.data.wcr = f"lambda x, y: y if x.idx < 0 or {better} or {first} else x"


@functools.cache
def _as_it_is(resolution: str) -> str:
    """A conflict resolution so that DaCe does not take it for a simpler one.

    DaCe looks at the outermost operation alone: ``min(a + b, 1)`` is a minimum to it, and all that
    has an ``and`` outside is one.
    """
    tree = ast.parse(resolution.strip(), mode="eval").body
    if not isinstance(tree, ast.Lambda):
        return resolution
    body, names = tree.body, sorted(argument.arg for argument in tree.args.args)
    if isinstance(body, ast.Call) and isinstance(body.func, ast.Name):
        operands = body.args if body.func.id in ("max", "min") else None
    elif isinstance(body, ast.BoolOp):
        operands = body.values
    elif isinstance(body, ast.Compare):
        operands = [body.left, *body.comparators]
    else:
        operands = None
    if operands is None or sorted(map(ast.unparse, operands)) == names:
        return resolution
    if isinstance(body, ast.BoolOp):
        tree.body = functools.reduce(_chosen(body.op), reversed(body.values))
    else:
        tree.body = ast.UnaryOp(ast.UAdd(), body)
    return ast.unparse(ast.fix_missing_locations(tree))


def _chosen(operation: ast.boolop) -> Callable[[ast.expr, ast.expr], ast.expr]:
    """``x and y`` as ``y if x else x``, and ``x or y`` as ``x if x else y``."""
    if isinstance(operation, ast.And):
        return lambda rest, value: ast.IfExp(value, rest, value)
    return lambda rest, value: ast.IfExp(value, value, rest)


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
