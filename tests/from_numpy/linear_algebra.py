"""Programs of ``np.linalg``, for :mod:`from_numpy.test_linalg`: each returns what is well defined.

Signs of eigenvectors and of the factors of QR are not: products of them are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from from_numpy.corpus.registry import Case


def equations(a: Any, b: Any, c: Any, stack: Any, sides: Any, row: Any) -> Any:
    x = np.linalg.solve(a, b)
    y = np.linalg.solve(a, c)
    z = np.linalg.solve(stack, sides)
    v = np.linalg.solve(stack, row)
    w = np.linalg.solve(stack, sides[0])
    u = np.linalg.solve(a.astype(np.float32), np.arange(5))
    i = np.linalg.solve(a + 1j * np.eye(5), b)
    return x, y, z, v, w, u, i


def determinants(a: Any, stack: Any, whole: Any) -> Any:
    sign, log = np.linalg.slogdet(stack)
    both = np.linalg.slogdet(a - 2j * a.T)
    singular = np.linalg.det(np.ones((3, 3)))
    inverse = np.linalg.inv(stack) @ np.linalg.inv(a[1:4, 1:4])
    return (
        np.linalg.det(a),
        np.linalg.det(stack),
        sign * log,
        both.sign,
        both.logabsdet,
        singular,
        inverse,
        np.linalg.det(whole),
        np.linalg.inv(a.astype(np.complex64)),
    )


def factors(a: Any, stack: Any, tall: Any, many: Any) -> Any:
    definite = a @ a.T + np.eye(5)
    low = np.linalg.cholesky(definite)
    lows = np.linalg.cholesky(stack @ np.swapaxes(stack, 1, 2) + np.eye(3))
    hermitian = definite + 0.1j * (a - a.T)
    complex_low = np.linalg.cholesky(hermitian)
    high = np.linalg.cholesky(definite, upper=True)
    q, r = np.linalg.qr(tall)
    full = np.linalg.qr(tall, mode="complete")
    only = np.linalg.qr(many, mode="r")
    qs, rs = np.linalg.qr(many)
    qc, rc = np.linalg.qr(tall.T + 1j)
    return (
        low,
        lows,
        complex_low,
        high,
        q @ r,
        q.T @ q,
        full.Q @ full.R,
        full.Q.shape,
        np.abs(only),
        np.matmul(qs, rs),
        np.abs(rs),
        qc @ rc,
    )


def eigen(a: Any, stack: Any, c: Any) -> Any:
    symmetric = a + a.T
    w, v = np.linalg.eigh(symmetric)
    ws, vs = np.linalg.eigh(stack + np.swapaxes(stack, -1, -2))
    wh = np.linalg.eigvalsh(c + c.conj().T)
    wu = np.linalg.eigvalsh(a, UPLO="U")
    wc, vc = np.linalg.eig(c)
    return (
        w,
        v @ np.diag(w) @ v.T,
        ws,
        (vs * ws[:, None, :]) @ np.swapaxes(vs, -1, -2),
        wh,
        wu,
        np.sum(wc),
        np.abs(c @ vc - vc * wc) < 1e-12,
        np.prod(np.linalg.eigvals(c)),
    )


def singular(tall: Any, many: Any, c: Any, a: Any) -> Any:
    u, s, vt = np.linalg.svd(tall, full_matrices=False)
    full = np.linalg.svd(many)
    values = np.linalg.svd(many, compute_uv=False)
    uc, sc, vc = np.linalg.svd(c)
    return (
        s,
        (u * s) @ vt,
        full.U.shape,
        full.S,
        values,
        (uc * sc) @ vc,
        np.linalg.pinv(tall),
        np.linalg.pinv(many),
        np.linalg.pinv(c[:, :2]),
        np.linalg.matrix_rank(tall @ tall.T),
        np.linalg.matrix_rank(many),
        np.linalg.matrix_rank(np.zeros((2, 2))),
        np.linalg.cond(a),
        np.linalg.cond(many, -2),
        np.linalg.cond(a, 1),
        np.linalg.matrix_power(a, 5),
        np.linalg.matrix_power(a, -2),
        np.linalg.matrix_power(a, 0),
    )


def least_squares(tall: Any, b: Any, wide: Any, c: Any) -> Any:
    x, residuals, rank, s = np.linalg.lstsq(tall, b, rcond=None)
    y, more, _, _ = np.linalg.lstsq(tall, b[:, 0], rcond=1e-10)
    z = np.linalg.lstsq(wide, c, rcond=None)[0]
    low = np.linalg.lstsq(np.ones((4, 2)), np.arange(4.0), rcond=None)
    return x, residuals, rank, s, y, more, z, low[0], low[2]


def norms(a: Any, stack: Any, c: Any, k: Any) -> Any:
    return (
        np.linalg.norm(a),
        np.linalg.norm(a[0]),
        np.linalg.norm(c),
        np.linalg.norm(k),
        np.linalg.norm(stack, axis=(1, 2)),
        np.linalg.norm(stack, axis=1),
        np.linalg.norm(stack, axis=-1, keepdims=True),
        np.linalg.norm(a, 1),
        np.linalg.norm(a, -1),
        np.linalg.norm(a, np.inf),
        np.linalg.norm(c, -np.inf),
        np.linalg.norm(a, 2),
        np.linalg.norm(stack, -2, axis=(0, 1)),
        np.linalg.norm(a, "nuc"),
        np.linalg.norm(stack, "fro", axis=(1, 2), keepdims=True),
        np.linalg.norm(a[1], 0),
        np.linalg.norm(a[1], 1),
        np.linalg.norm(c[1], np.inf),
        np.linalg.norm(a[1], -np.inf),
        np.linalg.norm(a, 3, axis=0),
        np.linalg.norm(a.astype(np.float32), axis=1),
        np.linalg.norm(stack, keepdims=True),
        np.linalg.vector_norm(stack, axis=(0, 2)),
        np.linalg.matrix_norm(stack, ord=1),
        np.linalg.norm(a[0] - a[1]) ** 2,
        np.linalg.vecdot(a, a[1]),
        np.linalg.trace(stack),
        np.linalg.diagonal(stack, offset=1),
        np.linalg.matrix_transpose(stack),
    )


def iteration(a: Any, x: Any, n: int) -> Any:
    """A loop with a factorisation in each turn, on a part of an array."""
    for k in range(n):
        x[k] = np.linalg.solve(a[k] + 3 * np.eye(3), x[k - 1])
        a[k] /= np.linalg.norm(a[k])
    return x


def by_scipy(a: Any, b: Any, c: Any) -> Any:
    from scipy import linalg

    definite = a @ a.T + np.eye(5)
    high = linalg.cholesky(definite)
    x = linalg.solve_triangular(high, b)
    y = linalg.solve_triangular(a, c, lower=True, trans=1, unit_diagonal=True)
    factors = linalg.lu_factor(a)
    z = linalg.lu_solve(factors, b)
    w = linalg.cho_solve((high, False), c)
    return high, x, y, *factors, z, w, linalg.solve(a, c), linalg.inv(a)


def _matrix(rng: Generator, *shape: int) -> Any:
    return rng.standard_normal(shape)


def _complex(rng: Generator, *shape: int) -> Any:
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def inner_nodes(a, b, fixed):
    """Matrices of which the data decide the size."""
    free = np.setdiff1d(np.arange(len(a)), fixed)
    inner = a[np.ix_(free, free)]
    x = np.zeros(len(a))
    x[free] = np.linalg.solve(inner, b[free])
    root = np.linalg.cholesky(inner @ inner.T)
    back = np.linalg.inv(inner) @ np.linalg.solve(inner, a[free])
    return x, np.linalg.det(inner), back.sum(axis=0), (root**2).sum()


PROGRAMS = {
    equations: lambda r: (
        *(_matrix(r, 5, 5), _matrix(r, 5, 4), _matrix(r, 5)),
        *(_matrix(r, 7, 3, 3), _matrix(r, 7, 3, 2), _matrix(r, 3)),
    ),
    determinants: lambda r: (_matrix(r, 5, 5), _matrix(r, 4, 3, 3), r.integers(-5, 5, (4, 4))),
    factors: lambda r: (
        _matrix(r, 5, 5),
        _matrix(r, 4, 3, 3),
        _matrix(r, 6, 4),
        _matrix(r, 5, 2, 3),
    ),
    eigen: lambda r: (_matrix(r, 5, 5), _matrix(r, 4, 3, 3), _complex(r, 4, 4)),
    singular: lambda r: (
        *(_matrix(r, 6, 4), _matrix(r, 5, 2, 3)),
        *(_complex(r, 4, 4), _matrix(r, 4, 4)),
    ),
    least_squares: lambda r: (_matrix(r, 7, 3), _matrix(r, 7, 2), _matrix(r, 2, 5), _matrix(r, 2)),
    norms: lambda r: (
        *(_matrix(r, 4, 5), _matrix(r, 4, 3, 5)),
        *(_complex(r, 3, 4), r.integers(-9, 9, (3, 3))),
    ),
    by_scipy: lambda r: (_matrix(r, 5, 5), _matrix(r, 5, 2), _matrix(r, 5)),
    inner_nodes: lambda r: (_matrix(r, 7, 7), _matrix(r, 7), np.array([6, 2, 0, 2])),
    iteration: lambda r: (_matrix(r, 4, 3, 3), _matrix(r, 4, 3), 4),
}

CASES = [
    Case(function.__name__, function, "linear algebra", "NumPy", make, ())
    for function, make in PROGRAMS.items()
]
