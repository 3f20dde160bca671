"""Products of matrices and vectors."""

import dace
import numpy as np

from kernels.kernel import kernel

NI, NJ, NK, NL = 13, 17, 11, 14


@dace.program
def gemm(
    alpha: dace.float64,
    beta: dace.float64,
    c: dace.float64[NI, NJ],
    a: dace.float64[NI, NK],
    b: dace.float64[NK, NJ],
):
    c[:] = alpha * a @ b + beta * c


@dace.program
def k2mm(
    alpha: dace.float64,
    beta: dace.float64,
    a: dace.float64[NI, NK],
    b: dace.float64[NK, NJ],
    c: dace.float64[NJ, NL],
    d: dace.float64[NI, NL],
):
    d[:] = alpha * a @ b @ c + beta * d


@dace.program
def k3mm(
    a: dace.float64[NI, NK],
    b: dace.float64[NK, NJ],
    c: dace.float64[NJ, NL],
    d: dace.float64[NL, NI],
):
    return a @ b @ c @ d


@dace.program
def atax(a: dace.float64[NI, NJ], x: dace.float64[NJ]):
    return (a @ x) @ a


@dace.program
def bicg(a: dace.float64[NI, NJ], p: dace.float64[NJ], r: dace.float64[NI]):
    return r @ a, a @ p


@dace.program
def mvt(
    x1: dace.float64[NI],
    x2: dace.float64[NI],
    y1: dace.float64[NI],
    y2: dace.float64[NI],
    a: dace.float64[NI, NI],
):
    x1 += a @ y1
    x2 += y2 @ a


@dace.program
def gesummv(
    alpha: dace.float64,
    beta: dace.float64,
    a: dace.float64[NI, NI],
    b: dace.float64[NI, NI],
    x: dace.float64[NI],
):
    return alpha * a @ x + beta * b @ x


@dace.program
def gemver(
    alpha: dace.float64,
    beta: dace.float64,
    a: dace.float64[NI, NI],
    u1: dace.float64[NI],
    v1: dace.float64[NI],
    u2: dace.float64[NI],
    v2: dace.float64[NI],
    w: dace.float64[NI],
    x: dace.float64[NI],
    y: dace.float64[NI],
    z: dace.float64[NI],
):
    a += np.multiply.outer(u1, v1) + np.multiply.outer(u2, v2)
    x += beta * y @ a + z
    w += alpha * a @ x


@dace.program
def symm(
    alpha: dace.float64,
    beta: dace.float64,
    c: dace.float64[NI, NJ],
    a: dace.float64[NI, NI],
    b: dace.float64[NI, NJ],
):
    below = np.zeros((NJ,), np.float64)
    c *= beta
    for i in range(NI):
        for j in range(NJ):
            c[:i, j] += alpha * b[i, j] * a[i, :i]
            below[j] = b[:i, j] @ a[i, :i]
        c[i, :] += alpha * b[i, :] * a[i, i] + alpha * below


@dace.program
def syrk(alpha: dace.float64, beta: dace.float64, c: dace.float64[NI, NI], a: dace.float64[NI, NK]):
    for i in range(NI):
        c[i, : i + 1] *= beta
        for k in range(NK):
            c[i, : i + 1] += alpha * a[i, k] * a[: i + 1, k]


@dace.program
def syr2k(
    alpha: dace.float64,
    beta: dace.float64,
    c: dace.float64[NI, NI],
    a: dace.float64[NI, NK],
    b: dace.float64[NI, NK],
):
    for i in range(NI):
        c[i, : i + 1] *= beta
        for k in range(NK):
            c[i, : i + 1] += a[: i + 1, k] * alpha * b[i, k] + b[: i + 1, k] * alpha * a[i, k]


@dace.program
def trmm(alpha: dace.float64, a: dace.float64[NI, NI], b: dace.float64[NI, NJ]):
    for i in range(NI):
        for j in range(NJ):
            b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])
    b *= alpha


@dace.program
def doitgen(a: dace.float64[NK, NI, NJ], c4: dace.float64[NJ, NJ]):
    for r in range(NK):
        a[r] = a[r] @ c4


KERNELS = [
    kernel(gemm, {"expr_matmul_b": "i j"}, by_dace={"alpha_a_matmul_b": "__i0 __i1"}),
    kernel(
        k2mm,
        {"expr_matmul_b": "i j", "expr_matmul_c": "i j"},
        by_dace={"alpha_a_matmul_b": "__i0 __i1", "alpha_a_b_matmul_c": "__i0 __i1"},
    ),
    kernel(
        k3mm,
        {"a_matmul_b": "i j", "expr_matmul_c": "i j", "__return": "i j"},
        by_dace={"a_matmul_b": "__i0 __i1", "a_b_matmul_c": "__i0 __i1", "__return": "__i0 __i1"},
    ),
    kernel(
        atax,
        {"a_matmul_x": "i k", "__return": "k j"},
        by_dace={"a_matmul_x": "__i0 __i1", "__return": "__i1 __i0"},
    ),
    kernel(
        bicg,
        {"__return_0": "k j", "__return_1": "i k"},
        by_dace={"__return_0": "__i0 __i1", "__return_1": "__i1 __i0"},
    ),
    kernel(
        mvt,
        {"a_matmul_y1": "i k", "y2_matmul_a": "k j"},
        by_dace={"a_matmul_y1": "__i0 __i1", "y2_matmul_a": "__i1 __i0"},
    ),
    kernel(
        gesummv,
        {"expr_matmul_x": "i k", "expr_matmul_x_1": "i k"},
        by_dace={"alpha_a_matmul_x": "__i0 __i1", "beta_b_matmul_x": "__i0 __i1"},
    ),
    kernel(
        gemver,
        {"a": "__i0 __i1", "expr_matmul_a": "k j", "expr_matmul_x": "i k"},
        by_dace={"a": "__i0 __i1", "beta_y_matmul_a": "__i1 __i0", "alpha_a_matmul_x": "__i0 __i1"},
    ),
    kernel(
        symm,
        {"c": "__i0 __i1", "c.2": "__i0", "b_slice_matmul_a_slice": "k", "c.3": "__i0"},
        by_dace={"c": "__i0 __i1", "c.2": "__i0", "below_slice": "__i0", "c.3": "__i0"},
    ),
    kernel(syrk, {"c": "__i0", "c.2": "__i0"}, by_dace={"c": "__i0 __i1", "c.2": "__i0"}),
    kernel(syr2k, {"c": "__i0", "c.2": "__i0"}, by_dace={"c": "__i0 __i1", "c.2": "__i0"}),
    kernel(
        trmm,
        {"b.2": "__i0 __i1", "dot_a_slice": "z_"},
        by_dace={"b.2": "__i0 __i1", "dot_a_slice_b_slice": "__i"},
    ),
    kernel(doitgen, {"a_slice_matmul_c4": "i j"}, by_dace={"a_slice_matmul_c4": "__i0 __i1"}),
]
