"""Systems of linear equations, ``np.linalg.solve``: as one map, for the analysis, and by LAPACK.

Each column of the right-hand sides is an independent system, so the columns can be split; every
rank then factorises the whole matrix. DaCe's own node takes no vector as a right-hand side.
"""

from __future__ import annotations

from typing import Any

import dace
import dace.library
import sympy
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.codegen.common import sym2cpp
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
