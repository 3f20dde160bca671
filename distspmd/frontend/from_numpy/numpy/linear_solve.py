"""``np.linalg.solve`` of a NumPy program; DaCe's own takes no vector for a right-hand side."""

from __future__ import annotations

from typing import Any

import numpy as np
from dace import SDFG, Memlet, SDFGState
from dace.data import Data
from dace.frontend.python.common import DaceSyntaxError

from distspmd.nodes.lapack import TYPES, Lapack


def add_linear_solve(visitor: Any, sdfg: SDFG, state: SDFGState, a: Any, b: Any) -> str:
    """Add a node to a state, between the two arrays and a new one; the name of that.

    Raises:
        DaceSyntaxError: an operand has another shape, or a type that LAPACK does not have.
    """
    try:
        matrix, given = _operand(sdfg, a), _operand(sdfg, b)
        _check(matrix, given)
    except ValueError as problem:
        text = f"np.linalg.solve takes {problem}"
        raise DaceSyntaxError(visitor, visitor.current_ast_stack[-1], text) from None
    name, result = visitor.add_temp_transient(given.shape, given.dtype)
    node = Lapack("solve", "solve", "nn,nm->nm" if len(given.shape) == 2 else "nn,n->n")
    node.debuginfo = visitor.current_lineinfo
    state.add_node(node)
    for array, connector, storage in ((a, "_in0", matrix), (b, "_in1", given)):
        whole = Memlet.from_array(array, storage)
        state.add_edge(state.add_read(array), None, node, connector, whole)
    state.add_edge(node, "_out0", state.add_write(name), None, Memlet.from_array(name, result))
    return str(name)


def _operand(sdfg: SDFG, name: Any) -> Data:
    if not isinstance(name, str) or name not in sdfg.arrays:
        raise ValueError(f"two arrays, but {name!r} is given.")
    found: Data = sdfg.arrays[name]
    return found


def _check(matrix: Data, given: Data) -> None:
    """Compare the shapes and the types; the error continues a sentence."""
    shapes = " and ".join(str(list(map(str, x.shape))) for x in (matrix, given))
    square = len(matrix.shape) == 2 and matrix.shape[0] == matrix.shape[1]
    if not square or len(given.shape) not in (1, 2) or given.shape[0] != matrix.shape[0]:
        raise ValueError(
            "a square matrix, and right-hand sides of as many rows, but the shapes "
            f"{shapes} are given. Call it for each matrix of a stack."
        )
    if matrix.dtype != given.dtype or matrix.dtype not in TYPES:
        known = ", ".join(str(np.dtype(dtype.type)) for dtype in TYPES)
        found = " and ".join(str(np.dtype(x.dtype.type)) for x in (matrix, given))
        raise ValueError(
            f"a matrix and right-hand sides of one type, {known}, but {found} are given. "
            "Convert them with astype."
        )
