"""Factorisations of matrices, and the equations that they solve: calls of LAPACK.

Stacks of matrices are split over the ranks; a matrix is not. Where LAPACK reports that a matrix is
singular, or not positive definite, the call of the program ends with an error, as in torch; not so
where the function itself looks at what is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import fx

from distspmd.errors import OF_LAPACK
from distspmd.expressions.ir import Expression, apply, cast
from distspmd.expressions.operations import DType
from distspmd.frontend.operators.aten_registry import INT64, number, operator
from distspmd.frontend.tensor_ir.indices import Value, new_variables, pointwise
from distspmd.frontend.tensor_ir.kernels import Builder, operator_of, refuse
from distspmd.frontend.tensor_ir.matrices import Routine, call_lapack
from distspmd.nodes.lapack import FUNCTIONS

INT32 = np.dtype(np.int32)
_Results = Sequence[tuple[Sequence[int], DType]]


def _called(
    builder: Builder,
    node: fx.Node,
    routine: Routine,
    operands: Sequence[Value],
    results: _Results,
) -> tuple[list[Value], Value]:
    """Results of LAPACK, which end the program where it reports an error, and what it reports."""
    letter = FUNCTIONS[routine.function].columns  # each of which has a report of its own
    made = routine.subscripts.split("->")[1].split(",")[0]
    columns = [results[0][0][made.index(letter)]] if letter and letter in made else []
    *found, told = call_lapack(builder, node, routine, operands, [*results, (columns, INT64)])
    if not _looks_at_report(node):
        found = [_checked(one, told, len(columns)) for one in found]
    return found, Value(told.dims, cast(told.expression, INT32), told.shape)


def _looks_at_report(node: fx.Node) -> bool:
    """Whether the function reads what LAPACK reports: the last result, where it is called so."""
    returns = node.target._schema.returns  # type: ignore[union-attr]
    if returns[-1].name != "info":
        return False
    return any(user.args[1] == len(returns) - 1 for user in node.users)


def _checked(value: Value, told: Value, columns: int) -> Value:
    """A result whose elements note an error where LAPACK has reported one."""
    lead, ones = len(told.shape) - columns, len(value.shape) - len(told.shape)
    told = Value(
        (*told.dims[:lead], *((),) * ones, *told.dims[lead:]),
        told.expression,
        (*told.shape[:lead], *(1,) * ones, *told.shape[lead:]),
    )

    def build(element: Expression, reported: Expression) -> Expression:
        zero = number(0, INT64)
        failed = apply("not_equal", reported, zero)
        return apply("checked", element, failed, number(OF_LAPACK, INT64), zero, reported, zero)

    return pointwise(build, [value, told], value.shape)


def _turned(x: Value) -> Value:
    """Each matrix of a stack transposed."""
    *lead, a, b = x.dims
    *extents, m, n = x.shape
    return Value((*lead, b, a), x.expression, (*extents, n, m))


def _stacks(builder: Builder, node: fx.Node, *operands: tuple[Value, int]) -> list[Value]:
    """Operands whose stacks have the extents to which those of all are broadcast.

    Args:
        operands: each with the number of dimensions of one matrix, or vector.
    """
    leads = [x.shape[: len(x.shape) - rank] for x, rank in operands]
    batch = np.broadcast_shapes(*leads)
    found = []
    for x, rank in operands:
        shape = (*batch, *x.shape[len(x.shape) - rank :])
        x = builder.spread(x, shape, node)
        own = ((),) * (len(shape) - len(x.shape)) + x.dims
        fresh = new_variables(shape)
        dims = tuple(
            o or (n if d < len(batch) else ())
            for d, (o, n) in enumerate(zip(own, fresh, strict=True))
        )
        found.append(Value(dims, x.expression, shape))
    return found


def _is_turned(node: fx.Node) -> bool:
    """Whether torch factorises the transposed matrix: one whose rows are dense, of real numbers."""
    memory = node.args[0].meta["val"]  # type: ignore[union-attr]
    return bool(memory.is_contiguous() and not memory.is_complex())


# -- positive definite matrices -------------------------------------------------------------------


@operator("linalg_cholesky_ex", "cholesky")
def _cholesky(builder: Builder, node: fx.Node, x: Value, upper: bool = False, **given: Any) -> Any:
    routine = Routine("cholesky", "nn->nn", "'U'" if upper else "'L'")
    found, told = _called(builder, node, routine, [x], [(x.shape[-2:], x.dtype)])
    return [*found, told] if "ex" in str(node.target) else found[0]


@operator("cholesky_solve")
def _solve_definite(
    builder: Builder, node: fx.Node, b: Value, factor: Value, upper: bool = False
) -> Value:
    routine = Routine("solve_definite", "nn,nm->nm", "'U'" if upper else "'L'")
    operands = _stacks(builder, node, (factor, 2), (b, 2))
    return _called(builder, node, routine, operands, [(b.shape[-2:], b.dtype)])[0][0]


# -- equations ------------------------------------------------------------------------------------


@operator("linalg_solve_triangular")
def _solve_triangle(
    builder: Builder,
    node: fx.Node,
    a: Value,
    b: Value,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Value:
    if not left:  # the equation of the transposed matrices
        a, b, upper = _turned(a), _turned(b), not upper
    options = f"'{'U' if upper else 'L'}', 'N', '{'U' if unitriangular else 'N'}'"
    operands = _stacks(builder, node, (a, 2), (b, 2))
    routine = Routine("solve_triangle", "nn,nm->nm", options)
    ((found,), _) = _called(builder, node, routine, operands, [(b.shape[-2:], b.dtype)])
    return found if left else _turned(found)


@operator("_linalg_solve_ex")
def _solve(
    builder: Builder, node: fx.Node, a: Value, b: Value, *, left: bool = True, **_: Any
) -> list[Value]:
    is_vector = len(b.shape) == 1 or (len(b.shape) == len(a.shape) - 1 and b.shape == a.shape[:-1])
    factors = _factors(builder, node, a)
    one, other = (a, b) if left or is_vector else (_turned(a), _turned(b))
    rank = 1 if is_vector else 2
    operands = _stacks(builder, node, (one, 2), (other, rank))
    letters = "n" if is_vector else "nm"
    routine = Routine("solve", f"nn,{letters}->{letters}")
    shape = other.shape[len(other.shape) - rank :]
    ((found,), told) = _called(builder, node, routine, operands, [(shape, b.dtype)])
    if letters == "nm":  # torch has one report for a matrix
        told = Value(told.dims[:-1], number(0, INT32), told.shape[:-1])
    return [found if left or is_vector else _turned(found), *factors, told]


@operator("linalg_inv_ex")
def _inverse(builder: Builder, node: fx.Node, x: Value, **_: Any) -> list[Value]:
    results = [(x.shape[-2:], x.dtype)]
    found, told = _called(builder, node, Routine("inverse", "nn->nn"), [x], results)
    return [*found, told]


def _factors(builder: Builder, node: fx.Node, x: Value) -> list[Value]:
    """The factors of matrices, and the rows that were exchanged, which torch counts from 1."""
    m, n = x.shape[-2:]
    results = [((m, n), x.dtype), ((min(m, n),), INT32)]
    both, _ = _called(builder, node, Routine("factors", "mn->mn,k"), [x], results)
    lu, rows = both
    from_one = apply("add", cast(rows.expression, INT32), number(1, INT32))
    return [lu, Value(rows.dims, from_one, rows.shape)]


@operator("linalg_lu_solve")
def _solve_factored(
    builder: Builder,
    node: fx.Node,
    lu: Value,
    pivots: Value,
    b: Value,
    *,
    left: bool = True,
    adjoint: bool = False,
) -> Value:
    is_complex = lu.dtype.kind == "c"
    if is_complex and adjoint and not left:
        raise refuse(node, ["linalg_lu_solve of complex numbers, adjoint, with left=True"])
    from_zero = apply("subtract", pivots.expression, number(1, INT32))
    rows = Value(pivots.dims, from_zero, pivots.shape)
    b = b if left else _turned(b)
    way = ("C" if is_complex else "T") if left == adjoint else "N"
    operands = _stacks(builder, node, (lu, 2), (rows, 1), (b, 2))
    routine = Routine("solve_factored", "nn,n,nm->nm", f"'{way}'")
    ((found,), _) = _called(builder, node, routine, operands, [(b.shape[-2:], b.dtype)])
    return found if left else _turned(found)


# -- determinants and factors ---------------------------------------------------------------------


@operator("_linalg_slogdet", "_linalg_det")
def _determinant(builder: Builder, node: fx.Node, x: Value) -> list[Value]:
    """Signs and logarithms, or determinants; then the factors."""
    real = np.dtype(f"f{x.dtype.itemsize // 2}") if x.dtype.kind == "c" else x.dtype
    routine = Routine("logarithm_of_determinant", "nn->,")
    (sign, log), _ = _called(builder, node, routine, [x], [((), x.dtype), ((), real)])
    factors = _factors(builder, node, _turned(x) if _is_turned(node) else x)
    if operator_of(node) == "_linalg_slogdet":
        return [sign, log, *factors]

    def build(sign: Expression, log: Expression) -> Expression:
        return apply("multiply", sign, cast(apply("exp", log), x.dtype))

    return [pointwise(build, [sign, log], sign.shape), *factors]


@operator("linalg_lu_factor_ex")
def _lu_factor(
    builder: Builder, node: fx.Node, x: Value, *, pivot: bool = True, **_: Any
) -> list[Value]:
    if not pivot:
        raise refuse(node, ["linalg_lu_factor with pivots"])
    factors = _factors(builder, node, x)
    lead = len(x.shape) - 2
    return [*factors, Value(factors[1].dims[:lead], number(0, INT32), x.shape[:lead])]


@operator("linalg_qr")
def _qr(builder: Builder, node: fx.Node, x: Value, mode: str = "reduced") -> list[Value]:
    if mode == "r":
        raise refuse(node, ["linalg_qr with mode='reduced' or 'complete'"])
    m, n = x.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    results = [((m, k), x.dtype), ((k, n), x.dtype)]
    return _called(builder, node, Routine("qr", "mn->mk,kn"), [x], results)[0]


@operator("_linalg_eigh")
def _eigh(
    builder: Builder, node: fx.Node, x: Value, part: str = "L", vectors: bool = True
) -> list[Any]:
    real = np.dtype(f"f{x.dtype.itemsize // 2}") if x.dtype.kind == "c" else x.dtype
    n, options = x.shape[-1], f"'{part.upper()}'"
    if not vectors:
        routine = Routine("eigenvalues", "nn->n", options)
        return [*_called(builder, node, routine, [x], [((n,), real)])[0], None]
    routine = Routine("eigenvectors", "nn->n,nn", options)
    return _called(builder, node, routine, [x], [((n,), real), ((n, n), x.dtype)])[0]


@operator("_linalg_svd")
def _svd(
    builder: Builder, node: fx.Node, x: Value, full: bool = False, vectors: bool = True, **_: Any
) -> list[Any]:
    real = np.dtype(f"f{x.dtype.itemsize // 2}") if x.dtype.kind == "c" else x.dtype
    m, n = x.shape[-2:]
    k = min(m, n)
    if not vectors:
        routine = Routine("singular_values", "mn->k")
        return [None, *_called(builder, node, routine, [x], [((k,), real)])[0], None]
    rows, columns = (m, n) if full else (k, k)
    results = [((m, rows), x.dtype), ((k,), real), ((columns, n), x.dtype)]
    return _called(builder, node, Routine("svd", "mn->mr,k,cn"), [x], results)[0]
