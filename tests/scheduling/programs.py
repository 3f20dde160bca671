"""Programs that schedules are searched for, of sizes where splitting pays."""

import numpy as np
from dace import SDFG
from dace import float32 as f4
from dace import float64 as f8

import distspmd
from distspmd.frontend import numpy_program
from distspmd.plans.machine import Machine

FAST = Machine(alpha=1e-12, beta=1e-16, copy=5e-17, launch=0)
"""A machine on which all that can be split is."""


def product(m: int, n: int, k: int) -> SDFG:
    """A product of matrices that rank 0 holds."""

    def multiplied(a: f8[m, k], b: f8[k, n]):  # type: ignore[valid-type]
        return a @ b

    return numpy_program(multiplied)


def powers(n: int) -> SDFG:
    """A matrix that is squared ten times: each product is made of what the one before left."""

    def squared(a: f8[n, n]):  # type: ignore[valid-type]
        for _ in range(10):
            c = a @ a
            a[:] = c * 0.5

    return numpy_program(squared)


def stencil(n: int, m: int) -> SDFG:
    """Two sweeps of five points, many times."""

    def jacobi(a: f8[n, m]):  # type: ignore[valid-type]
        b = np.copy(a)
        for _ in range(100):
            b[1:-1, 1:-1] = 0.2 * (
                a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
            )
            a[1:-1, 1:-1] = 0.2 * (
                b[1:-1, 1:-1] + b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:]
            )

    return numpy_program(jacobi)


def training_step(batch: int, inner: int) -> SDFG:
    """A step of gradient descent of a network of two layers."""

    def step(
        x: f4[batch, 512],  # type: ignore[valid-type]
        w1: f4[512, inner],  # type: ignore[valid-type]
        w2: f4[inner, 256],  # type: ignore[valid-type]
    ):
        h = np.maximum(x @ w1, 0)
        y = h @ w2
        dy = 2 * y
        g2 = h.T @ dy
        dh = (dy @ w2.T) * (h > 0)
        g1 = x.T @ dh
        w1 -= 0.1 * g1
        w2 -= 0.1 * g2

    return numpy_program(step)


def chain(n: int) -> SDFG:
    """Maps that are fused, a transpose and a sum of rows."""

    def chained(a: f8[n, n], b: f8[n, n]):  # type: ignore[valid-type]
        c = a * 2 + b
        d = c.T + a
        return np.sum(d, axis=1), d

    return numpy_program(chained)


def heat(n: int) -> SDFG:
    """Many steps of seven points."""

    def stepped(a: f8[n, n, n]):  # type: ignore[valid-type]
        for _ in range(100):
            b = a[1:-1, 1:-1, 1:-1] + 0.1 * (
                a[:-2, 1:-1, 1:-1]
                + a[2:, 1:-1, 1:-1]
                + a[1:-1, :-2, 1:-1]
                + a[1:-1, 2:, 1:-1]
                + a[1:-1, 1:-1, :-2]
                + a[1:-1, 1:-1, 2:]
            )
            a[1:-1, 1:-1, 1:-1] = b

    return numpy_program(stepped)


def adam(batch: int, width: int, inner: int) -> SDFG:
    """A step of Adam, of a network of two layers."""

    def step(
        x: f4[batch, width],  # type: ignore[valid-type]
        w1: f4[width, inner],  # type: ignore[valid-type]
        w2: f4[inner, width],  # type: ignore[valid-type]
        m1: f4[width, inner],  # type: ignore[valid-type]
        m2: f4[inner, width],  # type: ignore[valid-type]
        s1: f4[width, inner],  # type: ignore[valid-type]
        s2: f4[inner, width],  # type: ignore[valid-type]
    ):
        h = np.maximum(x @ w1, 0)
        y = h @ w2
        dy = 2 * y
        g2 = h.T @ dy
        dh = (dy @ w2.T) * (h > 0)
        g1 = x.T @ dh
        m1[:] = 0.9 * m1 + 0.1 * g1
        m2[:] = 0.9 * m2 + 0.1 * g2
        s1[:] = 0.9 * s1 + 0.1 * g1 * g1
        s2[:] = 0.9 * s2 + 0.1 * g2 * g2
        w1 -= 0.1 * m1 / np.sqrt(s1 + 1e-6)
        w2 -= 0.1 * m2 / np.sqrt(s2 + 1e-6)

    return numpy_program(step)


def attention(batch: int, heads: int, length: int) -> SDFG:
    """Softmax of products of queries and keys, times values."""

    def attended(
        q: f4[batch, heads, length, 64],  # type: ignore[valid-type]
        k: f4[batch, heads, length, 64],  # type: ignore[valid-type]
        v: f4[batch, heads, length, 64],  # type: ignore[valid-type]
    ):
        e = np.exp(np.einsum("bhsp,bhtp->bhst", q, k))
        w = e / np.sum(e, axis=3, keepdims=True)
        return np.einsum("bhst,bhtp->bhsp", w, v)

    return numpy_program(attended)


def perceptron(n: int) -> SDFG:
    """Six layers of equal sizes, written one by one."""

    def layers(
        x: f4[n, n],  # type: ignore[valid-type]
        a: f4[n, n],  # type: ignore[valid-type]
        b: f4[n, n],  # type: ignore[valid-type]
        c: f4[n, n],  # type: ignore[valid-type]
        d: f4[n, n],  # type: ignore[valid-type]
        e: f4[n, n],  # type: ignore[valid-type]
        f: f4[n, n],  # type: ignore[valid-type]
    ):
        x1 = np.maximum(x @ a, 0)
        x2 = np.maximum(x1 @ b, 0)
        x3 = np.maximum(x2 @ c, 0)
        x4 = np.maximum(x3 @ d, 0)
        x5 = np.maximum(x4 @ e, 0)
        return np.maximum(x5 @ f, 0)

    return numpy_program(layers)


def rated(n: int) -> SDFG:
    """Weights that have nothing in common but a number."""

    def steps(
        a: f4[n, n],  # type: ignore[valid-type]
        b: f4[n, n],  # type: ignore[valid-type]
        c: f4[n, n],  # type: ignore[valid-type]
        d: f4[n, n],  # type: ignore[valid-type]
        e: f4[n, n],  # type: ignore[valid-type]
        rate: f4[1],  # type: ignore[valid-type]
    ):
        a -= rate[0] * a
        b -= rate[0] * b
        c -= rate[0] * c
        d -= rate[0] * d
        e -= rate[0] * e

    return numpy_program(steps)


PROGRAMS = {
    "product": lambda: product(640, 384, 512),
    "stencil": lambda: stencil(514, 258),
    "step": lambda: training_step(1024, 512),
    "chain": lambda: chain(600),
}


def seconds_of(
    sdfg: SDFG, schedule: object, machine: Machine | None = None, **more: object
) -> float:
    """Predicted seconds of a run, by the plans of the lowered program."""
    lowering = distspmd.lower(sdfg, schedule, machine=machine or Machine(), **more)  # type: ignore[arg-type]
    return distspmd.predict(lowering).seconds
