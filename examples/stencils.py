"""Jacobi in 2-D and the heat equation in 3-D, over a grid of ranks.

Each rank has a block and the rim that its neighbours have computed. In each step a rank receives
that rim, no corner and nothing of the interior, into the storage of its block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from showing import SMALL, Example, main

if TYPE_CHECKING:  # the ranks that run a program need no DaCe
    import dace

N, STEPS = (34, 5) if SMALL else (4000, 50)
M = 14 if SMALL else 200


def jacobi(a: dace.float32[N, N], b: dace.float32[N, N]):
    for _t in range(STEPS // 2):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1]
        )


def heat(a: dace.float64[M, M, M], b: dace.float64[M, M, M]):
    for _t in range(STEPS // 2):
        b[1:-1, 1:-1, 1:-1] = a[1:-1, 1:-1, 1:-1] + 0.125 * (
            (a[2:, 1:-1, 1:-1] - 2 * a[1:-1, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1])
            + (a[1:-1, 2:, 1:-1] - 2 * a[1:-1, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1])
            + (a[1:-1, 1:-1, 2:] - 2 * a[1:-1, 1:-1, 1:-1] + a[1:-1, 1:-1, :-2])
        )
        a[1:-1, 1:-1, 1:-1] = b[1:-1, 1:-1, 1:-1] + 0.125 * (
            (b[2:, 1:-1, 1:-1] - 2 * b[1:-1, 1:-1, 1:-1] + b[:-2, 1:-1, 1:-1])
            + (b[1:-1, 2:, 1:-1] - 2 * b[1:-1, 1:-1, 1:-1] + b[1:-1, :-2, 1:-1])
            + (b[1:-1, 1:-1, 2:] - 2 * b[1:-1, 1:-1, 1:-1] + b[1:-1, 1:-1, :-2])
        )


def draw_plane(rng):
    a = rng.random((N, N), np.float32)
    return {"a": a, "b": a.copy()}


def draw_space(rng):
    a = rng.random((M, M, M))
    return {"a": a, "b": a.copy()}


RIM = "each rank receives the rim of its block from its neighbours, twice a turn"
EXAMPLES = [
    Example(jacobi, {"a": (2, 2), "b": (2, 2)}, RIM, draw_plane),
    Example(jacobi, {"a": (4, 1), "b": (4, 1)}, RIM, draw_plane),
    Example(heat, {"a": (2, 2, 1), "b": (2, 2, 1)}, RIM, draw_space),
]

if __name__ == "__main__":
    main(__file__, EXAMPLES)
