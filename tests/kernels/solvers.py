"""Factorisations and triangular systems."""

import dace
import numpy as np

from kernels.kernel import kernel

N, M = 14, 11


def spd(rng):
    a = rng.random((N, N))
    return a @ a.T + N * np.eye(N)


@dace.program
def cholesky(a: dace.float64[N, N]):
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, N):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])


@dace.program
def lu(a: dace.float64[N, N]):
    for i in range(N):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, N):
            a[i, j] -= a[i, :i] @ a[:i, j]


@dace.program
def lu_by_columns(a: dace.float64[N, N]):
    for k in range(N):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.multiply.outer(a[k + 1 :, k], a[k, k + 1 :])


@dace.program
def ludcmp(a: dace.float64[N, N], b: dace.float64[N]):
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(N):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, N):
            a[i, j] -= a[i, :i] @ a[:i, j]
    for i in range(N):
        y[i] = b[i] - a[i, :i] @ y[:i]
    for i in range(N - 1, -1, -1):
        x[i] = (y[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x, y


@dace.program
def trisolv(low: dace.float64[N, N], x: dace.float64[N], b: dace.float64[N]):
    for i in range(N):
        x[i] = (b[i] - low[i, :i] @ x[:i]) / low[i, i]


@dace.program
def durbin(r: dace.float64[N]):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, N):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@dace.program
def gramschmidt(a: dace.float64[N, M]):
    q = np.zeros_like(a)
    r = np.zeros((M, M), np.float64)
    for k in range(M):
        nrm = np.dot(a[:, k], a[:, k])
        r[k, k] = np.sqrt(nrm)
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, M):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


KERNELS = [
    kernel(
        cholesky,
        {"dot_a_slice": "z_", "dot_a_slice_1": "z_"},
        a=spd,
        by_dace={"dot_a_slice_a_slice": "__i", "dot_a_slice_a_slice_0": "__i"},
    ),
    kernel(
        lu,
        {"a_slice_matmul_a_slice": "k", "a_slice_matmul_a_slice_1": "k"},
        a=spd,
        by_dace={"a_slice_matmul_a_slice": "__i0", "a_slice_matmul_a_slice_0": "__i0"},
    ),
    kernel(lu_by_columns, {"a": "__i0", "a.2": "__i0 __i1"}, a=spd),
    kernel(
        ludcmp,
        {
            "a_slice_matmul_a_slice": "k",
            "a_slice_matmul_a_slice_1": "k",
            "a_slice_matmul_y_slice": "k",
            "a_slice_matmul_x_slice": "k",
        },
        a=spd,
        by_dace={
            "a_slice_matmul_a_slice": "__i0",
            "a_slice_matmul_a_slice_0": "__i0",
            "a_slice_matmul_y_slice": "__i0",
            "a_slice_matmul_x_slice": "__i0",
        },
    ),
    kernel(
        trisolv,
        {"low_slice_matmul_x_slice": "k"},
        low=spd,
        by_dace={"low_slice_matmul_x_slice": "__i0"},
    ),
    kernel(
        durbin,
        {"dot_expr": "z_", "__return.3": "__i0"},
        by_dace={"dot_expr_y_slice": "__i", "__return.2": "__i0"},
    ),
    kernel(gramschmidt, {"__return_0.2": "__i0", "a": "__i0"}),
]
