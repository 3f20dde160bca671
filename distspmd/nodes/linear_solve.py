"""Systems of linear equations, ``np.linalg.solve``: as one map, for the analysis, and by LAPACK.

Each column of the right-hand sides is an independent system, so the columns can be split; every
rank then factorises the whole matrix. DaCe's own node takes no vector as a right-hand side.
"""

from __future__ import annotations

from typing import Any

import dace
import dace.library
import numpy as np
import sympy
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.codegen.common import sym2cpp
from dace.data import Data
from dace.frontend.common import op_repository
from dace.frontend.python.common import DaceSyntaxError
from dace.libraries.blas.environments import openblas
from dace.libraries.linalg import Solve
from dace.sdfg import nodes
from dace.transformation.transformation import ExpandTransformation

from distspmd.nodes.blas_products import LOOPS

LAPACK = "distspmd-lapack"
"""Name of the expansion to a call."""

FUNCTIONS: dict[Any, str] = {
    dace.float32: "sgesv_",
    dace.float64: "dgesv_",
    dace.complex64: "cgesv_",
    dace.complex128: "zgesv_",
}
"""What LAPACK must have, by type."""


@op_repository.replaces("numpy.linalg.solve")
def _solve(visitor: Any, sdfg: SDFG, state: SDFGState, a: Any, b: Any) -> str:
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
    node = System("solve")
    node.debuginfo = visitor.current_lineinfo
    state.add_node(node)
    for array, connector, storage in ((a, "_ain", matrix), (b, "_bin", given)):
        whole = Memlet.from_array(array, storage)
        state.add_edge(state.add_read(array), None, node, connector, whole)
    state.add_edge(node, "_bout", state.add_write(name), None, Memlet.from_array(name, result))
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
    if matrix.dtype != given.dtype or matrix.dtype not in FUNCTIONS:
        known = ", ".join(str(np.dtype(dtype.type)) for dtype in FUNCTIONS)
        found = " and ".join(str(np.dtype(x.dtype.type)) for x in (matrix, given))
        raise ValueError(
            f"a matrix and right-hand sides of one type, {known}, but {found} are given. "
            "Convert them with astype."
        )


@dace.library.expansion
class ExpandToLoops(ExpandTransformation):
    """One map over the right-hand sides; what it does with them does not matter here."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> SDFG:
        """Replace the node by a nested SDFG."""
        inner = SDFG("solve_loops")
        sizes = {}
        for connector, memlet in _memlets(node, state).items():
            sizes[connector] = memlet.subset.size()
            inner.add_array(connector, sizes[connector], sdfg.arrays[memlet.data].dtype)
        rows, *columns = sizes["_bout"]
        one = ", ".join([f"0:{rows}", *("__j" for _ in columns)])
        inner.add_state().add_mapped_tasklet(
            "solve",
            {"__j": f"0:{columns[0]}"} if columns else {"__once": "0:1"},
            {
                "__a": Memlet(data="_ain", subset=f"0:{rows}, 0:{rows}"),
                "__b": Memlet(data="_bin", subset=one),
            },
            "// one system",
            {"__x": Memlet(data="_bout", subset=one)},
            language=dtypes.Language.CPP,
            external_edges=True,
        )
        return inner


@dace.library.expansion
class ExpandToCall(ExpandTransformation):
    """A call of ``gesv`` on copies by columns; a singular matrix gives results that are NaN."""

    environments = [openblas.OpenBLAS]  # noqa: RUF012

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> nodes.Tasklet:
        """Replace the node by a tasklet."""
        memlets = _memlets(node, state)
        dtype = sdfg.arrays[memlets["_bout"].data].dtype
        strides = {c: [*sdfg.arrays[m.data].strides, 0] for c, m in memlets.items()}
        rows, columns = [*memlets["_bout"].subset.size(), 1][:2]
        function, pointer = FUNCTIONS[dtype], dtypes.pointer(dtype)
        code = f"""{{
const int __n = {_text(rows)}, __m = {_text(columns)};
std::vector<{dtype.ctype}> __lu(size_t(__n) * __n), __x(size_t(__n) * __m);
for (long __i = 0; __i < __n; ++__i) {{
  for (long __j = 0; __j < __n; ++__j) __lu[__j * __n + __i] = {_at("_ain", strides)};
  for (long __j = 0; __j < __m; ++__j) __x[__j * __n + __i] = {_at("_bin", strides)};
}}
std::vector<int> __pivots(__n);
int __singular = 0;
if (__n > 0 && __m > 0)
  {function}(&__n, &__m, __lu.data(), &__n, __pivots.data(), __x.data(), &__n, &__singular);
if (__singular) std::fill(__x.begin(), __x.end(), std::numeric_limits<double>::quiet_NaN());
for (long __i = 0; __i < __n; ++__i)
  for (long __j = 0; __j < __m; ++__j) {_at("_bout", strides)} = __x[__j * __n + __i];
}}"""
        declared = (
            f"#include <algorithm>\n#include <limits>\n#include <vector>\n"
            f'extern "C" void {function}(const int*, const int*, {dtype.ctype}*, const int*, int*, '
            f"{dtype.ctype}*, const int*, int*);\n"
        )
        return nodes.Tasklet(
            node.label,
            dict.fromkeys(node.in_connectors, pointer),
            dict.fromkeys(node.out_connectors, pointer),
            code,
            language=dtypes.Language.CPP,
            code_global=declared,
        )


def _memlets(node: nodes.LibraryNode, state: SDFGState) -> dict[str, Memlet]:
    found = {edge.dst_conn: edge.data for edge in state.in_edges(node)}
    return found | {edge.src_conn: edge.data for edge in state.out_edges(node)}


def _at(connector: str, strides: dict[str, list[Any]]) -> str:
    along, across = strides[connector][:2]
    return f"{connector}[__i * ({_text(along)}) + __j * ({_text(across)})]"


def _text(number: Any) -> str:
    return str(sym2cpp(sympy.sympify(number)))


@dace.library.node
class System(nodes.LibraryNode):
    """Linear equations: ``_bout`` such that ``_ain @ _bout == _bin``."""

    implementations = {LOOPS: ExpandToLoops, LAPACK: ExpandToCall}  # noqa: RUF012
    default_implementation = LAPACK

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(name, *args, inputs={"_ain", "_bin"}, outputs={"_bout"}, **kwargs)


Solve.register_implementation(LOOPS, ExpandToLoops)
Solve.register_implementation(LAPACK, ExpandToCall)
