"""The programs of `prediction.py`: ten of different kinds, and six that a machine is measured by.

Arguments are held as tiles by the ranks, unless a program says otherwise, so that what is timed is
the program and not what rank 0 hands out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dace import SDFG
from dace import float32 as f4
from dace import float64 as f8

from distspmd.frontend import numpy_program


def product(a: f8[768, 512], b: f8[512, 640]):
    return a @ b


def chain_of_products(a: f8[512, 512], b: f8[512, 512], c: f8[512, 384]):
    return (a @ b) @ c


def jacobi(a: f8[1026, 1026]):
    b = np.copy(a)
    for _ in range(20):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:]
        )


def heat(a: f4[98, 98, 98]):
    for _ in range(10):
        b = a[1:-1, 1:-1, 1:-1] + 0.1 * (
            a[:-2, 1:-1, 1:-1]
            + a[2:, 1:-1, 1:-1]
            + a[1:-1, :-2, 1:-1]
            + a[1:-1, 2:, 1:-1]
            + a[1:-1, 1:-1, :-2]
            + a[1:-1, 1:-1, 2:]
            - 6 * a[1:-1, 1:-1, 1:-1]
        )
        a[1:-1, 1:-1, 1:-1] = b


def softmax(x: f4[2048, 1024]):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def attention(x: f4[512, 256], wq: f4[8, 256, 32], wk: f4[8, 256, 32], wv: f4[8, 256, 32]):
    q = np.einsum("se,hep->hsp", x, wq)
    k = np.einsum("se,hep->hsp", x, wk)
    v = np.einsum("se,hep->hsp", x, wv)
    e = np.exp(np.einsum("hsp,htp->hst", q, k) * 0.01)
    weights = e / np.sum(e, axis=2, keepdims=True)
    return np.einsum("hst,htp->shp", weights, v)


def perceptron(x: f4[1024, 384], w1: f4[384, 1024], w2: f4[1024, 256]):
    h = np.maximum(x @ w1, 0)
    y = h @ w2
    dy = 2 * y
    g2 = h.T @ dy
    dh = (dy @ w2.T) * (h > 0)
    g1 = x.T @ dh
    w1 -= 0.1 * g1
    w2 -= 0.1 * g2


def correlation(x: f8[1200, 400]):
    centred = x - np.mean(x, axis=0)
    scaled = centred / np.sqrt(np.mean(centred * centred, axis=0))
    return (scaled.T @ scaled) / 1200


def transposes(a: f8[1200, 1200], b: f8[1200, 1200]):
    c = a.T * 2 + b
    d = np.sum(c, axis=1)
    return np.exp(-np.abs(c.T)) + d


def rotations(a: f8[1400, 1400], u: f8[1400], v: f8[1400], y: f8[1400]):
    b = a + np.outer(u, v)
    x = b.T @ y
    return b @ x


# -- by which a machine is measured: none of them is one of the ten --


def filled(x: f8[64, 1 << 16]):
    return x * 0.5 + 1.0


def computed(x: f8[1 << 20]):
    y = (((((((x * 0.1 + 0.2) * x + 0.3) * x + 0.4) * x + 0.5) * x + 0.6) * x + 0.7) * x) * x
    return (((((((y * 0.1 + 0.2) * y + 0.3) * y + 0.4) * y + 0.5) * y + 0.6) * y + 0.7) * y) * y


def raised(x: f8[1 << 16]):
    return np.exp(-np.exp(-np.exp(-x)))


def squared(a: f8[768, 384]):
    return a @ a.T


def swept(a: f8[4096]):
    for _ in range(100):
        a[1:-1] = 0.5 * (a[:-2] + a[2:])


def turned(a: f8[1024, 1024]):
    for _ in range(10):
        b = a * 0.5
        a[:] = b + 1.0


@dataclass(frozen=True)
class Case:
    """A program, and where the caller holds what.

    Attributes:
        held: of arguments that are not distributed.
    """

    function: Callable[..., Any]
    held: dict[str, str] = field(default_factory=dict)

    def sdfg(self) -> SDFG:
        """The program; each call makes another."""
        return numpy_program(self.function)

    def arguments(self, sdfg: SDFG) -> dict[str, str]:
        """Where the caller holds each array."""
        return {
            name: self.held.get(name, "distributed")
            for name in sdfg.arglist()
            if name in sdfg.arrays
        }


ROOT = {"a": "root", "b": "root", "__return": "root"}

CASES = {
    case.function.__name__: case
    for case in (
        Case(product, ROOT),
        Case(chain_of_products),
        Case(jacobi),
        Case(heat),
        Case(softmax),
        Case(attention),
        Case(perceptron),
        Case(correlation),
        Case(transposes),
        Case(rotations),
    )
}

MEASURED = {
    case.function.__name__: case for case in map(Case, (filled, computed, raised, squared, swept))
}
TURNED = Case(turned)
