"""Distributions that follow from others, as a generator of a program draws them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator


def shape_of(size: Any, *parameters: Any) -> Any:
    """The shape of a draw: that which is given, or that of its parameters."""
    if size is None:
        return np.broadcast_shapes(*(np.shape(p) for p in parameters))
    return (size,) if np.ndim(size) == 0 else tuple(size)


def as_given(found: Any, size: Any) -> Any:
    """A number of Python where no size is given, and the parameters are numbers."""
    return float(found) if size is None and np.ndim(found) == 0 else found


def beta(rng: Any, a: Any, b: Any, size: Any = None) -> Any:
    """Of two gamma distributions, by their logarithms."""
    shape = shape_of(size, a, b)
    apart = rng.log_standard_gamma(b, shape) - rng.log_standard_gamma(a, shape)
    return as_given(1.0 / (1.0 + np.exp(apart)), size)


def chisquare(rng: Generator, df: Any, size: Any = None) -> Any:
    """A gamma distribution of half as many degrees."""
    return as_given(2.0 * rng.standard_gamma(np.divide(df, 2.0), shape_of(size, df)), size)


def f(rng: Generator, dfnum: Any, dfden: Any, size: Any = None) -> Any:
    """A quotient of two means of squares."""
    shape = shape_of(size, dfnum, dfden)
    above, below = rng.chisquare(dfnum, shape), rng.chisquare(dfden, shape)
    return as_given(above * dfden / (below * dfnum), size)


def noncentral_chisquare(rng: Generator, df: Any, nonc: Any, size: Any = None) -> Any:
    """A chi-square distribution of degrees that Poisson's decides."""
    shape = shape_of(size, df, nonc)
    more = rng.poisson(np.divide(nonc, 2.0), shape)
    return as_given(2.0 * rng.standard_gamma(np.divide(df, 2.0) + more, shape), size)


def noncentral_f(rng: Generator, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> Any:
    """A quotient of two means of squares, one of them around another value."""
    shape = shape_of(size, dfnum, dfden, nonc)
    above = rng.noncentral_chisquare(dfnum, nonc, shape)
    return as_given(above * dfden / (rng.chisquare(dfden, shape) * dfnum), size)


def standard_t(rng: Generator, df: Any, size: Any = None) -> Any:
    """A normal number over the root of a mean of squares."""
    shape = shape_of(size, df)
    half = np.divide(df, 2.0)
    drawn = rng.standard_normal(shape) * np.sqrt(half)
    return as_given(drawn / np.sqrt(rng.standard_gamma(half, shape)), size)


def triangular(rng: Generator, left: Any, mode: Any, right: Any, size: Any = None) -> Any:
    """By the inverse of its distribution function."""
    shape = shape_of(size, left, mode, right)
    u = rng.random(shape)
    whole, low, high = np.subtract(right, left), np.subtract(mode, left), np.subtract(right, mode)
    below = left + np.sqrt(u * whole * low)
    above = right - np.sqrt((1.0 - u) * whole * high)
    return as_given(np.where(u <= low / whole, below, above), size)


def wald(rng: Generator, mean: Any, scale: Any, size: Any = None) -> Any:
    """By its square's normal distribution (Michael, Schucany and Haas, 1976)."""
    shape = shape_of(size, mean, scale)
    drawn = rng.standard_normal(shape)
    y = mean * drawn * drawn
    x = mean + np.divide(mean, np.multiply(2.0, scale)) * (y - np.sqrt(4 * scale * y + y * y))
    found = np.where(rng.random(shape) <= mean / (mean + x), x, mean * mean / x)
    return as_given(found, size)


def negative_binomial(rng: Generator, n: Any, p: Any, size: Any = None) -> Any:
    """Poisson's distribution of a mean that is drawn."""
    shape = shape_of(size, n, p)
    mean = rng.standard_gamma(n, shape) * np.divide(np.subtract(1.0, p), p)
    return rng.poisson(mean, None if shape == () else shape)


def dirichlet(rng: Any, alpha: Any, size: Any = None) -> Any:
    """Parts of a whole, by the logarithms of gamma distributions."""
    given = np.asarray(alpha) + 0.0
    lead = () if size is None else shape_of(size)
    logs = rng.log_standard_gamma(given, (*lead, given.shape[0]))
    parts = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
    return parts / np.sum(parts, axis=-1, keepdims=True)


def multinomial(rng: Generator, n: Any, pvals: Any, size: Any = None) -> Any:
    """One binomial distribution after the other, of what is left."""
    chances = np.asarray(pvals) + 0.0
    count = chances.shape[0]
    lead = np.shape(n) if size is None else shape_of(size)
    left = np.zeros(lead, dtype=np.int64) + n
    found = np.zeros((*lead, count), dtype=np.int64)
    rest = 1.0
    for k in range(count - 1):
        chance = np.where(rest > 0.0, np.minimum(chances[k] / np.maximum(rest, 1e-300), 1.0), 0.0)
        drawn = rng.binomial(left, chance, lead)
        found[..., k] = drawn
        left = left - drawn
        rest = rest - chances[k]
    found[..., count - 1] = left
    return found


def multivariate_normal(
    rng: Generator,
    mean: Any,
    cov: object,
    size: Any = None,
    check_valid: object = "warn",
    tol: object = 1e-8,
    *,
    method: object = "svd",
) -> Any:
    """Normal numbers along the axes of an ellipsoid, as NumPy's singular values give them."""
    middle = np.asarray(mean) + 0.0
    n = middle.shape[0]
    lead = () if size is None else shape_of(size)
    drawn = rng.standard_normal((*lead, n))
    _, scales, turned = np.linalg.svd(np.asarray(cov) + 0.0)
    return middle + drawn @ (np.sqrt(scales)[:, np.newaxis] * turned)


def permuted(rng: Generator, x: np.ndarray[Any, Any], *, axis: Any = None, out: Any = None) -> Any:
    """Each line in an order of its own."""
    values = np.asarray(x)
    if axis is None:
        flat = values.reshape(-1)
        found = flat[np.argsort(rng.random(flat.shape[0]))].reshape(values.shape)
    else:
        order = np.argsort(rng.random(values.shape), axis=axis)
        found = np.take_along_axis(values, order, axis)
    if out is not None:
        out[...] = found
        return out
    return found


def chosen_once(rng: Generator, n: Any, size: object, p: Any) -> Any:
    """Places of a choice without replacement: the first ones of an order by chance."""
    shape = () if size is None else shape_of(size)
    count = 1
    for extent in shape:
        count = count * extent
    weights = np.ones(n) if p is None else np.asarray(p) + 0.0
    waited = rng.standard_exponential(n) / weights
    order = np.argsort(np.where(weights > 0.0, waited, np.inf))[:count]
    return order[0] if size is None else order.reshape(shape)
