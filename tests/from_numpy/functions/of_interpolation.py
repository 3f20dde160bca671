"""Interpolation, distances and a few densities of SciPy."""

import numpy as np
from scipy import interpolate, special, stats
from scipy.spatial import distance

from from_numpy.functions.registry import program


def _places(rng):
    return np.sort(rng.random(9) * 5), rng.normal(size=9), rng.normal(size=(3, 9))


@program(_places)
def between_places(x, y, t):
    at, wide = np.linspace(x[0], x[-1], 7), np.arange(-1.0, 8.0)
    kinds = [interpolate.interp1d(x, y, kind=k)(at) for k in ("nearest", "previous", "next")]
    several = interpolate.interp1d(x, t, axis=1, bounds_error=False)
    unsorted = interpolate.interp1d(y, x, bounds_error=False, fill_value=0.0)
    return (
        (interpolate.interp1d(x, y)(at), interpolate.interp1d(x, y)(x[3]), several(at + 0.1)),
        interpolate.interp1d(x, y, fill_value="extrapolate")(wide),
        interpolate.interp1d(x, y, bounds_error=False, fill_value=(0.0, 9.0))(wide),
        (kinds, unsorted(np.arange(-2.0, 2.0, 0.3))),
    )


@program(_places)
def distances_of_points(x, y, t):
    pairs = distance.pdist(t)
    one = distance.euclidean(x, y), distance.cityblock(x, y), distance.sqeuclidean(x, y)
    square = distance.squareform(pairs)
    return square, distance.squareform(square), one, distance.chebyshev(x, y)


@program(_places)
def densities_of_several_dimensions(x, y, t):
    cov = t @ t.T + np.eye(3)
    beta = special.beta(x + 0.1, np.abs(y)), special.betaln(x + 0.1, np.abs(y))
    return (
        stats.multivariate_normal.pdf(t.T, x[:3], cov),
        stats.multivariate_normal.logpdf(y[:3], mean=x[:3], cov=cov),
        (beta, special.beta(50.5, x * 9 + 30)),
    )
