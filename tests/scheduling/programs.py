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
