"""Functions of matrices, and matrices of given structure, as ``scipy.linalg`` has them."""

from __future__ import annotations

from typing import Any

import numpy as np

_PADE = (
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0),
    *(129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0),
    *(40840800.0, 960960.0, 16380.0, 182.0, 1.0),
)
"""Coefficients of the diagonal Pade approximant of degree 13 (Higham, 2005)."""


def expm(A: Any) -> Any:  # noqa: N803
    """The exponential of matrices: a Pade approximant of a scaled one, squared again."""
    a = np.asarray(A)
    if a.ndim < 2:
        if a.size != 1:
            raise np.linalg.LinAlgError("The input array must be at least two-dimensional")
        return np.exp(a).reshape(1, 1)
    if a.shape[-1] == 1:
        return np.exp(a)
    a = a * np.ones(1, np.result_type(a, np.float32) if a.dtype.kind in "fc" else np.float64)
    size = np.max(np.sum(np.abs(a), axis=-2))
    halvings = 0
    scale = 1.0
    while size * scale > 5.371920351148152:
        halvings += 1
        scale = scale * 0.5
    found = pade(a * np.asarray(scale, a.real.dtype))
    for _ in range(halvings):
        found = found @ found
    return found


def pade(a: Any) -> Any:
    """The approximant of degree 13 of the exponential."""
    b = _PADE
    one = np.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2)
    odd = a @ (odd + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2)
    even = even + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    return np.linalg.solve(even - odd, even + odd)


def sqrtm(A: Any) -> Any:  # noqa: N803
    """The principal root of a matrix that has no eigenvalue below zero (Denman and Beavers)."""
    a = np.asarray(A) * 1.0
    one = np.eye(a.shape[-1], dtype=a.dtype)
    root = a
    rest = a
    steps = 0
    far = np.max(np.abs(rest - one))
    before = np.inf
    while steps < 60 and far > 0 and (far > 1e-3 or far < before):
        inverse = np.linalg.inv(rest)
        root = 0.5 * (root @ (one + inverse))
        rest = 0.5 * (one + 0.5 * (rest + inverse))
        before = far
        far = np.max(np.abs(rest - one))
        steps += 1
    if not far < 1e-6:
        raise ValueError("the matrix has eigenvalues below zero, or is singular: no real root")
    return root


def hankel(c: Any, r: Any = None) -> Any:
    """A matrix that is constant along its other diagonals."""
    column = np.ravel(c)
    row = np.zeros_like(column) if r is None else np.ravel(r)
    values = np.concatenate((column, row[1:]))
    return values[np.arange(len(column))[:, None] + np.arange(len(row))]


def circulant(c: Any) -> Any:
    """A matrix whose columns are the first one, moved in a circle."""
    column = np.asarray(c)
    n = column.shape[-1]
    return column[..., (np.arange(n)[:, None] - np.arange(n)) % n]


def companion(a: Any) -> Any:
    """The matrix whose characteristic polynomial has given coefficients."""
    given = np.asarray(a) * 1.0
    n = given.shape[0] - 1
    found = np.zeros((n, n), given.dtype)
    found[0] = -given[1:] / given[0]
    found[np.arange(1, n), np.arange(n - 1)] = 1
    return found


def lu(
    a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Permutation, lower and upper triangle."""
    from scipy.linalg import lu_factor  # type: ignore[import-untyped,unused-ignore]

    packed, pivots = lu_factor(a)
    m, n = packed.shape
    k = min(m, n)
    order = np.arange(m)
    for i in range(k):
        other = pivots[i]
        held = order[i]
        order[i] = order[other]
        order[other] = held
    places = np.zeros((m, m), packed.dtype)
    places[order, np.arange(m)] = 1
    lower = np.tril(packed[:, :k], -1) + np.eye(m, k, dtype=packed.dtype)
    upper = np.triu(packed[:k])
    return (places @ lower, upper) if permute_l else (places, lower, upper)


def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """Orthogonal and triangular factor."""
    if pivoting:
        raise NotImplementedError("scipy.linalg.qr with pivoting=True")
    if mode == "r":
        upper: Any = np.linalg.qr(a, "r")
        m, k = np.shape(a)[0], upper.shape[0]
        return (np.concatenate((upper, np.zeros((m - k, upper.shape[1]), upper.dtype))),)
    q, r = np.linalg.qr(a, "complete" if mode == "full" else "reduced")
    return q, r


def polar(a: Any, side: str = "right") -> Any:
    """A unitary and a positive factor."""
    left, sizes, right = np.linalg.svd(a, full_matrices=False)
    turn = left @ right
    if side == "right":
        return turn, np.conj(right).T @ (sizes[:, None] * right)
    return turn, (left * sizes) @ np.conj(left).T


def eigenvectors(a: Any, b: Any, lower: bool) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix, or of a pair of which one is definite."""
    if b is None:
        return tuple(np.linalg.eigh(a, "L" if lower else "U"))
    inside = np.tril(a) if lower else np.triu(a)
    whole = inside + np.conj(inside).T - np.diag(np.diag(a))
    factor = np.linalg.cholesky(b) if lower else np.linalg.cholesky(b, upper=True).conj().T
    half = np.linalg.solve(factor, whole)
    values, vectors = np.linalg.eigh(np.linalg.solve(factor, np.conj(half).T))
    return values, np.linalg.solve(np.conj(factor).T, vectors)
