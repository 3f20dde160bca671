"""The product of matrices in a contraction: which letters are its rows, columns and depth."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sympy
from dace import dtypes
from dace.codegen.common import sym2cpp

from distspmd.nodes.contraction_operands import Einsum, Operand
from distspmd.plans.heuristics import HEURISTICS

BLAS: dict[object, str] = {
    dtypes.float32: "s",
    dtypes.float64: "d",
    dtypes.complex64: "c",
    dtypes.complex128: "z",
}
"""Types that BLAS has, with the letter of its functions."""
LANES = 8
"""Neighbours that vectors are worth."""


def is_worth_a_call(gemm: Gemm) -> bool:
    """Whether loops would be slower than a call of the host's BLAS.

    A product of a matrix and a vector is worth one if it is all of a large contraction. Loops in
    which lanes share neighbours are faster for longer.
    """
    products = HEURISTICS.lane_products if gemm.has_lanes else HEURISTICS.gemm_products
    return gemm.size >= (HEURISTICS.gemm_dimensions, products) or gemm.is_large_gemv


def largest(einsum: Einsum, worth: Callable[[Gemm], bool] = is_worth_a_call) -> Gemm | None:
    """The largest product of matrices in a contraction that BLAS can walk, if one is worth it."""
    types = {operand.dtype for operand in (*einsum.operands, einsum.result)}
    if len(einsum.operands) != 2 or len(types) > 1 or einsum.result.dtype not in BLAS:
        return None
    found = [gemm for gemm in _gemms(einsum) if worth(gemm)]
    largest_first = sorted(found, key=lambda gemm: gemm.size, reverse=True)
    return next((gemm for gemm in largest_first if gemm.fits), None)


def _gemms(einsum: Einsum) -> Iterator[Gemm]:
    a, b = (set(operand.letters) for operand in einsum.operands)
    own = set(einsum.result.letters)
    rows = [x for x in einsum.letters if x in a - b and x in own]
    columns = [x for x in einsum.letters if x in b - a and x in own]
    depth = [x for x in einsum.letters if x in a & b and x not in own]
    for m, n, k in itertools.product(*(runs_of(einsum, g) for g in (rows, columns, depth))):
        yield Gemm(einsum, m, n, k)


def runs_of(einsum: Einsum, letters: Sequence[str]) -> list[str]:
    """Letters that move as one index in every operand, outermost first; also none."""
    operands = (*einsum.operands, einsum.result)
    runs = [""]
    orders = ["".join(x for x in operand.letters if x in letters) for operand in operands]
    for order in dict.fromkeys(orders):
        for first in range(len(order)):
            for last in range(first, len(order)):
                run = order[first : last + 1]
                if all(
                    operand.steps.get(above, 0)
                    == operand.steps.get(below, 0) * einsum.extents[below]
                    for above, below in itertools.pairwise(run)
                    for operand in operands
                ):
                    runs.append(run)
    return list(dict.fromkeys(runs))


@dataclass(frozen=True)
class Matrix:
    """A matrix as it is stored: by columns or by rows, and how far apart these are."""

    operand: Operand
    by_columns: bool
    leading: str


@dataclass(frozen=True)
class Gemm:
    """A product of matrices in a contraction: the letters of its rows, columns and depth."""

    einsum: Einsum
    rows: str
    columns: str
    depth: str

    @property
    def size(self) -> tuple[int, int]:
        """What speaks for it: dimensions that it has, and work, as far as that is known."""
        extents = [self._extent(run) for run in (self.rows, self.columns, self.depth)]
        known = [int(n) if n.is_Integer else 64 for n in extents]
        return sum(n > 1 for n in known), known[0] * known[1] * known[2]

    @property
    def has_lanes(self) -> bool:
        """Whether loops have vectors of neighbours, which stay in registers while they add up."""
        einsum = self.einsum
        extent = einsum.extents.get(einsum.neighbours, sympy.Integer(0))
        is_real = einsum.result.dtype in (dtypes.float32, dtypes.float64)
        few = HEURISTICS.register_neighbours
        return bool(is_real and extent.is_Integer and LANES <= extent <= few)

    @property
    def is_large_gemv(self) -> bool:
        """Whether a whole contraction is one large product of a matrix and a vector."""
        if self.loops or not self.depth or bool(self.rows) == bool(self.columns):
            return False
        return self.size >= (2, HEURISTICS.gemv_products)

    @property
    def fits(self) -> bool:
        """Whether one dimension of each matrix is contiguous, and no other overlaps with it."""
        return all(self._order(operand, *runs) is not None for operand, runs in self._matrices())

    @property
    def loops(self) -> str:
        """Letters that are left for loops around the calls."""
        taken = self.rows + self.columns + self.depth
        return "".join(x for x in self.einsum.letters if x not in taken)

    def call(self, alpha: str, beta: str, index: dict[str, str]) -> str:
        """The call at an index of each letter that loops run over."""
        (a, b, c), sizes = self.arranged()
        arguments = ["CblasTrans" if one.by_columns else "CblasNoTrans" for one in (a, b)]
        arguments += map(cpp_text, sizes)
        arguments += [alpha, self.at(a.operand, index), a.leading]
        arguments += [self.at(b.operand, index), b.leading]
        arguments += [beta, self.at(c.operand, index), c.leading]
        return f"distspmd::gemm<{c.operand.dtype.ctype}>({', '.join(arguments)});"

    def arranged(self) -> tuple[tuple[Matrix, Matrix, Matrix], tuple[sympy.Expr, ...]]:
        """Both factors and the result, whose rows have neighbours in memory; rows, columns, depth.

        It is the transposed product where the columns of the result have them.
        """
        (a, a_runs), (b, b_runs), (c, c_runs) = self._matrices()
        order = self._order(c, *c_runs)
        assert order is not None
        rows, columns = self.rows, self.columns
        if order[0]:
            a, a_runs, b, b_runs = b, (columns, self.depth), a, (self.depth, rows)
            rows, columns = columns, rows
        factors = []
        for operand, runs in ((a, a_runs), (b, b_runs)):
            stored = self._order(operand, *runs)
            assert stored is not None
            factors.append(Matrix(operand, *stored))
        sizes = tuple(self._extent(run) for run in (rows, columns, self.depth))
        return (factors[0], factors[1], Matrix(c, False, order[1])), sizes

    def _matrices(self) -> list[tuple[Operand, tuple[str, str]]]:
        a, b = self.einsum.operands
        runs = (self.rows, self.depth), (self.depth, self.columns), (self.rows, self.columns)
        return list(zip((a, b, self.einsum.result), runs, strict=True))

    def _extent(self, run: str) -> sympy.Expr:
        return sympy.Mul(*(self.einsum.extents[x] for x in run))

    def _order(self, operand: Operand, rows: str, columns: str) -> tuple[bool, str] | None:
        """Whether a matrix is stored by columns, and its leading dimension; None: in no order."""
        along, across = (
            operand.steps.get(run[-1], sympy.Integer(0)) if run else sympy.Integer(1)
            for run in (columns, rows)
        )
        for by_columns, near, far, run, other in (
            (False, along, across, columns, rows),
            (True, across, along, rows, columns),
        ):
            extent = self._extent(run)
            if near != 1 and extent != 1:
                continue
            if self._extent(other) == 1:
                return by_columns, _most(sympy.Integer(1), extent)
            if far.is_positive and self._apart(operand, run, other, far - extent):
                return by_columns, _most(far, extent)
        return None

    @staticmethod
    def _apart(operand: Operand, run: str, other: str, gap: sympy.Expr) -> bool:
        """Whether rows do not overlap: storage keeps those apart that are a dimension of their own.

        Windows that slide (``i + j`` indexes one dimension) are apart only if that is known.
        """
        letters = ({x for x, _ in dim} for dim in operand.dimensions)
        slides = any(dim & set(run) and dim & set(other) for dim in letters)
        return bool(gap.is_nonnegative) if slides else gap.is_negative is not True

    def at(self, operand: Operand, index: dict[str, str]) -> str:
        """Address of the matrix at the indices of the loops that have one."""
        steps = ((x, operand.steps.get(x, 0)) for x in self.loops if x in index)
        terms = [f"{index[x]} * ({cpp_text(step)})" for x, step in steps if step != 0]
        return " + ".join([operand.connector, *terms])


def _most(stride: sympy.Expr, extent: sympy.Expr) -> str:
    """A leading dimension: BLAS wants at least the extent, also of a tile of one row."""
    if stride.is_Integer and extent.is_Integer:
        return str(max(stride, extent, 1))
    return f"std::max<int64_t>({{{cpp_text(stride)}, {cpp_text(extent)}, 1}})"


def cpp_text(number: sympy.Expr) -> str:
    """An expression in C++."""
    return str(sym2cpp(number))
