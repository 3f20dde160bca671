"""Sums of partial values: added on the ranks where code is linear in them, else reduced apart."""

import dace
import numpy as np

from lowering.harness import cases


@dace.program
def products_added(
    a: dace.float64[10, 7], x: dace.float64[10], b: dace.float64[10, 7], y: dace.float64[10]
):
    return a.T @ x + b.T @ y


@dace.program
def weighed(a: dace.float64[10, 7], b: dace.float64[10, 7], c: dace.float64[7]):
    p = np.sum(a, axis=0)
    q = np.sum(b, axis=0)
    return np.tanh(2 * p - c - 3 * q), p - c


@dace.program
def scaled_sums(a: dace.float32[10, 9], b: dace.float32[10, 9], s: dace.float32):
    return s * np.sum(a, axis=0) - np.sum(b, axis=0) * s / 3


@dace.program
def complex_sums(a: dace.complex64[10, 7], b: dace.complex64[10, 7], c: dace.complex64[7]):
    p = np.sum(a, axis=0)
    q = np.sum(b, axis=0)
    return np.exp(p * 2 + c + q * 3j)


@dace.program
def whole_sums(a: dace.int64[10, 7], b: dace.int64[10, 7], c: dace.int64[7]):
    p = np.sum(a, axis=0)
    q = np.sum(b, axis=0)
    return np.maximum(p - 2 * q, c)


@dace.program
def not_linear(a: dace.float64[10, 7], b: dace.float64[10, 7]):
    p = np.sum(a, axis=0)
    q = np.sum(b, axis=0)
    return p * q, p + np.sin(q)


@dace.program
def in_a_loop(a: dace.float64[10, 7], b: dace.float64[10, 7], y: dace.float64[7]):
    for t in range(3):
        p = np.sum(a, axis=0)
        q = np.sum(b, axis=0)
        y[:] = np.tanh(y + p * 2 - q)
        a[:] = a * 0.5 + t


@dace.program
def tiles_of_sums(a: dace.float64[10, 8, 6], b: dace.float64[10, 8, 6]):
    return np.sum(a, axis=0) + np.sum(b, axis=0)


@dace.program
def moved_and_added(a: dace.float64[10, 7, 5], b: dace.float64[10, 5, 7]):
    p = np.sum(a, axis=0)
    q = np.sum(b, axis=0)
    t = p * 3
    return np.transpose(q) - p, np.tanh(t + np.transpose(q)), np.sin(t + np.transpose(q))


def _sums(*grids):
    return [{"sum_a": grid, "sum_b": grid} for grid in grids]


def _named(*grids):
    return [{"p": grid, "q": grid} for grid in grids]


CASES = [
    *cases(products_added, {"T_matmul_x": (1, 8), "T_matmul_y": (1, 8)}),
    *cases(products_added, {"T_matmul_x": (1, 4), "T_matmul_y": (2, 2)}),
    *cases(weighed, *_named((2, 2), (1, 6))),
    *cases(scaled_sums, *_sums((1, 4))),
    *cases(complex_sums, *_named((1, 3))),
    *cases(whole_sums, *_named((3, 2))),
    *cases(not_linear, *_named((1, 4))),
    *cases(moved_and_added, *_named((1, 1, 4), (1, 2, 2))),
    *cases(in_a_loop, *_named((1, 4))),
    *cases(tiles_of_sums, *_sums((2, 1, 2), (1, 3, 2))),
]
