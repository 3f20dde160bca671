"""The programs of `programs.py`, at their sizes, with a schedule, and the same in NumPy."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dace
import numpy as np

from distspmd.frontend import numpy_program

SMALL = "--small" in sys.argv
"""Whether sizes that take no time were asked for."""

N, STEPS = (60, 4) if SMALL else (4000, 50)
ROWS, COLUMNS = (100, 64) if SMALL else (8 * 16 * 512, 512)
B, S, H, P = (2, 8, 4, 8) if SMALL else (8, 512, 16, 64)
M = 64 if SMALL else 4096


@dace.program
def jacobi(a: dace.float32[N, N], b: dace.float32[N, N]):
    for _t in range(STEPS // 2):
        for i, j in dace.map[1 : N - 1, 1 : N - 1]:
            b[i, j] = np.float32(0.2) * (
                a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i - 1, j] + a[i + 1, j]
            )
        for i, j in dace.map[1 : N - 1, 1 : N - 1]:
            a[i, j] = np.float32(0.2) * (
                b[i, j] + b[i, j - 1] + b[i, j + 1] + b[i - 1, j] + b[i + 1, j]
            )


@dace.program
def softmax(x: dace.float32[ROWS, COLUMNS], y: dace.float32[ROWS, COLUMNS]):
    for r in dace.map[0:ROWS]:
        e = np.exp(x[r, :] - np.max(x[r, :]))
        y[r, :] = e / np.sum(e)


@dace.program
def attention(
    x: dace.float32[B, S, H * P],
    wq: dace.float32[H, P, H * P],
    wk: dace.float32[H, P, H * P],
    wv: dace.float32[H, P, H * P],
    wo: dace.float32[H, P, H * P],
):
    q = np.einsum("bse,hpe->bhsp", x, wq)
    k = np.einsum("bse,hpe->bhsp", x, wk)
    v = np.einsum("bse,hpe->bhsp", x, wv)
    scores = np.einsum("bhsp,bhtp->bhst", q, k)
    weights = np.empty_like(scores)
    for b, h, s in dace.map[0:B, 0:H, 0:S]:
        scaled = scores[b, h, s, :] * np.float32(P**-0.5)
        e = np.exp(scaled - np.max(scaled))
        weights[b, h, s, :] = e / np.sum(e)
    heads = np.einsum("bhst,bhtp->bhsp", weights, v)
    return np.einsum("bhsp,hpe->bse", heads, wo)


@dace.program
def matmul(a: dace.float32[M, M], b: dace.float32[M, M]):
    return a @ b


def numpy_jacobi(a, b):
    for _ in range(STEPS // 2):
        for old, new in ((a, b), (b, a)):
            np.add(old[1:-1, :-2], old[1:-1, 2:], out=new[1:-1, 1:-1])
            new[1:-1, 1:-1] += old[1:-1, 1:-1]
            new[1:-1, 1:-1] += old[:-2, 1:-1]
            new[1:-1, 1:-1] += old[2:, 1:-1]
            new[1:-1, 1:-1] *= np.float32(0.2)


def numpy_softmax(x, y):
    np.subtract(x, x.max(axis=-1, keepdims=True), out=y)
    np.exp(y, out=y)
    y /= y.sum(axis=-1, keepdims=True)


def numpy_attention(x, wq, wk, wv, wo):
    """Attention of as many heads as there are weights for: a summand where these are not all."""
    flat, heads = x.reshape(B * S, H * P), len(wq)
    q, k, v = (
        (flat @ w.reshape(heads * P, H * P).T).reshape(B, S, heads, P).transpose(0, 2, 1, 3)
        for w in (wq, wk, wv)
    )
    e = q @ k.swapaxes(-1, -2) * np.float32(P**-0.5)
    numpy_softmax(e, e)
    merged = (e @ v).transpose(0, 2, 1, 3).reshape(B * S, heads * P)
    return (merged @ wo.reshape(heads * P, H * P)).reshape(B, S, H * P)


def numpy_matmul(a, b):
    return a @ b


@dataclass(frozen=True)
class Program:
    """A program, and where the caller holds its arguments.

    Attributes:
        schedule: iteration space -> parts, of a number of ranks.
        reference: the same in NumPy, of one thread if the BLAS has one.
    """

    program: Any
    schedule: Callable[[int], dict[str, Any]]
    arguments: dict[str, str]
    reference: Callable[..., Any]


PROGRAMS: dict[str, Program] = {
    "jacobi": Program(
        jacobi,
        lambda n: {"a": (n, 1), "b": (n, 1)},
        {"a": "distributed", "b": "distributed"},
        numpy_jacobi,
    ),
    "softmax": Program(
        softmax,
        lambda n: {"y": (n,)},
        {"x": "distributed", "y": "distributed"},
        numpy_softmax,
    ),
    "attention": Program(
        attention,
        lambda n: {name: {"h": n} for name in ("q", "k", "v", "__return")},
        {
            "x": "replicated",
            "__return": "replicated",
            **dict.fromkeys(("wq", "wk", "wv", "wo"), "distributed"),
        },
        numpy_attention,
    ),
    "matmul": Program(
        matmul,
        lambda n: {"__return": (n, 1, 1)},
        {"a": "distributed", "b": "replicated", "__return": "distributed"},
        numpy_matmul,
    ),
}


def drawn(name: str) -> dict[str, np.ndarray]:
    """Arguments of a program, the same in each process."""
    rng = np.random.default_rng(0)
    described = numpy_program(PROGRAMS[name].program).arglist()
    return {
        argument: rng.standard_normal([int(n) for n in array.shape], np.float32) / 8
        for argument, array in described.items()
        if not argument.startswith("__return")
    }


def wanted(name: str, given: dict[str, np.ndarray]) -> np.ndarray:
    """What the program returns, or the array that it leaves last, by NumPy."""
    after = {argument: array.copy() for argument, array in given.items()}
    result = PROGRAMS[name].reference(**after)
    return after[LEFT[name]] if result is None else result


LEFT = {"jacobi": "a", "softmax": "y"}
"""Of programs that return nothing, the argument that has the result."""
