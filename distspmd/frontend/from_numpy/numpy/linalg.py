"""``np.linalg``: equations, determinants, decompositions, and what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from dace import SDFG, Memlet, SDFGState
from dace.data import Data
from dace.frontend.python.common import DaceSyntaxError

from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.checks import end_if
from distspmd.frontend.from_numpy.arrays.complex_parts import apply_imag
from distspmd.frontend.from_numpy.arrays.real_or_complex import real_or_complex
from distspmd.frontend.from_numpy.arrays.shapes import (
    expand_dims,
    normal_axis,
    reshape,
    size_of,
    transpose,
)
from distspmd.frontend.from_numpy.arrays.values import INT64, Demanded, Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.lapack_calls import (
    SINGULAR,
    call,
    end_where_they_differ,
    inexact,
    is_large,
    is_tall,
    matrices,
    real_of,
    spread,
)
from distspmd.frontend.from_numpy.numpy.registry import function, named
from distspmd.frontend.tensor_ir.statements import Length
from distspmd.frontend.tensor_ir.whole_numbers import same
from distspmd.nodes.lapack import TYPES, Lapack


def least_of(run: Context, m: Length, n: Length) -> Length:
    """The smaller one of two extents."""
    if same(m, n):
        return m
    if isinstance(m, int) and isinstance(n, int):
        return min(m, n)
    import sympy

    return sympy.Min(m, n)


def _named(like: Any, values: Sequence[Any]) -> Any:
    """Several results as NumPy names them."""
    return type(like(np.eye(1)))(*values)


# -- equations ------------------------------------------------------------------------------------


@function(np.linalg.solve)
def solve(run: Context, a: object, b: object) -> Any:
    """``np.linalg.solve``: a vector is one right-hand side, as in NumPy 2."""
    tracer = run.tracer
    matrix = matrices(run, a, "np.linalg.solve", square=True)
    given = tracer.tensor(b)
    if given.ndim == 0:
        tracer.refuse("np.linalg.solve: the right-hand side is a number")
    kind = inexact(run, matrix, given)
    n = matrix.shape[-1]
    if given.ndim == 1:
        _fit(run, n, given.shape[0], "np.linalg.solve")
        batch = matrix.shape[:-2]
        vectors = tracer.broadcast(given, (*batch, n))
        operands = [(matrix, kind), (vectors, kind)]
        return call(run, "solve", "nn,n->n", operands, [((n,), kind)], batch, error=SINGULAR)[0]
    _fit(run, n, given.shape[-2], "np.linalg.solve")
    batch = tracer.broadcast_shape([matrix.shape[:-2], given.shape[:-2]])
    operands = [(spread(run, matrix, batch), kind), (spread(run, given, batch), kind)]
    shape = given.shape[-2:]
    return call(run, "solve", "nn,nm->nm", operands, [(shape, kind)], batch, error=SINGULAR)[0]


MISFITS = {
    "np.linalg.solve": ("ValueError", "matrices and right-hand sides have other numbers of rows"),
    "np.linalg.lstsq": ("LinAlgError", "Incompatible dimensions"),
}
"""The error of NumPy where the rows of a function's operands differ."""


def _fit(run: Context, n: Length, rows: Length, name: str) -> None:
    if isinstance(n, int) and isinstance(rows, int) and n != rows:
        run.tracer.refuse(f"{name}: matrices of {n} rows, and right-hand sides of {rows} rows")
    kind, message = MISFITS[name]
    end_where_they_differ(run, n, rows, kind, message)


@function(np.linalg.inv)
def inverse(run: Context, a: object) -> Any:
    """``np.linalg.inv``."""
    matrix = matrices(run, a, "np.linalg.inv", square=True)
    kind = inexact(run, matrix)
    batch, shape = matrix.shape[:-2], matrix.shape[-2:]
    results = [(shape, kind)]
    return call(run, "inverse", "nn->nn", [(matrix, kind)], results, batch, error=SINGULAR)[0]


@function(np.linalg.slogdet)
def slogdet(run: Context, a: object) -> Any:
    """``np.linalg.slogdet``."""
    found = _slogdet(run, a, "np.linalg.slogdet")
    return _named(np.linalg.slogdet, found)


def _slogdet(run: Context, a: object, name: str) -> list[Any]:
    matrix = matrices(run, a, name, square=True)
    kind = inexact(run, matrix)
    batch = matrix.shape[:-2]
    if not batch and is_large(run, matrix):
        return _slogdet_of_factor(run, matrix, kind)
    results = [((), kind), ((), real_of(kind))]
    called = "logarithm_of_determinant"
    return list(call(run, called, "nn->,", [(matrix, kind)], results, batch, label="determinant"))


def _slogdet_of_factor(run: Context, matrix: Tensor, kind: DType) -> list[Any]:
    """What the diagonal of a factor makes, whose parts may lie on several ranks."""
    operands, results = [(matrix, kind)], [(matrix.shape[:1], kind)]
    (diagonal,) = call(run, "diagonal_of_factor", "nn->n", operands, results, label="determinant")
    sizes = run.call(np.absolute, [diagonal], {})
    log = run.call(np.sum, [run.call(np.log, [sizes], {})], {})
    if kind.kind == "c":
        some = run.call(np.where, [run.call(np.equal, [sizes, 0], {}), 1, sizes], {})
        units = run.call(np.divide, [diagonal, some], {})
    else:
        units = run.call(np.sign, [diagonal], {})
    return [run.call(np.prod, [units], {}), log]


@function(np.linalg.det)
def _det(run: Context, a: object) -> Any:
    sign, log = _slogdet(run, a, "np.linalg.det")
    return combine(run.tracer, np.multiply, [sign, combine(run.tracer, np.exp, [log])])


@function(np.linalg.tensorsolve)
def _tensorsolve(run: Context, a: Any, b: Any, axes: Any = None) -> Any:
    tracer = run.tracer
    one, other = tracer.tensor(a), tracer.tensor(b)
    if axes is not None:
        order = [d for d in range(one.ndim) if d not in axes] + list(axes)
        one = transpose(tracer, one, order)
    rest = one.shape[other.ndim :]
    size = _size(rest)
    square = reshape(tracer, one, [size, size])
    found = solve(run, square, reshape(tracer, other, [size]))
    return reshape(tracer, found, rest)


@function(np.linalg.tensorinv)
def _tensorinv(run: Context, a: Any, ind: Any = 2) -> Any:
    tracer = run.tracer
    one = tracer.tensor(a)
    rest = _size(one.shape[ind:])
    found = inverse(run, reshape(tracer, one, [_size(one.shape[:ind]), rest]))
    return reshape(tracer, found, [*one.shape[ind:], *one.shape[:ind]])


def _size(shape: Sequence[Length]) -> Length:
    return size_of(shape)


# -- decompositions -------------------------------------------------------------------------------


@function(np.linalg.cholesky)
def cholesky(run: Context, a: object, *, upper: bool = False) -> Any:
    """``np.linalg.cholesky``."""
    matrix = matrices(run, a, "np.linalg.cholesky", square=True)
    kind = inexact(run, matrix)
    return call(
        run,
        "cholesky",
        "nn->nn",
        [(matrix, kind)],
        [(matrix.shape[-2:], kind)],
        matrix.shape[:-2],
        options="'U'" if upper else "'L'",
        error="Matrix is not positive definite",
    )[0]


@function(np.linalg.qr)
def _qr(run: Context, a: object, mode: str = "reduced") -> Any:
    tracer = run.tracer
    matrix = matrices(run, a, "np.linalg.qr")
    kind = inexact(run, matrix)
    batch, (m, n) = matrix.shape[:-2], matrix.shape[-2:]
    k = least_of(run, m, n)
    given = [(matrix, kind)]
    tall = is_tall(run, matrix)
    if tall and mode == "r":
        return _triangle(run, matrix, kind)
    if tall and mode == "reduced":
        return _named(np.linalg.qr, _factors(run, matrix, kind))
    is_dealt = not batch and not tall and is_large(run, matrix)
    is_dealt &= same(m, n) or (isinstance(m, int) and isinstance(n, int))
    if is_dealt and mode in ("r", "economic"):
        return _dealt(run, "triangle_by_columns", given, [])[0]
    if is_dealt and (mode == "reduced" or (mode == "complete" and m == k)):
        return _named(np.linalg.qr, _dealt(run, "qr_by_columns", given, [((m, k), kind)]))
    if mode in ("r", "economic"):
        return call(run, "triangle_of_qr", "mn->kn", given, [((k, n), kind)], batch)[0]
    if mode not in ("reduced", "complete"):
        tracer.refuse(f"np.linalg.qr with mode={mode!r}; the modes are 'reduced', 'complete', 'r'")
    inner = m if mode == "complete" else k
    results = [((m, inner), kind), ((inner, n), kind)]
    found = call(run, "qr", "mn->mk,kn", given, results, batch)
    return _named(np.linalg.qr, found)


def _factors(run: Context, matrix: Tensor, kind: DType) -> list[Any]:
    """The orthogonal factor and the triangle of a tall matrix."""
    m, n = matrix.shape
    results = [((m, n), kind), ((n, n), kind)]
    return list(call(run, "qr", "mn->mn,nn", [(matrix, kind)], results, tall=True))


def _dealt(
    run: Context,
    function: str,
    given: Sequence[tuple[Tensor, DType]],
    before: Sequence[tuple[Sequence[Length], DType]],
) -> list[Any]:
    """The triangle of a matrix whose columns ranks factorise in turn, behind other results.

    The letters tell what has the rows of the matrix; what has not is summed over the ranks.
    """
    matrix, kind = given[0]
    m, n = matrix.shape
    k = least_of(run, m, n)
    row, column = "m", "m" if same(m, n) else "n"
    inner = row if same(k, m) else column
    terms = [f"{row}{inner}"] * len(before) + [f"{inner}{column}"]
    results = [*before, ((k, n), kind)]
    return list(call(run, function, f"{row}{column}->{','.join(terms)}", given, results))


def _triangle(run: Context, matrix: Tensor, kind: DType) -> Tensor:
    """The triangle of a tall matrix."""
    n, given = matrix.shape[-1], [(matrix, kind)]
    return call(run, "triangle_of_qr", "mn->nn", given, [((n, n), kind)], tall=True)[0]


_NOT_CONVERGED = "Eigenvalues did not converge"


@function(np.linalg.eigh)
def _eigh(run: Context, a: object, UPLO: str = "L") -> Any:  # noqa: N803 (NumPy's name)
    matrix = matrices(run, a, "np.linalg.eigh", square=True)
    kind, part = inexact(run, matrix), _part(run, UPLO)
    batch, shape = matrix.shape[:-2], matrix.shape[-2:]
    results = [(shape[:1], real_of(kind)), (shape, kind)]
    found = call(
        run,
        "eigenvectors",
        "nn->n,nn",
        [(matrix, kind)],
        results,
        batch,
        options=part,
        error=_NOT_CONVERGED,
    )
    return _named(np.linalg.eigh, found)


@function(np.linalg.eigvalsh)
def _eigvalsh(run: Context, a: object, UPLO: str = "L") -> Any:  # noqa: N803
    matrix = matrices(run, a, "np.linalg.eigvalsh", square=True)
    kind, part = inexact(run, matrix), _part(run, UPLO)
    results = [(matrix.shape[-1:], real_of(kind))]
    return call(
        run,
        "eigenvalues",
        "nn->n",
        [(matrix, kind)],
        results,
        matrix.shape[:-2],
        options=part,
        error=_NOT_CONVERGED,
    )[0]


def _part(run: Context, uplo: str) -> str:
    if str(uplo).upper() not in ("L", "U"):
        run.tracer.refuse(f"UPLO argument must be 'L' or 'U', but is {uplo!r}")
    return f"'{uplo.upper()}'"


@function(np.linalg.svd)
def svd(
    run: Context,
    a: object,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
) -> Any:
    """``np.linalg.svd``."""
    if hermitian:
        run.tracer.refuse("np.linalg.svd with hermitian=True; leave it out, or use np.linalg.eigh")
    matrix = matrices(run, a, "np.linalg.svd")
    kind = inexact(run, matrix)
    batch, (m, n) = matrix.shape[:-2], matrix.shape[-2:]
    k = least_of(run, m, n)
    if not compute_uv:
        return singular_values(run, matrix)
    if not full_matrices and is_tall(run, matrix):  # the rows stay where they are
        q, r = _factors(run, matrix, kind)
        inner, s, v = svd(run, r, False)
        return _named(np.linalg.svd, [run.call(np.matmul, [q, inner], {}), s, v])
    rows, columns = (m, n) if full_matrices else (k, k)
    results = [((m, rows), kind), ((k,), real_of(kind)), ((columns, n), kind)]
    found = call(
        run,
        "svd",
        "nn->nn,n,nn" if same(m, n) else "mn->mr,k,cn",
        [(matrix, kind)],
        results,
        batch,
        error=_SVD,
    )
    return _named(np.linalg.svd, found)


_SVD = "SVD did not converge"


@function(np.linalg.svdvals)
def singular_values(run: Context, a: object) -> Any:
    """The singular values, the largest first."""
    matrix = matrices(run, a, "np.linalg.svdvals")
    kind = inexact(run, matrix)
    if is_tall(run, matrix):
        matrix = _triangle(run, matrix, kind)
    k = least_of(run, *matrix.shape[-2:])
    return call(
        run,
        "singular_values",
        "nn->n" if same(*matrix.shape[-2:]) else "mn->k",
        [(matrix, kind)],
        [((k,), real_of(kind))],
        matrix.shape[:-2],
        error=_SVD,
    )[0]


# -- least squares --------------------------------------------------------------------------------


@function(np.linalg.lstsq)
def _lstsq(run: Context, a: object, b: object, rcond: Any = None) -> Any:
    tracer = run.tracer
    matrix, given = tracer.tensor(a), tracer.tensor(b)
    if matrix.ndim != 2 or given.ndim not in (1, 2):
        tracer.refuse("np.linalg.lstsq takes one matrix, and one or two dimensions beside it")
    m, n = matrix.shape
    _fit(run, m, given.shape[0], "np.linalg.lstsq")
    if tracer.is_decided_by_data(m) and isinstance(n, int):  # rows of zeros change nothing
        few = run.call(np.less, [tracer.whole(m), n], {})
        end_if(run, few, "LinAlgError", "np.linalg.lstsq: fewer rows than unknowns")
        m = tracer.capacity(m)
    if isinstance(rcond, Tensor):
        tracer.refuse("np.linalg.lstsq with an rcond that is known at run time only")
    kind = inexact(run, matrix, given)
    real = real_of(kind)
    columns = given.shape[1:]
    one = columns or (1,)
    sides = given if columns else indexing.read(tracer, given, (Ellipsis, None))
    given_matrix, given_sides = matrix, sides
    if tall := is_tall(run, matrix):  # as the triangle and what the factor makes of the sides
        q, matrix = _factors(run, matrix, kind)
        turned = run.call(np.conjugate, [_swapped(run, q)], {})
        sides = run.call(np.matmul, [turned, sides], {})
        rcond = float(np.finfo(real).eps * m) if rcond is None else rcond
    results = [((n, *one), kind), (one, real), ((), INT64), ((least_of(run, m, n),), real)]
    x, residuals, rank, s = call(
        run,
        "least_squares",
        "mn,mc->nc,c,,k",
        [(matrix, kind), (sides, kind)],
        results,
        numbers="NAN" if rcond is None else repr(float(rcond)),
        error="SVD did not converge in Linear Least Squares",
    )
    if tall:
        lacks = run.call(np.subtract, [given_sides, run.call(np.matmul, [given_matrix, x], {})], {})
        residuals = run.call(np.sum, [_squares(run, tracer.tensor(lacks))], {"axis": 0})
    found = reshape(tracer, x, [n, *columns])
    return found, _residuals(run, residuals, rank, m, n), converted(tracer, rank, np.int32), s


def _residuals(run: Context, residuals: Tensor, rank: Tensor, m: Length, n: Length) -> Any:
    """Residuals, whose number NumPy makes depend on the rank: used, they need the full one."""
    if isinstance(m, int) and isinstance(n, int) and m <= n:
        return np.zeros(0, residuals.dtype)
    checked = [False]

    def element(index: Any) -> Any:
        if not checked[0]:
            checked[0] = True
            few = run.call(np.less, [rank, n], {})
            if not (isinstance(m, int) and isinstance(n, int)):
                square = run.call(np.less_equal, [run.tracer.whole(m), run.tracer.whole(n)], {})
                few = run.call(np.logical_or, [few, square], {})
            end_if(
                run,
                few,
                "LinAlgError",
                "np.linalg.lstsq: NumPy gives no residuals of a matrix without full rank, or "
                "without more rows than columns",
            )
        return residuals.element(index)

    return Demanded(residuals.shape, residuals.dtype, element, is_on_demand=True)


@function(np.linalg.pinv)
def _pinv(
    run: Context, a: object, rcond: object = None, hermitian: bool = False, *, rtol: object = None
) -> Any:
    tracer = run.tracer
    if hermitian:
        tracer.refuse("np.linalg.pinv with hermitian=True; leave it out")
    matrix = matrices(run, a, "np.linalg.pinv")
    if matrix.dtype.kind == "c":
        matrix = tracer.stored_anew(combine(tracer, np.conjugate, [matrix]))
    if rcond is None:
        rcond = _tolerance(run, matrix) if rtol is None else rtol
    elif rtol is not None:
        tracer.refuse("`rtol` and `rcond` can't be both set.")
    u, s, v = svd(run, matrix, False)
    largest = run.call(np.max, [s], {"axis": -1, "keepdims": True})
    limits = run.call(np.multiply, [_column(run, rcond), largest], {})
    large = run.call(np.greater, [s, limits], {})
    turned = run.call(np.where, [large, run.call(np.divide, [1, s], {}), 0], {})
    turned = converted(tracer, turned, s.dtype)
    scaled = run.call(np.multiply, [_column(run, turned), _swapped(run, u)], {})
    return run.call(np.matmul, [_swapped(run, v), scaled], {})


def _tolerance(run: Context, matrix: Tensor) -> Any:
    """What NumPy takes for zero beside the largest singular value."""
    m, n = matrix.shape[-2:]
    real = real_of(inexact(run, matrix))
    if isinstance(m, int) and isinstance(n, int):
        return float(max(m, n) * np.finfo(real).eps)
    largest = run.call(np.maximum, [run.tracer.whole(m), run.tracer.whole(n)], {})
    return run.call(np.multiply, [converted(run.tracer, largest, real), np.finfo(real).eps], {})


def _column(run: Context, value: object) -> Any:
    """``value[..., newaxis]``, of a number the number."""
    if not isinstance(value, Tensor) or not value.ndim:
        return value
    return indexing.read(run.tracer, value, (Ellipsis, None))


def _swapped(run: Context, value: Tensor) -> Tensor:
    order = [*range(value.ndim - 2), value.ndim - 1, value.ndim - 2]
    return transpose(run.tracer, value, order)


@function(np.linalg.matrix_rank)
def _matrix_rank(
    run: Context,
    A: object,  # noqa: N803
    tol: object = None,
    hermitian: bool = False,
    *,
    rtol: object = None,
) -> Any:
    tracer = run.tracer
    value = tracer.tensor(A)
    if hermitian:
        tracer.refuse("np.linalg.matrix_rank with hermitian=True; leave it out")
    if value.ndim < 2:
        return converted(
            tracer, run.call(np.any, [run.call(np.not_equal, [value, 0], {})], {}), int
        )
    s = singular_values(run, value)
    if tol is None:
        factor = _tolerance(run, value) if rtol is None else _column(run, rtol)
        largest = run.call(np.max, [s], {"axis": -1, "keepdims": True})
        limits = run.call(np.multiply, [largest, factor], {})
    else:
        limits = _column(run, tol)
    return run.call(np.count_nonzero, [run.call(np.greater, [s, limits], {})], {"axis": -1})


@function(np.linalg.matrix_power)
def _matrix_power(run: Context, a: object, n: object) -> Any:
    tracer = run.tracer
    matrix = matrices(run, a, "np.linalg.matrix_power", square=True)
    if not isinstance(n, int):
        tracer.refuse("np.linalg.matrix_power with an exponent that is not known; write a loop")
    if n == 0:
        one = run.call(np.eye, [matrix.shape[-1]], {"dtype": matrix.dtype})
        return tracer.stored_anew(tracer.broadcast(one, matrix.shape))
    base: Any = inverse(run, matrix) if n < 0 else matrix
    found, left = None, abs(n)
    while True:
        if left & 1:
            found = base if found is None else run.call(np.matmul, [found, base], {})
        left >>= 1
        if not left:
            return found
        base = run.call(np.matmul, [base, base], {})


# -- names that np.linalg has, too ----------------------------------------------------------------


def _also(name: str, like: object) -> None:
    """A function of ``np.linalg`` that is one of ``np``."""

    @function(getattr(np.linalg, name))
    def handler(run: Context, *given: object, **options: object) -> Any:
        return run.call(like, given, options)


for _name in ("cross", "matmul", "outer", "tensordot"):
    _also(_name, getattr(np, _name))


@function(np.linalg.diagonal)
def _diagonal(run: Context, x: object, /, *, offset: int = 0) -> Any:
    return run.call(np.diagonal, [x, offset, -2, -1], {})


@function(np.linalg.trace)
def _trace(run: Context, x: object, /, *, offset: int = 0, dtype: object = None) -> Any:
    found = run.call(np.diagonal, [x, offset, -2, -1], {})
    return run.call(np.sum, [found, -1], {"dtype": dtype})


@function(np.linalg.matrix_transpose, np.matrix_transpose)
def _matrix_transpose(run: Context, x: object, /) -> Any:
    return _swapped(run, matrices(run, x, "np.matrix_transpose"))


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


def _operand(sdfg: SDFG, name: object) -> Data:
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


@function(np.linalg.norm)
def norm(
    run: Context, x: object, ord: object = None, axis: object = None, keepdims: bool = False
) -> Any:
    """``np.linalg.norm``: of a vector, or of a matrix where two axes are given."""
    tracer = run.tracer
    tensor = tracer.tensor(x)
    if tensor.dtype.kind not in "fc":
        tensor = converted(tracer, tensor, np.float64)
    tensor = tracer.settled(tensor)
    if axis is None:
        if (
            ord is None
            or (ord in ("f", "fro") and tensor.ndim == 2)
            or (ord == 2 and tensor.ndim == 1)
        ):
            found = _root_of_squares(run, tensor, None)
            if keepdims:
                return expand_dims(tracer, found, list(range(tensor.ndim)))
            return found
        axes = list(range(tensor.ndim))
    else:
        given = axis if isinstance(axis, tuple | list) else (axis,)
        axes = [normal_axis(tracer, a, tensor.ndim) for a in given]
    if len(axes) == 1:
        return _of_vectors(run, tensor, ord, axes[0], keepdims)
    if len(axes) != 2:
        tracer.refuse("Improper number of dimensions to norm.")
    return _of_matrices(run, tensor, ord, axes, keepdims)


def _squares(run: Context, tensor: Tensor) -> Tensor:
    if tensor.dtype.kind != "c":
        return combine(run.tracer, np.multiply, [tensor, tensor])
    parts = [run.attribute(tensor, name) for name in ("real", "imag")]
    found = [combine(run.tracer, np.multiply, [p, p]) for p in parts]
    return combine(run.tracer, np.add, found)


def _root_of_squares(run: Context, tensor: Tensor, axis: object, keepdims: bool = False) -> Any:
    total = run.call(np.sum, [_squares(run, tensor)], {"axis": axis, "keepdims": keepdims})
    return combine(run.tracer, np.sqrt, [total])


def _of_vectors(run: Context, tensor: Tensor, ord: Any, axis: int, keepdims: bool) -> Any:
    tracer = run.tracer
    options = {"axis": axis, "keepdims": keepdims}
    if isinstance(ord, str | Tensor):
        tracer.refuse(f"Invalid norm order {ord!r} for vectors")
    if ord is None or ord == 2:
        return _root_of_squares(run, tensor, axis, keepdims)
    sizes = combine(tracer, np.absolute, [tensor])
    if ord in (np.inf, -np.inf):
        return run.call(np.max if ord > 0 else np.min, [sizes], options)
    if ord == 0:
        there = run.call(np.not_equal, [tensor, 0], {})
        return run.call(np.sum, [converted(tracer, there, sizes.dtype)], options)
    if ord == 1:
        return run.call(np.sum, [sizes], options)
    powers = combine(tracer, np.power, [sizes, ord])
    total = run.call(np.sum, [powers], options)
    return combine(tracer, np.power, [total, 1 / ord])


def _of_matrices(run: Context, tensor: Tensor, ord: object, axes: list[int], keepdims: bool) -> Any:
    tracer = run.tracer
    rows, columns = axes
    if rows == columns:
        tracer.refuse("Duplicate axes given.")
    sizes = combine(tracer, np.absolute, [tensor])
    if ord is None or ord in ("fro", "f"):
        found = _root_of_squares(run, tensor, tuple(axes))
    elif ord in (1, -1, np.inf, -np.inf):
        summed, kept = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = run.call(np.sum, [sizes], {"axis": summed})
        place = kept - 1 if kept > summed else kept
        found = run.call(np.max if ord > 0 else np.min, [sums], {"axis": place})
    elif ord in (2, -2, "nuc"):
        rest = [d for d in range(tensor.ndim) if d not in axes]
        values = singular_values(run, transpose(tracer, tensor, [*rest, rows, columns]))
        reduced = np.sum if ord == "nuc" else np.max if ord == 2 else np.min
        found = run.call(reduced, [values], {"axis": -1})
    else:
        tracer.refuse(f"Invalid norm order {ord!r} for matrices.")
    return expand_dims(tracer, found, sorted(axes)) if keepdims else found


@function(np.linalg.vector_norm)
def _vector_norm(
    run: Context, x: object, /, *, axis: object = None, keepdims: bool = False, ord: object = 2
) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(x)
    if axis is not None and not isinstance(axis, tuple | list):
        return norm(run, tensor, ord, axis, keepdims)
    axes = (
        list(range(tensor.ndim))
        if axis is None
        else [normal_axis(tracer, a, tensor.ndim) for a in axis]
    )
    rest = [d for d in range(tensor.ndim) if d not in axes]
    turned = transpose(tracer, tensor, [*rest, *axes]) if rest else tensor
    line = size_of([tensor.shape[d] for d in axes])
    flat = reshape(tracer, turned, [*(tensor.shape[d] for d in rest), line])
    found = norm(run, flat, ord, -1)
    return expand_dims(tracer, found, sorted(axes)) if keepdims else found


@function(np.linalg.matrix_norm)
def _matrix_norm(run: Context, x: object, /, *, keepdims: bool = False, ord: object = "fro") -> Any:
    return norm(run, x, ord, (-2, -1), keepdims)


@function(np.linalg.cond)
def _cond(run: Context, x: object, p: object = None) -> Any:
    matrix = matrices(run, x, "np.linalg.cond")
    if p is None or p in (2, -2):
        values = singular_values(run, matrix)
        largest = run.call(np.max, [values], {"axis": -1})
        least = run.call(np.min, [values], {"axis": -1})
        pair = [least, largest] if p == -2 else [largest, least]
        return combine(run.tracer, np.divide, pair)
    sizes = [norm(run, each, p, (-2, -1)) for each in (matrix, inverse(run, matrix))]
    return combine(run.tracer, np.multiply, sizes)


@function(np.vecdot, np.linalg.vecdot)
def _vecdot(run: Context, x1: object, x2: object, /, *, axis: int = -1) -> Any:
    tracer = run.tracer
    one = tracer.tensor(x1)
    one = combine(tracer, np.conjugate, [one]) if one.dtype.kind == "c" else one
    return run.call(
        np.sum, [combine(tracer, np.multiply, [one, tracer.tensor(x2)])], {"axis": axis}
    )


_CALLED = {
    ("f", True): "eigenvectors_of_real",
    ("f", False): "eigenvalues_of_real",
    ("c", True): "general_eigenvectors",
    ("c", False): "general_eigenvalues",
}


def _found(run: Context, a: object, name: str, *, vectors: bool) -> list[Tensor]:
    """Eigenvalues as complex numbers, and eigenvectors; of a real matrix as LAPACK pairs them."""
    matrix = matrices(run, a, name, square=True)
    kind, shape = inexact(run, matrix), matrix.shape[-2:]
    if matrix.dtype.kind in "fc" and not run.tracer.map.parallel:
        is_finite = run.call(np.all, [run.call(np.isfinite, [matrix], {})], {})
        bad = run.call(np.logical_not, [is_finite], {})
        end_if(run, bad, "LinAlgError", "Array must not contain infs or NaNs", can_go_on=True)
    found = np.result_type(kind, np.complex64)
    results = [(shape[:1], found), (shape, found)] if vectors else [(shape[:1], found)]
    return list(
        call(
            run,
            _CALLED[kind.kind, vectors],
            "nn->n,nn" if vectors else "nn->n",
            [(matrix, kind)],
            results,
            matrix.shape[:-2],
            error="Eigenvalues did not converge",
        )
    )


def _opened(run: Context, matrix: object, values: Tensor, found: Sequence[Tensor]) -> list[Tensor]:
    """Arrays of complex numbers; of a real matrix real ones, unless eigenvalues are complex."""
    tracer = run.tracer
    if tracer.tensor(matrix).dtype.kind == "c":
        return list(found)
    apart = run.call(np.not_equal, [apply_imag(values), 0], {})
    is_complex = tracer.stored_anew(tracer.tensor(run.call(np.any, [apart], {})), "is_complex")
    return [real_or_complex(tracer, each, is_complex) for each in found]


@function(np.linalg.eig)
def _eig(run: Context, a: object) -> Any:
    found = _found(run, a, "np.linalg.eig", vectors=True)
    result: Any = type(np.linalg.eig(np.eye(1)))
    return result(*_opened(run, a, found[0], found))


@function(np.linalg.eigvals)
def _eigvals(run: Context, a: object) -> Any:
    found = _found(run, a, "np.linalg.eigvals", vectors=False)
    return _opened(run, a, found[0], found)[0]


@named("scipy.linalg", "eigvals")
def _eigvals_of_scipy(run: Context, a: object, *, check_finite: bool = True) -> Any:
    """Those of SciPy are complex always."""
    return _found(run, a, "scipy.linalg.eigvals", vectors=False)[0]


@named("scipy.linalg", "eig")
def _eig_of_scipy(run: Context, a: object, *, check_finite: bool = True) -> Any:
    values, vectors = _found(run, a, "scipy.linalg.eig", vectors=True)
    return values, _opened(run, a, values, [vectors])[0]
