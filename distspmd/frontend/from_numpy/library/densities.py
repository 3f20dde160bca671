"""Densities, distribution functions and quantiles of a few distributions of ``scipy.stats``."""

from __future__ import annotations

from typing import Any

import numpy as np

_ROOT = 2.5066282746310002


def pdf(kind: Any, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The density."""
    return np.exp(logpdf(kind, x, loc, scale))


def logpdf(kind: Any, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The logarithm of the density."""
    z = np.subtract(x, loc) / scale
    if kind == "norm":
        return -z * z / 2.0 - np.log(_ROOT) - np.log(scale)
    if kind == "expon":
        return np.where(z >= 0.0, -z, -np.inf) - np.log(scale)
    if kind == "uniform":
        return np.where((z >= 0.0) & (z <= 1.0), 0.0, -np.inf) - np.log(scale)
    raise NotImplementedError(f"densities of the distribution {kind!r} of scipy.stats")


def cdf(kind: Any, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The chance to be below."""
    z = np.subtract(x, loc) / scale
    if kind == "norm":
        from scipy.special import erfc  # type: ignore[import-untyped,unused-ignore]

        return 0.5 * erfc(-z / np.sqrt(2.0))
    if kind == "expon":
        return np.where(z > 0.0, -np.expm1(-np.maximum(z, 0.0)), 0.0)
    if kind == "uniform":
        return np.clip(z, 0.0, 1.0)
    raise NotImplementedError(f"chances of the distribution {kind!r} of scipy.stats")


def sf(kind: Any, x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The chance to be above."""
    z = np.subtract(x, loc) / scale
    if kind == "norm":
        from scipy.special import erfc  # type: ignore[import-untyped,unused-ignore]

        return 0.5 * erfc(z / np.sqrt(2.0))
    if kind == "expon":
        return np.exp(-np.maximum(z, 0.0))
    return 1.0 - cdf(kind, x, loc, scale)


def ppf(kind: Any, q: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The quantile."""
    if kind == "norm":
        from scipy.special import ndtri  # type: ignore[import-untyped,unused-ignore]

        return ndtri(q) * scale + loc
    if kind == "expon":
        return -np.log1p(-np.asarray(q)) * scale + loc
    if kind == "uniform":
        return np.asarray(q) * scale + loc
    raise NotImplementedError(f"quantiles of the distribution {kind!r} of scipy.stats")


def multivariate_logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: Any = False) -> Any:
    """The logarithm of the density of a normal distribution of several dimensions."""
    if mean is None or np.ndim(mean) != 1 or np.ndim(cov) != 2 or allow_singular:
        raise NotImplementedError("multivariate_normal but with a vector mean and a matrix cov")
    sizes, axes = np.linalg.eigh(cov)
    if np.min(sizes) <= 0:
        raise np.linalg.LinAlgError("The input matrix must be symmetric positive definite.")
    apart = (np.asarray(x) - mean) @ (axes / np.sqrt(sizes))
    known = sizes.shape[0] * np.log(2 * np.pi) + np.sum(np.log(sizes))
    return -0.5 * (known + np.sum(apart * apart, axis=-1))


def multivariate_pdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: Any = False) -> Any:
    """The density of a normal distribution of several dimensions."""
    return np.exp(multivariate_logpdf(x, mean, cov, allow_singular))
