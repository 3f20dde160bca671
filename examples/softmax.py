"""Softmax along the last dimension: one map over the others, or cut along the reduced dimension.

As one map over the first three dimensions, no rank needs anything of another: only the argument and
the result move. Cut along the last dimension, each rank has a part of each row: the largest values
of the parts, and then their sums, are combined among all ranks (one value a row each).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from showing import SMALL, Example, main

import distspmd

if TYPE_CHECKING:  # the ranks that run a program need no DaCe
    import dace

B, H, S, T = (3, 4, 9, 16) if SMALL else (8, 16, 512, 512)


def softmax_of_rows(x: dace.float32[B, H, S, T], y: dace.float32[B, H, S, T]):
    for b, h, i in distspmd.map[0:B, 0:H, 0:S]:
        e = np.exp(x[b, h, i, :] - np.max(x[b, h, i, :]))
        y[b, h, i, :] = e / np.sum(e)


def softmax(x: dace.float32[B, H, S, T], y: dace.float32[B, H, S, T]):
    top = np.max(x, axis=-1, keepdims=True)
    e = np.exp(x - top)
    y[:] = e / np.sum(e, axis=-1, keepdims=True)


def draw(rng):
    return {
        "x": rng.standard_normal((B, H, S, T), np.float32),
        "y": np.zeros((B, H, S, T), np.float32),
    }


def in_numpy(x, y):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    y[:] = e / e.sum(axis=-1, keepdims=True)


ROWS = "nothing moves between ranks"
EXAMPLES = [
    Example(softmax_of_rows, {"y": {"b": 2, "h": 2}}, ROWS, draw, in_numpy),
    Example(softmax_of_rows, {"y": {"b": 1, "h": 2, "i": 2}}, ROWS, draw, in_numpy),
    Example(
        softmax,
        {
            "top": (1, 1, 1, 4),
            "e": {"__i3": 4},
            "sum_e": (1, 1, 1, 4),
            "y": {"__i3": 4},
        },
        "two values a row are combined among all ranks: the largest, and the sum",
        draw,
        in_numpy,
    ),
]

if __name__ == "__main__":
    main(__file__, EXAMPLES)
