"""Products of matrices on a device, by cuBLAS: batches of them from the letters of a contraction.

cuBLAS takes matrices that lie by columns, and a batch that moves by one distance in each operand.
A matrix by rows is the transposed one by columns, so a product is that of the transposed factors
in the other order. Letters that the matrices do not have and that move as one are the batch; over
the others the host loops.
"""

from __future__ import annotations

from dataclasses import dataclass

import dace.library
import sympy
from dace import SDFG, SDFGState, dtypes
from dace.libraries import blas
from dace.sdfg import nodes
from dace.transformation.transformation import ExpandTransformation

from distspmd.nodes.blas_products import einsum_of
from distspmd.nodes.contraction import Contraction, windows
from distspmd.nodes.contraction_gemm import BLAS, Gemm, cpp_text, largest, runs_of
from distspmd.nodes.contraction_loops import loop_variables, nest
from distspmd.nodes.contraction_operands import Einsum, Operand
from distspmd.nodes.device_calls import DeviceCall

CUBLAS = "distspmd-cublas"
"""Name of the expansion to calls of cuBLAS, with which precision :func:`call_cublas` says."""

PRECISIONS = {
    "full": "",
    "pedantic": "",
    "tf32": "operands rounded to TF32",
    "bfloat16": "operands rounded to bfloat16",
}
"""How exactly products of single precision are computed, and what to say of it."""

_HEADER = "#include <distspmd/device/products.hpp>\n"


@dataclass(frozen=True)
class _Product:
    """A product of matrices in a contraction, and the letters of a batch of them."""

    gemm: Gemm
    batch: str
    factor: float

    @property
    def einsum(self) -> Einsum:
        return self.gemm.einsum

    @property
    def loops(self) -> str:
        """Letters over which the host loops."""
        return "".join(x for x in self.gemm.loops if x not in self.batch)

    def remark(self, precision: str) -> str:
        letters = ", ".join(self.loops)
        parts = [
            "a product by cuBLAS",
            f"a batch over {', '.join(self.batch)}" if self.batch else "",
            f"a call for each of {letters}" if letters else "",
            PRECISIONS[precision] if self.einsum.result.dtype in _SINGLE else "",
        ]
        return ", ".join(filter(None, parts))

    def code(self, precision: str) -> str:
        einsum, gemm = self.einsum, self.gemm
        index = {x: name for x, name in loop_variables(einsum).items() if x in self.loops}
        (a, b, c), (rows, columns, depth) = gemm.arranged()
        summed = [x for x in self.loops if x in einsum.reduced]
        matrices = [
            f"distspmd::BatchedMatrix{{{gemm.at(one.operand, index)}, "
            f"{str(one.by_columns).lower()}, {one.leading}, {self._apart(one.operand)}}}"
            for one in (b, a, c)  # by columns they are transposed
        ]
        adds = " || ".join(f"{index[x]} > 0" for x in summed) or "false"
        # a sum over no element is zero, as is a product without depth
        empty = " || ".join(f"({cpp_text(einsum.extents[x])}) <= 0" for x in summed)
        deep = cpp_text(depth)
        deep = f"({empty}) ? 0 : ({deep})" if empty else deep
        count = cpp_text(sympy.Mul(*(einsum.extents[x] for x in self.batch)))
        letter = BLAS[einsum.result.dtype]
        call = (
            f"distspmd::multiply(__dace_current_stream, '{letter}', "
            f"distspmd::Precision::{precision}, {cpp_text(columns)}, {cpp_text(rows)}, {deep}, "
            f"{matrices[0]}, {matrices[1]}, {adds}, {matrices[2]}, {count}, {self.factor!r});"
        )
        for x in reversed(summed):
            end = f"std::max<int64_t>(1, {cpp_text(einsum.extents[x])})"
            call = f"for (int64_t {index[x]} = 0; {index[x]} < {end}; ++{index[x]}) {{\n{call}\n}}"
        return nest(einsum, [x for x in self.loops if x not in summed], call)

    def _apart(self, operand: Operand) -> str:
        """Elements between the matrices of the batch."""
        return cpp_text(operand.steps.get(self.batch[-1], sympy.Integer(0))) if self.batch else "0"


_SINGLE = (dtypes.float32, dtypes.complex64)


def _product_of(node: nodes.LibraryNode, state: SDFGState) -> _Product | None:
    if isinstance(node, Contraction):
        if node.expression or node.pick or node.operation != "sum":
            return None
        einsum, factor = windows(node, state), 1.0
    else:
        found = einsum_of(node, state)
        if found is None:
            return None
        einsum, factor = found
    gemm = largest(einsum, _is_worth_a_call) if einsum.writes_once else None
    if gemm is None:
        return None
    kept = [x for x in gemm.loops if x not in einsum.reduced]
    runs = [run for run in runs_of(einsum, kept) if run]
    batch = max(runs, key=lambda run: _elements(einsum, run), default="")
    return _Product(gemm, batch, factor)


def _is_worth_a_call(gemm: Gemm) -> bool:
    """Whether threads that have an element of the result each would be slower."""
    reduced = sympy.Mul(*(gemm.einsum.extents[x] for x in gemm.depth))
    return reduced != 1 and (gemm.size[0] > 1 or not gemm.loops)


def _elements(einsum: Einsum, run: str) -> int:
    extents = [einsum.extents[x] for x in run]
    return int(sympy.Mul(*(n if n.is_Integer else 64 for n in extents)))


def can_call_cublas(node: nodes.LibraryNode, state: SDFGState) -> bool:
    """Whether :func:`call_cublas` can replace a node."""
    return _product_of(node, state) is not None


def call_cublas(node: nodes.LibraryNode, state: SDFGState, precision: str) -> None:
    """Replace a node by calls of cuBLAS, in place.

    Args:
        node: a product that :func:`can_call_cublas`.
        state: that it stands in.
        precision: one of :data:`PRECISIONS`.
    """
    node.implementation = f"{CUBLAS}-{precision}"
    node.expand(state)


def _expansion(precision: str) -> type[ExpandTransformation]:
    """The expansion of a precision; DaCe asks for a class of its own for each."""

    @dace.library.expansion
    class ExpandToCublas(ExpandTransformation):
        """Calls of cuBLAS."""

        environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

        @staticmethod
        def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> nodes.Tasklet:
            """Replace the node by a tasklet."""
            product = _product_of(node, state)
            assert product is not None, "whoever chooses the expansion asks first"
            pointer = dtypes.pointer(product.einsum.result.dtype)
            return DeviceCall(
                node.name,
                product.remark(precision),
                inputs=dict.fromkeys(node.in_connectors, pointer),
                outputs=dict.fromkeys(node.out_connectors, pointer),
                code=product.code(precision),
                language=dtypes.Language.CPP,
                side_effects=True,
                code_global=_HEADER,
            )

    return ExpandToCublas


for _precision in PRECISIONS:
    for _kind in (
        Contraction, blas.MatMul, blas.Gemm, blas.BatchedMatMul, blas.Gemv, blas.Dot
    ):  # fmt: skip
        _kind.register_implementation(f"{CUBLAS}-{_precision}", _expansion(_precision))
