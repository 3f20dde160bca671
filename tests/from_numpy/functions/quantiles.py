"""Medians, quantiles and percentiles."""

import numpy as np

from from_numpy.functions.registry import program

NAMES = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation"),
    *("interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased"),
    *("normal_unbiased", "lower", "higher", "midpoint", "nearest"),
)


def _of_types(rng):
    x = rng.normal(size=(7, 5))
    x[2, 3] = x[4, 1] = np.nan
    return x, rng.integers(-5, 5, (6, 4)), rng.random((3, 4, 5)).astype(np.float32)


@program(_of_types)
def medians(x, n, f):
    return (
        np.median(x),
        np.median(x, axis=0),
        np.median(n, axis=1, keepdims=True),
        np.median(f, axis=(0, 2)),
        np.median(f),
        np.median(n[:, 0]),
        np.median(n > 0, axis=0),
        np.nanmedian(x, axis=1),
        np.nanmedian(x),
        np.median(np.abs(f - np.median(f, axis=2, keepdims=True)), axis=2),
    )


@program(_of_types)
def percentiles(x, n, f):
    return (
        np.percentile(n, 30),
        np.percentile(x, [10, 50, 90], axis=0),
        np.quantile(f, 0.3, axis=1),
        np.quantile(f, np.array([0.25, 0.5]), axis=(0, 2), keepdims=True),
        np.nanpercentile(x, 25, axis=1),
        np.nanquantile(x, [0.2, 0.8]),
        np.quantile(n, 0.33, axis=0, method="lower"),
        np.quantile(n, abs(f[0, 0, 0]), axis=0),
    )


@program(lambda rng: (rng.normal(size=(3, 8)), rng.integers(0, 50, (3, 7))))
def methods_of_quantiles(x, n):
    shares = [0.0, 0.1, 0.25, 0.5, 0.7, 0.875, 1.0]
    return [np.quantile(a, shares, axis=1, method=name) for a in (x, n) for name in NAMES]
