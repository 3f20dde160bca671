"""Reductions, broadcasting, and sums over random samples.

A reduction whose summands are cut gives each rank an operand of the result; the operands are
combined once, with what the result held before. An element-wise operation with broadcasting gives
each rank the part of the smaller operand that its part of the larger one needs, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from showing import SMALL, Example, main

import distspmd

if TYPE_CHECKING:  # the ranks that run a program need no DaCe
    import dace

N, M = (37, 29) if SMALL else (4000, 3000)
SAMPLES = 1001 if SMALL else 10_000_000


def accumulated(x: dace.float64[N, M], y: dace.float64[M]):
    for i, j in distspmd.map[0:N, 0:M]:
        y[j] += x[i, j]


def initialised(x: dace.float64[N, M]):
    return np.sum(x, axis=0)


def broadcast(x: dace.float64[N, M], y: dace.float64[M]):
    return x * y + 1


def monte_carlo(x: dace.float64[SAMPLES], y: dace.float64[SAMPLES]):
    inside = np.zeros((1,), np.float64)
    for i in distspmd.map[0:SAMPLES]:
        if x[i] * x[i] + y[i] * y[i] < 1:
            inside[0] += 4.0
    return inside / SAMPLES


def quarter_of_a_disc(x, y):
    return np.array([4.0 * np.count_nonzero(x * x + y * y < 1) / SAMPLES])


def matrix_and_vector(rng):
    return {"x": rng.random((N, M)), "y": rng.random(M)}


def matrix(rng):
    return {"x": rng.random((N, M))}


def samples(rng):
    return {"x": rng.random(SAMPLES), "y": rng.random(SAMPLES)}


EXAMPLES = [
    Example(accumulated, {"y": (4, 1)}, "operands of all ranks are added to y", matrix_and_vector),
    Example(initialised, {"__return": (1, 4)}, "operands of all ranks are added", matrix),
    Example(initialised, {"__return": (2, 2)}, "operands of 2 ranks are added", matrix),
    Example(broadcast, {"__return": (2, 2)}, "nothing moves between ranks", matrix_and_vector),
    Example(monte_carlo, {"inside.2": (4,)}, "one sum of all ranks", samples, quarter_of_a_disc),
]

if __name__ == "__main__":
    main(__file__, EXAMPLES)
