"""Gradients inside of a program: a step of logistic regression, its batch in parts on 4 ranks.

`backward()` gives maps and contractions that follow the schedule as all others do: each gradient
is summed over the ranks once, and nothing else moves.
"""

import dace
import dace.autodiff  # registers requires_grad_, backward and grad
import numpy as np
from showing import SMALL, Example, main

BATCH, INPUTS, CLASSES = (90, 14, 5) if SMALL else (4096, 784, 10)
RATE = np.float32(0.1 / BATCH)


@dace.program
def step(
    x: dace.float32[BATCH, INPUTS],
    y: dace.float32[BATCH, CLASSES],
    w: dace.float32[INPUTS, CLASSES],
    b: dace.float32[CLASSES],
):
    w.requires_grad_()
    b.requires_grad_()
    scores = x @ w + b
    top = np.maximum.reduce(scores, axis=1, keepdims=True)
    e = np.exp(scores - top)
    likely = e / np.add.reduce(e, axis=1, keepdims=True)
    loss = -np.sum(y * np.log(likely))
    loss.backward()
    w[:] = w - RATE * w.grad
    b[:] = b - RATE * b.grad


def draw(rng):
    labels = rng.integers(0, CLASSES, BATCH)
    return {
        "x": rng.standard_normal((BATCH, INPUTS), np.float32),
        "y": np.eye(CLASSES, dtype=np.float32)[labels],
        "w": np.zeros((INPUTS, CLASSES), np.float32),
        "b": np.zeros(CLASSES, np.float32),
    }


def in_numpy(x, y, w, b):
    e = np.exp(x @ w + b)
    difference = e / e.sum(axis=1, keepdims=True) - y
    w -= RATE * (x.T @ difference)
    b -= RATE * difference.sum(axis=0)


HELD = {"x": "distributed", "y": "distributed", "w": "replicated", "b": "replicated"}
EXAMPLES = [
    Example(
        step,
        {"scores": (4, 1)},
        "each gradient is reduced once, to all ranks",
        draw,
        in_numpy,
        {"arguments": HELD},
        frontend="dace",  # gradients inside of a program are those of DaCe's parser
    )
]

if __name__ == "__main__":
    main(__file__, EXAMPLES)
