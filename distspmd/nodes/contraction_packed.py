"""Products of packed blocks: contractions in which rows, columns or depth are several indices.

BLAS walks a matrix by one stride for each of its dimensions. The windows of a convolution, or heads
that lie apart, would be a call for each index that does not fit. ``kernels/packed_product.hpp``
copies blocks of both operands into the order in which it multiplies them, from any strides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import sympy
from dace import dtypes

from distspmd.nodes.contraction_gemm import Gemm, cpp_text
from distspmd.nodes.contraction_operands import Einsum, Operand
from distspmd.plans.heuristics import HEURISTICS
from distspmd.runtime.engine.compile_runtime import INCLUDE

HEADER = f'#include "{INCLUDE / "distspmd" / "kernels" / "packed_product.hpp"}"\n'
"""What code of :meth:`PackedProduct.code` needs."""

_TYPES = (dtypes.float32, dtypes.float64)
_UNKNOWN = 64
"""What an extent is taken for that only the run knows."""
_VECTOR = 16
"""Elements of a vector, about."""


@dataclass(frozen=True)
class PackedProduct:
    """The letters of a product: of its rows, columns, depth, and of the products of a batch."""

    einsum: Einsum
    rows: str
    columns: str
    depth: str
    batch: str

    @classmethod
    def of(cls, einsum: Einsum) -> PackedProduct | None:
        """The product that a contraction is; None if it is none of floating-point numbers."""
        types = {operand.dtype for operand in (*einsum.operands, einsum.result)}
        if len(einsum.operands) != 2 or len(types) > 1 or einsum.result.dtype not in _TYPES:
            return None
        if not einsum.writes_once:
            return None
        a, b = (set(operand.letters) for operand in einsum.operands)
        kept = [x for x in einsum.letters if x not in einsum.reduced]
        batch = "".join(x for x in kept if x in a and x in b)
        rows = "".join(x for x in kept if x in a - b)
        columns = "".join(x for x in kept if x not in a)
        return cls(einsum, rows, columns, einsum.reduced, batch)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Rows, columns and depth, as far as they are known."""
        rows, columns, depth = (
            sympy.Mul(*(self._number(x) for x in run))
            for run in (self.rows, self.columns, self.depth)
        )
        return int(rows), int(columns), int(depth)

    def _number(self, letter: str) -> int:
        extent = self.einsum.extents[letter]
        return int(extent) if extent.is_Integer else _UNKNOWN

    def is_worth_packing(self, gemm: Gemm | None) -> bool:
        """Whether it is faster than calls of BLAS for this part of it, or than loops without one.

        Blocks are copied once for all rows and columns, of which there must be some. A call
        of BLAS that takes all of rows, columns and depth copies the same blocks.
        """
        rows, columns, depth = self.sizes
        few = min(rows, columns) < HEURISTICS.packed_rows
        if few or rows * columns * depth < HEURISTICS.packed_products:
            return False
        inside = (x for x in gemm.loops if x not in self.batch) if gemm else iter("?")
        return gemm is None or any(self._number(x) > 1 for x in inside)

    @property
    def copied_nanoseconds(self) -> float:
        """What it takes to pack both operands and to write the result, about.

        Rows of one operand are read along the depth, those of the other across it: a vector
        at a time where its elements are neighbours, else a vector for each element.
        """
        a, b, c = *self.einsum.operands, self.einsum.result
        rows, columns, depth = self.sizes
        one_way = (a, self.depth, b, self.columns, self.columns)
        other_way = (b, self.depth, a, self.rows, self.rows)
        least = math.inf
        for along, depth_letters, across, letters, written in (one_way, other_way):
            sizes = (
                (rows * depth, columns * depth) if along is a else (columns * depth, rows * depth)
            )
            taken = sizes[0] * self._each(along, depth_letters)
            taken += sizes[1] * self._each(across, letters)
            taken += rows * columns * self._each(c, written)
            least = min(least, taken)
        return least * math.prod(self._number(x) for x in self.batch)

    def _each(self, operand: Operand, letters: str) -> float:
        """Nanoseconds for an element of an operand, of which letters are wanted as neighbours."""
        runs = [self._number(x) for x in letters if operand.steps.get(x, 0) in (1, 2)]
        near = HEURISTICS.near_element / min(max(runs, default=1), _VECTOR)
        if runs and max(runs) > 1:
            return near
        others = [self._number(x) for x in operand.letters if operand.steps[x] in (1, 2)]
        turned = max(others, default=1) > 1
        return HEURISTICS.near_element if turned else HEURISTICS.far_element

    def code(self) -> str:
        """The call, in C++."""
        a, b, c = *self.einsum.operands, self.einsum.result
        runs = (
            self._loops(self.rows, a, c),
            self._loops(self.columns, b, c),
            self._loops(self.depth, a, b),
            self._loops(self.batch, a, b, c),
        )
        arguments = ", ".join((*runs, a.connector, b.connector, c.connector))
        return f"distspmd::packed::multiply<{c.dtype.ctype}>({arguments});"

    def _loops(self, letters: str, *operands: Operand) -> str:
        """Extents of letters, and how far operands move with each."""
        zero = sympy.Integer(0)
        found = []
        for x in letters:
            extent = self.einsum.extents[x]
            if extent == 1:
                continue
            numbers = (extent, *(operand.steps.get(x, zero) for operand in operands))
            found.append(f"{{{', '.join(map(_text, numbers))}}}")
        return f"{{{', '.join(found)}}}"


def _text(number: sympy.Expr) -> str:
    return str(number) if number.is_Integer else f"int64_t({cpp_text(number)})"
