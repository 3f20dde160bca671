"""Distributions of ``scipy.stats`` that have parameters of their shape, beside loc and scale."""

from __future__ import annotations

from typing import Any

import numpy as np

SHAPES = {
    "t": ("df",),
    "chi2": ("df",),
    "f": ("dfn", "dfd"),
    "gamma": ("a",),
    "beta": ("a", "b"),
    "poisson": ("mu",),
    "binom": ("n", "p"),
}
"""The names of their parameters, in order."""


def pdf(kind: Any, x: Any, shapes: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The density."""
    return np.exp(logpdf(kind, x, shapes, loc, scale))


def pmf(kind: Any, x: Any, shapes: Any, loc: Any = 0) -> Any:
    """The chance of a whole number."""
    return np.exp(logpmf(kind, x, shapes, loc))


def logpdf(kind: Any, x: Any, shapes: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The logarithm of the density."""
    from scipy.special import gammaln, xlog1py, xlogy  # type: ignore[import-untyped,unused-ignore]

    z = np.subtract(x, loc) / scale
    a = shapes[0]
    if kind == "t":
        known = gammaln((a + 1) / 2) - gammaln(a / 2) - 0.5 * np.log(a * np.pi)
        return known - (a + 1) / 2 * np.log1p(z * z / a) - np.log(scale)
    if kind == "chi2":
        found = xlogy(a / 2 - 1, z) - z / 2 - gammaln(a / 2) - np.log(2) * a / 2
        return np.where(z >= 0.0, found, -np.inf) - np.log(scale)
    if kind == "gamma":
        found = xlogy(a - 1.0, z) - z - gammaln(a)
        return np.where(z >= 0.0, found, -np.inf) - np.log(scale)
    if kind == "beta":
        b = shapes[1]
        known = gammaln(a + b) - gammaln(a) - gammaln(b)
        found = xlog1py(b - 1.0, -z) + xlogy(a - 1.0, z) + known
        return np.where((z >= 0.0) & (z <= 1.0), found, -np.inf) - np.log(scale)
    raise NotImplementedError(f"densities of the distribution {kind!r} of scipy.stats")


def logpmf(kind: Any, x: Any, shapes: Any, loc: Any = 0) -> Any:
    """The logarithm of the chance of a whole number."""
    from scipy.special import gammaln, xlog1py, xlogy

    k = np.subtract(x, loc)
    if kind == "poisson":
        (mu,) = shapes
        return np.where(k >= 0, xlogy(k, mu) - gammaln(k + 1.0) - mu, -np.inf)
    if kind == "binom":
        n, p = shapes
        ways = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
        found = ways + xlogy(k, p) + xlog1py(n - k, -p)
        return np.where((k >= 0) & (k <= n), found, -np.inf)
    raise NotImplementedError(f"chances of the distribution {kind!r} of scipy.stats")


def cdf(kind: Any, x: Any, shapes: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The chance to be below."""
    from scipy.special import betainc, fdtr, gammainc, stdtr

    z = np.subtract(x, loc) / scale
    a = shapes[0]
    if kind == "t":
        return stdtr(a, z)
    if kind == "chi2":
        return gammainc(a / 2, np.maximum(z, 0.0) / 2)
    if kind == "f":
        return fdtr(a, shapes[1], np.maximum(z, 0.0))
    if kind == "gamma":
        return gammainc(a, np.maximum(z, 0.0))
    if kind == "beta":
        return betainc(a, shapes[1], np.clip(z, 0.0, 1.0))
    raise NotImplementedError(f"chances of the distribution {kind!r} of scipy.stats")


def sf(kind: Any, x: Any, shapes: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The chance to be above."""
    from scipy.special import betainc, fdtrc, gammaincc, stdtr

    z = np.subtract(x, loc) / scale
    a = shapes[0]
    if kind == "t":
        return stdtr(a, -z)
    if kind == "chi2":
        return gammaincc(a / 2, np.maximum(z, 0.0) / 2)
    if kind == "f":
        return fdtrc(a, shapes[1], np.maximum(z, 0.0))
    if kind == "gamma":
        return gammaincc(a, np.maximum(z, 0.0))
    if kind == "beta":
        return betainc(shapes[1], a, 1.0 - np.clip(z, 0.0, 1.0))
    raise NotImplementedError(f"chances of the distribution {kind!r} of scipy.stats")


def ppf(kind: Any, q: Any, shapes: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The quantile."""
    raise NotImplementedError(f"quantiles of the distribution {kind!r} of scipy.stats")
