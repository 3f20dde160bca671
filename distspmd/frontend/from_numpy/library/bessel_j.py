"""Bessel functions of the first kind, of the orders 0 and 1.

Near zero they are Bessel's integral, by midpoints, which converges faster than any power; far from
it they are Hankel's series.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

FAR = 25.0
"""From where on Hankel's series has all digits."""
POINTS = 16
"""Of a quarter of a circle: integrands of arguments below FAR take no more."""
_SINES = tuple(math.sin((k + 0.5) * math.pi / (2 * POINTS)) for k in range(POINTS))


def _terms(order: int) -> tuple[float, ...]:
    """The coefficients of Hankel's series."""
    found = [1.0]
    for k in range(1, 26):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return tuple(found)


_HANKEL = (_terms(0), _terms(1))


def _far(order: Any, x: Any) -> Any:
    """Of positive arguments that are large."""
    terms = _HANKEL[order]
    square = -1.0 / (x * x)
    even = 0.0 * x
    odd = 0.0 * x
    for k in range(24, -1, -2):
        even = even * square + terms[k]
        odd = odd * square + terms[k + 1]
    odd = odd / x
    sine, cosine = np.sin(x), np.cos(x)
    if order == 0:
        wave = even * (cosine + sine) - odd * (sine - cosine)
    else:
        wave = even * (sine - cosine) + odd * (sine + cosine)
    return wave / np.sqrt(np.pi * x)


def j0(x: Any) -> Any:
    """The function of order 0."""
    size = np.abs(np.asarray(x) * 1.0)
    near = np.where(size <= FAR, size, 0.0)
    total = 0.0 * near
    for sine in _SINES:
        total = total + np.cos(near * sine)
    far = _far(0, np.where(size <= FAR, FAR, size))
    return np.where(size <= FAR, total / POINTS, np.where(np.isinf(size), 0.0, far))[()]


def j1(x: Any) -> Any:
    """The function of order 1."""
    value = np.asarray(x) * 1.0
    size = np.abs(value)
    near = np.where(size <= FAR, value, 0.0)
    total = 0.0 * near
    for sine in _SINES:
        total = total + sine * np.sin(near * sine)
    far = np.sign(value) * _far(1, np.where(size <= FAR, FAR, size))
    return np.where(size <= FAR, total / POINTS, np.where(np.isinf(size), 0.0, far))[()]
