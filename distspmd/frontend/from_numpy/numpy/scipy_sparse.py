"""``scipy.sparse``: matrices are objects of the program, also where all is known before."""

from __future__ import annotations

from typing import Any

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import sparse, sparse_blocks
from distspmd.frontend.from_numpy.numpy.registry import function, named
from distspmd.frontend.from_numpy.reader import objects


def _constructor(is_array: bool, kind: str) -> Any:
    def handler(
        run: Context, arg: object, shape: object = None, dtype: object = None, copy: object = False
    ) -> Any:
        return run.call(sparse.matrix, [arg, shape, dtype, is_array, kind], {})

    return handler


for _format in ("csr", "csc", "coo", "lil", "dok", "bsr"):
    named("scipy.sparse", f"{_format}_matrix", always=True)(_constructor(False, _format))
    named("scipy.sparse", f"{_format}_array", always=True)(_constructor(True, _format))


def _bands(is_array: bool) -> Any:
    def handler(
        run: Context,
        diagonals: object,
        offsets: object = 0,
        shape: object = None,
        format: object = None,
        dtype: object = None,
    ) -> Any:
        return run.call(sparse.banded, [diagonals, offsets, shape, dtype, is_array], {})

    return handler


named("scipy.sparse", "diags", always=True)(_bands(False))


def _by_diagonals(is_array: bool) -> Any:
    def handler(
        run: Context, arg: object, shape: object = None, dtype: object = None, copy: object = False
    ) -> Any:
        return run.call(sparse.by_diagonals, [arg, shape, dtype, is_array], {})

    return handler


named("scipy.sparse", "dia_matrix", always=True)(_by_diagonals(False))
named("scipy.sparse", "dia_array", always=True)(_by_diagonals(True))


def _read_as(name: str, python: object) -> None:
    def handler(run: Context, *given: object, **options: object) -> Any:
        return run.call(python, list(given), options)

    named("scipy.sparse", name, always=True)(handler)


for _block in ("bmat", "vstack", "hstack", "block_diag", "tril", "triu", "inv", "norm", "eigsh"):
    _read_as(_block, getattr(sparse_blocks, _block))
_read_as("block_array", sparse_blocks.bmat)


@named("scipy.sparse", "diags_array", always=True)
def _diags_array(
    run: Context,
    diagonals: object,
    /,
    *,
    offsets: object = 0,
    shape: object = None,
    format: object = None,
    dtype: object = None,
) -> Any:
    return run.call(sparse.banded, [diagonals, offsets, shape, dtype, True], {})


def _unit(is_array: bool) -> Any:
    def handler(
        run: Context,
        m: object,
        n: object = None,
        k: object = 0,
        dtype: object = float,
        format: object = None,
    ) -> Any:
        shape = (m, m if n is None else n)
        return run.call(sparse.banded, [[1.0], [k], shape, dtype, is_array], {})

    return handler


named("scipy.sparse", "eye", always=True)(_unit(False))
named("scipy.sparse", "eye_array", always=True)(_unit(True))


@named("scipy.sparse", "identity", always=True)
def _identity(run: Context, n: object, dtype: object = "d", format: object = None) -> Any:
    return run.call(sparse.banded, [[1.0], [0], (n, n), dtype, False], {})


@named("scipy.sparse", "spdiags", always=True)
def _spdiags(
    run: Context,
    data: object,
    diags: object,
    m: object = None,
    n: object = None,
    format: object = None,
) -> Any:
    return run.call(sparse.by_columns, [data, diags, m, n], {})


@named("scipy.sparse", "kron", always=True)
def _kron(run: Context, A: object, B: object, format: object = None) -> Any:  # noqa: N803
    both = [
        each if _is_sparse(run, each) else run.call(sparse.matrix, [each, None, None, False], {})
        for each in (A, B)
    ]
    return run.call(sparse.kron, both, {})


@named("scipy.sparse", "spsolve", always=True)
def _spsolve(
    run: Context,
    A: object,  # noqa: N803
    b: object,
    permc_spec: object = None,
    use_umfpack: object = True,
) -> Any:
    return run.call(sparse.solve, [_matrix(run, A), b], {})


@named("scipy.sparse", "splu", "factorized", always=True)
def _factorized(run: Context, A: object, **_: object) -> Any:  # noqa: N803
    return objects.make(run, sparse.Solver, [_matrix(run, A)], {})


@named("scipy.sparse", "cg", always=True)
def _cg(run: Context, *given: object, **options: object) -> Any:
    return run.call(sparse.cg, list(given), options)


def _matrix(run: Context, a: object) -> Any:
    return a if _is_sparse(run, a) else run.call(sparse.matrix, [a, None, None, False], {})


@named("scipy._lib", "issparse", always=True)
@named("scipy.sparse", "isspmatrix", "issparse", always=True)
def _is_sparse(run: Context, x: object) -> bool:
    """Whether a value is a sparse matrix."""
    return isinstance(x, sparse.Sparse)


@function(sparse.width_of)
def _width_of(run: Context, a: Any) -> Any:
    return None if has_data((a.lines, a.columns)) else sparse.width_of(a)
