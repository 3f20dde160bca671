"""Ten small programs of DaCe, of as many kinds, at sizes that divide evenly by nothing."""

from __future__ import annotations

from typing import Any

import dace
import numpy as np

N, M, K = 7, 5, 3


@dace.program
def stencil(x: dace.float64[N, M], y: dace.float64[N, M]):
    for i, j in dace.map[1 : N - 1, 1 : M - 1]:
        y[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


@dace.program
def product(a: dace.float64[N, K], b: dace.float64[K, M]):
    return a @ b


@dace.program
def row_sums(x: dace.float64[N, M]):
    return np.sum(x * x, axis=1)


@dace.program
def softmax(x: dace.float64[N, M]):
    most = np.maximum.reduce(x, axis=1, keepdims=True)
    raised = np.exp(x - most)
    total = np.add.reduce(raised, axis=1, keepdims=True)
    return raised / total


@dace.program
def two_maps(x: dace.float64[N, M], y: dace.float64[N, M]):
    t = np.empty_like(x)
    for i, j in dace.map[0:N, 0:M]:
        t[i, j] = 2 * x[i, j] + 1
    for i, j in dace.map[0:N, 0:M]:
        y[i, j] = t[i, j] * t[i, j]


@dace.program
def _scaled(u: dace.float64[M], v: dace.float64[M]):
    for j in dace.map[0:M]:
        v[j] = 3 * u[j]


@dace.program
def nested(x: dace.float64[N, M], y: dace.float64[N, M]):
    for i in dace.map[0:N]:
        _scaled(x[i], y[i])
    y += x


@dace.program
def looped(x: dace.float64[N], y: dace.float64[N]):
    for _t in range(4):
        for i in dace.map[1 : N - 1]:
            y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3
        for i in dace.map[1 : N - 1]:
            x[i] = y[i]


@dace.program
def branches(x: dace.float64[N, M], y: dace.float64[N, M]):
    if x[0, 0] > 0:
        y[:] = x + 1
    else:
        y[:] = x - 1
    for i, j in dace.map[0:N, 0:M]:
        if x[i, j] > 0.5:
            y[i, j] = 0.0


@dace.program
def library(a: dace.float64[N, K], b: dace.float64[N, M]):
    turned = np.transpose(a)
    return np.tanh(turned @ b)


@dace.program
def accumulated(a: dace.float64[N, M], x: dace.float64[M], y: dace.float64[N]):
    for i in dace.map[0:N]:
        y[i] = 0.0
    for i, j in dace.map[0:N, 0:M]:
        y[i] += a[i, j] * x[j]


PROGRAMS = {
    program.f.__name__: program
    for program in (
        *(stencil, product, row_sums, softmax, two_maps),
        *(nested, looped, branches, library, accumulated),
    )
}
"""The programs by name."""

_SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "stencil": {"x": (N, M), "y": (N, M)},
    "product": {"a": (N, K), "b": (K, M)},
    "row_sums": {"x": (N, M)},
    "softmax": {"x": (N, M)},
    "two_maps": {"x": (N, M), "y": (N, M)},
    "nested": {"x": (N, M), "y": (N, M)},
    "looped": {"x": (N,), "y": (N,)},
    "branches": {"x": (N, M), "y": (N, M)},
    "library": {"a": (N, K), "b": (N, M)},
    "accumulated": {"a": (N, M), "x": (M,), "y": (N,)},
}


def arguments_of(name: str) -> dict[str, np.ndarray]:
    """Seeded arguments of a program."""
    draws = np.random.default_rng(7)
    return {argument: draws.random(shape) for argument, shape in _SHAPES[name].items()}


def wanted_of(name: str) -> tuple[Any, dict[str, np.ndarray]]:
    """What NumPy returns, and the arguments after it."""
    after = arguments_of(name)
    return _IN_NUMPY[name](**after), after


def _stencil(x: np.ndarray, y: np.ndarray) -> None:
    y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])


def _softmax(x: np.ndarray) -> np.ndarray:
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def _two_maps(x: np.ndarray, y: np.ndarray) -> None:
    y[:] = (2 * x + 1) ** 2


def _nested(x: np.ndarray, y: np.ndarray) -> None:
    y[:] = 3 * x + x


def _looped(x: np.ndarray, y: np.ndarray) -> None:
    for _ in range(4):
        y[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
        x[1:-1] = y[1:-1]


def _branches(x: np.ndarray, y: np.ndarray) -> None:
    y[:] = np.where(x > 0.5, 0.0, x + (1 if x[0, 0] > 0 else -1))


def _accumulated(a: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    y[:] = a @ x


_IN_NUMPY: dict[str, Any] = {
    "stencil": _stencil,
    "product": lambda a, b: a @ b,
    "row_sums": lambda x: np.sum(x * x, axis=1),
    "softmax": _softmax,
    "two_maps": _two_maps,
    "nested": _nested,
    "looped": _looped,
    "branches": _branches,
    "library": lambda a, b: np.tanh(a.T @ b),
    "accumulated": _accumulated,
}
