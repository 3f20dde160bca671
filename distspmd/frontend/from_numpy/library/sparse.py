"""``scipy.sparse``: matrices as their entries, or whole where entries are written one by one.

Entries at one place are added. Zeros that NumPy would leave out may be entries, so that SciPy is
asked for what it stores, of a matrix that is as it was made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.matrixlib import asmatrix

from distspmd.frontend.from_numpy.library.banded import tridiagonal


class Sparse:
    """A matrix: ``data`` at ``row`` and ``col``, or ``whole``."""

    def __init__(
        self, data: Any, row: Any, col: Any, shape: Any, whole: Any, is_array: Any, kind: Any = ""
    ) -> None:
        self.entries = data
        self.lines = row
        self.columns = col
        self.shape = shape
        self.whole = whole
        self.is_array = is_array
        self.format = kind
        self.is_given = False
        self.ndim = 2
        self.dtype = data.dtype if whole is None else whole.dtype

    def __getattr__(self, name: str) -> Any:
        return stored_part(self, name)

    def like(self, data: object, row: object, col: object, shape: object) -> Sparse:
        """A matrix of entries, and of this kind."""
        return Sparse(data, row, col, shape, None, self.is_array)

    def full(self, whole: Any) -> Sparse:
        """A whole matrix of this kind."""
        return Sparse(None, None, None, whole.shape, whole, self.is_array)

    def toarray(self) -> Any:
        """The matrix as an array."""
        if self.whole is not None:
            return self.whole.copy()
        found = np.zeros(self.shape, self.dtype)
        np.add.at(found, (self.lines, self.columns), self.entries)
        return found

    def todense(self) -> Any:
        """The matrix as an array, or as an ``np.matrix``."""
        return self.dense(self.toarray())

    def dense(self, whole: Any) -> Any:
        """What SciPy gives that is not sparse: an array, or an ``np.matrix``."""
        return whole if self.is_array else asmatrix(whole)

    @property
    def A(self) -> Any:  # noqa: N802
        """The matrix as an array."""
        return self.toarray()

    @property
    def T(self) -> Sparse:  # noqa: N802
        """The transposed matrix."""
        return self.transpose()

    def transpose(self) -> Sparse:
        """The transposed matrix."""
        if self.whole is not None:
            return self.full(self.whole.T.copy())
        return self.like(self.entries, self.columns, self.lines, self.shape[::-1])

    def asformat(self, format: object, copy: object = False) -> Any:
        """The matrix in another format, a copy; or itself."""
        if self.format == format:
            return self
        found = self.copy()
        found.format = format
        return found

    def tocsr(self) -> Any:
        """The matrix in this format."""
        return self.asformat("csr")

    def tocsc(self) -> Any:
        """The matrix in this format."""
        return self.asformat("csc")

    def tocoo(self) -> Any:
        """The matrix in this format."""
        return self.asformat("coo")

    def tolil(self) -> Any:
        """The matrix in this format."""
        return self.asformat("lil")

    def todok(self) -> Any:
        """The matrix in this format."""
        return self.asformat("dok")

    def tobsr(self) -> Any:
        """The matrix in this format."""
        return self.asformat("bsr")

    def copy(self) -> Sparse:
        """A copy."""
        if self.whole is not None:
            return self.full(self.whole.copy())
        return self.like(self.entries.copy(), self.lines, self.columns, self.shape)

    def astype(self, dtype: object) -> Sparse:
        """The matrix in another type."""
        if self.whole is not None:
            return self.full(self.whole.astype(dtype))
        return self.like(self.entries.astype(dtype), self.lines, self.columns, self.shape)

    def conj(self) -> Sparse:
        """The conjugate matrix."""
        return self.scaled(np.conj)

    def scaled(self, by: Any) -> Sparse:
        """The matrix with each entry changed."""
        if self.whole is not None:
            return self.full(by(self.whole))
        return self.like(by(self.entries), self.lines, self.columns, self.shape)

    def dot(self, other: Any) -> Any:
        """The product with a vector or a matrix."""
        if isinstance(other, Sparse):
            return self.full(self.toarray() @ other.toarray())
        if np.ndim(other) == 0:
            return self.scaled(lambda values: values * other)
        if self.whole is not None:
            return self.whole @ np.asarray(other)
        x = np.asarray(other)
        kind = np.result_type(self.entries, x)
        parts = x[self.columns]
        parts = self.entries * parts if x.ndim == 1 else self.entries[:, None] * parts
        found = np.zeros((self.shape[0], *x.shape[1:]), kind)
        np.add.at(found, self.lines, parts)
        return found

    def multiply(self, other: Any) -> Any:
        """The product of entries."""
        if isinstance(other, Sparse):
            return self.full(self.toarray() * other.toarray())
        if np.ndim(other) == 0:
            return self.dot(other)
        return self.full(self.toarray() * np.asarray(other))

    def __matmul__(self, other: object) -> Any:
        return self.dot(other)

    def __rmatmul__(self, other: object) -> Any:
        return self.transpose().dot(np.asarray(other).T).T

    def __mul__(self, other: object) -> Any:
        return self.multiply(other) if self.is_array else self.dot(other)

    def __rmul__(self, other: Any) -> Any:
        if np.ndim(other) == 0:
            return self.dot(other)
        return self.multiply(other) if self.is_array else self.__rmatmul__(other)

    def __truediv__(self, other: object) -> Sparse:
        return self.scaled(lambda values: values / other)

    def __neg__(self) -> Sparse:
        return self.scaled(lambda values: -values)

    def __add__(self, other: object) -> Any:
        if not isinstance(other, Sparse):
            return self.dense(self.toarray() + np.asarray(other))
        if self.whole is not None or other.whole is not None:
            return self.full(self.toarray() + other.toarray())
        return self.like(
            np.concatenate((self.entries, other.entries)),
            np.concatenate((self.lines, other.lines)),
            np.concatenate((self.columns, other.columns)),
            self.shape,
        )

    def __radd__(self, other: object) -> Any:
        return self.__add__(other)

    def __sub__(self, other: Any) -> Any:
        return self.__add__(-other)

    def __rsub__(self, other: object) -> Any:
        return self.dense(np.asarray(other) - self.toarray())

    def __abs__(self) -> Sparse:
        if self.whole is None:
            return self.full(np.abs(self.toarray()))
        return self.scaled(np.abs)

    def __pow__(self, n: Any) -> Sparse:
        if self.is_array:
            return self.power(n)
        return self.full(np.linalg.matrix_power(self.toarray(), n))

    def power(self, n: object) -> Sparse:
        """The power of each entry."""
        return self.full(self.toarray() ** n)

    def __getitem__(self, key: object) -> Any:
        found = self.toarray()[key]
        if self.is_array or np.ndim(found) == 0:
            return self.full(found) if np.ndim(found) == 2 else found
        if np.ndim(found) == 1 and isinstance(key, tuple):
            if not isinstance(key[0], slice) and not isinstance(key[1], slice):
                return asmatrix(found)
            return self.full(found[None] if isinstance(key[1], slice) else found[:, None])
        return self.full(found[None] if np.ndim(found) == 1 else found)

    def getrow(self, i: object) -> Any:
        """A row, as a matrix."""
        return self.full(self.toarray()[i][None])

    def getcol(self, j: object) -> Any:
        """A column, as a matrix."""
        return self.full(self.toarray()[:, j][:, None])

    def __setitem__(self, key: object, value: object) -> None:
        if self.whole is None:
            self.whole = self.toarray()
        self.is_given = False
        self.whole[key] = value.toarray() if isinstance(value, Sparse) else value

    def diagonal(self, k: Any = 0) -> Any:
        """A diagonal."""
        return np.diagonal(self.toarray(), k)

    def setdiag(self, values: Any, k: Any = 0) -> None:
        """Write a diagonal."""
        whole = self.toarray()
        n = min(self.shape[0] + min(k, 0), self.shape[1] - max(k, 0))
        places = np.arange(n)
        whole[places + max(-k, 0), places + max(k, 0)] = values
        self.whole = whole

    def sum(self, axis: Any = None) -> Any:
        """The sum of all entries, or of those along an axis."""
        return np.sum(self.todense(), axis=axis)

    def mean(self, axis: Any = None) -> Any:
        """The mean of all entries, or of those along an axis."""
        return np.mean(self.todense(), axis=axis)

    def max(self) -> Any:
        """The largest entry."""
        return np.max(self.toarray())

    def min(self) -> Any:
        """The smallest entry."""
        return np.min(self.toarray())

    def nonzero(self) -> Any:
        """The places of what is not zero."""
        return np.nonzero(self.toarray())

    def trace(self) -> Any:
        """The sum of the diagonal."""
        return np.trace(self.toarray())


def stored_part(matrix: object, name: object) -> Any:
    """What SciPy stores of a matrix; the front end asks for it, and Python finds nothing.

    Raises:
        AttributeError: always.
    """
    raise AttributeError(name)


def matrix(arg: Any, shape: Any, dtype: Any, is_array: Any, kind: Any = "") -> Sparse:
    """A matrix from an array, a shape, another matrix, entries, or rows that end somewhere."""
    if isinstance(arg, Sparse):
        found = Sparse(arg.entries, arg.lines, arg.columns, arg.shape, arg.whole, is_array, kind)
        found = found.copy()
        found.format = kind
    elif isinstance(arg, tuple) and len(arg) == 3:
        raise NotImplementedError("a sparse matrix by (data, indices, indptr): give (data, (i, j))")
    elif isinstance(arg, tuple) and np.ndim(arg[0]) == 0:
        whole = np.zeros(arg, float if dtype is None else dtype)
        return Sparse(None, None, None, whole.shape, whole, is_array, kind)
    elif isinstance(arg, tuple):
        if shape is None:
            raise NotImplementedError("a sparse matrix of entries without shape=")
        row, col = arg[1]
        entries = np.asarray(arg[0])
        found = Sparse(
            entries, np.asarray(row), np.asarray(col), tuple(shape), None, is_array, kind
        )
        found.is_given = kind in ("csr", "csc", "coo")
    else:
        whole = np.array(np.atleast_2d(np.asarray(arg)))
        found = Sparse(None, None, None, whole.shape, whole, is_array, kind)
        found.is_given = kind in ("csr", "csc", "coo")
    return found if dtype is None else found.astype(dtype)


def banded(diagonals: Any, offsets: Any, shape: Any, dtype: Any, is_array: Any) -> Sparse:
    """A matrix of diagonals; one number fills its diagonal."""
    if np.ndim(offsets) == 0:
        single = len(diagonals) == 1 and np.ndim(diagonals[0]) == 1
        diagonals = diagonals if single else [diagonals]
        offsets = [offsets]
    if shape is None:
        n = len(diagonals[0]) + abs(int(offsets[0]))
        shape = (n, n)
    m, n = shape
    data, rows, cols = [], [], []
    for values, k in zip(diagonals, offsets, strict=True):
        k = int(k)
        length = min(m + min(k, 0), n - max(k, 0))
        line = np.asarray(values) * 1.0
        if line.ndim == 1 and line.shape[0] not in (1, length):
            raise ValueError(f"Diagonal length does not agree with array size ({m}, {n}).")
        data.append(np.broadcast_to(line, (length,)))
        rows.append(np.arange(length) + max(-k, 0))
        cols.append(np.arange(length) + max(k, 0))
    found = np.concatenate(data)
    found = found if dtype is None else found.astype(dtype)
    return Sparse(
        found, np.concatenate(rows), np.concatenate(cols), (int(m), int(n)), None, is_array
    )


def by_columns(data: Any, diags: Any, m: Any, n: Any) -> Sparse:
    """``scipy.sparse.spdiags``: entry ``j`` of a diagonal is in column ``j``."""
    lines = np.atleast_2d(np.asarray(data) * 1.0)
    height, width = (m[0], m[1]) if isinstance(m, tuple) else (m, n)
    height, width = (lines.shape[1],) * 2 if height is None else (height, width)
    entries, rows, cols = [], [], []
    for line, k in zip(range(lines.shape[0]), np.atleast_1d(diags), strict=True):
        k = int(k)
        first, last = max(k, 0), min(width, height + k, lines.shape[1])
        entries.append(lines[line, first:last])
        cols.append(np.arange(first, last))
        rows.append(np.arange(first, last) - k)
    found = np.concatenate(entries)
    shape = (int(height), int(width))
    return Sparse(found, np.concatenate(rows), np.concatenate(cols), shape, None, False)


def by_diagonals(arg: object, shape: object, dtype: object, is_array: object) -> Sparse:
    """``scipy.sparse.dia_matrix``: of diagonals by columns, or as other matrices."""
    if isinstance(arg, tuple) and len(arg) == 2 and np.ndim(arg[0]) > 0:
        if shape is None:
            raise ValueError("expected a shape argument")
        found = by_columns(arg[0], arg[1], shape, None)
        found.is_array = is_array
        return found if dtype is None else found.astype(dtype)
    return matrix(arg, shape, dtype, is_array, "dia")


def kron(a: Any, b: Any) -> Any:
    """The product of Kronecker."""
    if a.whole is not None or b.whole is not None:
        return a.full(np.kron(a.toarray(), b.toarray()))
    m, n = b.shape
    return a.like(
        (a.entries[:, None] * b.entries).ravel(),
        (a.lines[:, None] * m + b.lines).ravel(),
        (a.columns[:, None] * n + b.columns).ravel(),
        (a.shape[0] * m, a.shape[1] * n),
    )


def width_of(a: Any) -> Any:
    """How far entries are from the diagonal; None where that is not known before the run."""
    return int(np.max(np.abs(a.lines - a.columns))) if a.lines.size else 0


def solve(a: Any, b: object) -> Any:
    """A system of equations: of three diagonals by elimination, others as a whole matrix."""
    right = b.toarray() if isinstance(b, Sparse) else np.asarray(b) * 1.0
    if right.ndim == 2 and right.shape[1] == 1:
        right = right[:, 0]
    whole = a.toarray() * 1.0
    width = None if a.whole is not None else width_of(a)
    if width is not None and width <= 1 and a.shape[0] > 1:
        lines = [np.diagonal(whole, k) for k in (-1, 0, 1)]
        return tridiagonal(lines[0], lines[1], lines[2], right)
    try:
        return np.linalg.solve(whole, right)
    except np.linalg.LinAlgError:  # rounding decides whether a pivot is 0, here or in SuperLU
        found = np.linalg.lstsq(whole, right)[0]
        rest = np.max(np.abs(whole @ found - right))
        return np.where(rest <= 1e-8 * np.max(np.abs(right)), found, np.nan)


class Solver:
    """What ``splu`` and ``factorized`` give: it solves for right-hand sides."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __call__(self, b: object) -> Any:
        """The solution for a right-hand side."""
        return solve(self.a, b)

    def solve(self, b: object) -> Any:
        """The solution for a right-hand side."""
        return solve(self.a, b)


def cg(
    A: Any,  # noqa: N803
    b: Any,
    x0: Any = None,
    *,
    rtol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: Any = None,
    M: Any = None,  # noqa: N803
    callback: object = None,
) -> Any:
    """``scipy.sparse.linalg.cg``: conjugate gradients, and 0 where they converged."""
    if callback is not None:
        raise NotImplementedError("scipy.sparse.linalg.cg with callback=")
    right = np.ravel(np.asarray(b) * 1.0)
    x = np.zeros(right.shape[0]) if x0 is None else np.ravel(np.array(x0) * 1.0)
    rest = right - A @ x
    limit = np.maximum(atol, rtol * np.sqrt(np.sum(right * right)))
    most = 10 * right.shape[0] if maxiter is None else maxiter
    way = np.zeros(right.shape[0])
    before = 1.0
    rounds = 0
    done = bool(np.sqrt(np.sum(rest * rest)) < limit)
    while not done and rounds < most:
        turned = rest if M is None else M @ rest
        along = np.sum(rest * turned)
        way = turned + along / before * way if rounds > 0 else turned + 0.0
        slope = A @ way
        step = along / np.sum(way * slope)
        x = x + step * way
        rest = rest - step * slope
        before = along
        rounds = rounds + 1
        done = bool(np.sqrt(np.sum(rest * rest)) < limit)
    return x, 0 if done else most
