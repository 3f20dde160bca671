"""Distances of points by the metrics of ``scipy.spatial.distance``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_COUNTED_APART = ("cosine", "correlation", "hamming", "canberra", "braycurtis")


def distances_of(one: Any, other: Any, metric: str, p: Any) -> Any:
    """Distances of points, whose coordinates are along the last dimension."""
    if metric in _COUNTED_APART:
        return _relative(one, other, metric)
    apart = np.abs(one - other)
    if metric in ("euclidean", "euclid", "eu", "e"):
        return np.sqrt((apart * apart).sum(axis=-1))
    if metric in ("sqeuclidean", "sqe", "sqeuclid"):
        return (apart * apart).sum(axis=-1)
    if metric in ("cityblock", "manhattan", "cblock", "cb", "c"):
        return apart.sum(axis=-1)
    if metric in ("chebyshev", "chebychev", "cheby", "cheb", "ch"):
        return apart.max(axis=-1)
    if metric in ("minkowski", "mi", "m", "pnorm"):
        return (apart**p).sum(axis=-1) ** (1 / p)
    raise NotImplementedError(f"distances by the metric {metric!r}")


def _relative(one: Any, other: Any, metric: str) -> Any:
    """Those that are parts of a whole."""
    if metric == "hamming":
        return (one != other).mean(axis=-1)
    if metric == "canberra":
        sizes = np.abs(one) + np.abs(other)
        parts = np.abs(one - other) / np.where(sizes > 0, sizes, 1)
        return np.where(sizes > 0, parts, 0).sum(axis=-1)
    if metric == "braycurtis":
        return np.abs(one - other).sum(axis=-1) / np.abs(one + other).sum(axis=-1)
    if metric == "correlation":
        one = one - one.mean(axis=-1, keepdims=True)
        other = other - other.mean(axis=-1, keepdims=True)
    sizes = np.sqrt((one * one).sum(axis=-1)) * np.sqrt((other * other).sum(axis=-1))
    return 1 - (one * other).sum(axis=-1) / sizes


def squareform(X: Any, force: Any = "no", checks: Any = True) -> Any:  # noqa: N803
    """The square matrix of distances of pairs, or the pairs of a matrix."""
    given = np.asarray(X)
    if given.ndim == 2:
        n = given.shape[0]
        first, second = np.triu_indices(n, 1)
        return given[first, second]
    n = (1 + math.isqrt(1 + 8 * given.shape[0])) // 2
    first, second = np.triu_indices(n, 1)
    found = np.zeros((n, n), given.dtype)
    found[first, second] = given
    found[second, first] = given
    return found


def euclidean(u: Any, v: Any, w: Any = None) -> Any:
    """The distance of two points."""
    apart = (np.asarray(u) - np.asarray(v)) ** 2
    return np.sqrt(np.sum(apart if w is None else w * apart))


def sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    """The square of the distance of two points."""
    apart = (np.asarray(u) * 1.0 - np.asarray(v)) ** 2
    return np.sum(apart if w is None else w * apart)


def cityblock(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of distances along dimensions."""
    apart = np.abs(np.asarray(u) - np.asarray(v))
    return np.sum(apart if w is None else w * apart)


def chebyshev(u: Any, v: Any) -> Any:
    """The largest distance along a dimension."""
    return np.max(np.abs(np.asarray(u) - np.asarray(v)))
