"""How many bins ``np.histogram`` takes where it estimates their number: NumPy's own formulas."""

from __future__ import annotations

from typing import Any

import numpy as np


def number_of_bins(a: np.ndarray[Any, Any], rule: Any, limits: Any) -> Any:
    """The number of bins, by the name of a rule."""
    if limits is None:
        first, last = np.min(a), np.max(a)
        inside = a
    else:
        first, last = limits
        inside = a[(a >= first) & (a <= last)]
    if first == last:
        first, last = first - 0.5, last + 0.5
    size = inside.size
    if size == 0:
        return 1
    width = _width(inside, rule, size)
    if width == 0:
        return 1
    if inside.dtype.kind in "iu" and width < 1:
        width = 1.0
    return int(np.ceil((last - first) / width))


def _width(x: np.ndarray[Any, Any], rule: object, size: Any) -> Any:
    whole = np.max(x) - np.min(x)
    if rule == "sqrt":
        return whole / np.sqrt(size)
    if rule == "sturges":
        return whole / (np.log2(size) + 1.0)
    if rule == "rice":
        return whole / (2.0 * size ** (1.0 / 3))
    if rule == "scott":
        return (24.0 * np.pi**0.5 / size) ** (1.0 / 3.0) * np.std(x)
    if rule == "doane":
        return _of_skewed(x, whole, size)
    upper, lower = np.percentile(x, [75, 25])
    by_quartiles = 2.0 * (upper - lower) * size ** (-1.0 / 3.0)
    if rule == "fd":
        return by_quartiles
    least = np.maximum(by_quartiles, whole / np.sqrt(size) / 2)
    return np.minimum(least, whole / (np.log2(size) + 1.0))


def _of_skewed(x: np.ndarray[Any, Any], whole: Any, size: Any) -> Any:
    """Doane's rule."""
    sigma = np.std(x)
    if size <= 2 or sigma == 0:
        return 0.0
    error = np.sqrt(6.0 * (size - 2) / ((size + 1.0) * (size + 3)))
    skew = np.mean(((x - np.mean(x)) / sigma) ** 3)
    return whole / (1.0 + np.log2(size) + np.log2(1.0 + np.absolute(skew) / error))
