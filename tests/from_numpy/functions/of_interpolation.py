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
def splines_through_places(x, y, t):
    at = np.linspace(-0.5, 5.5, 13)
    f = interpolate.CubicSpline(x, y)
    ends = interpolate.CubicSpline(x, t, axis=1, bc_type=("natural", "clamped"))
    known = interpolate.CubicSpline(np.arange(6.0), np.arange(6.0) ** 2, extrapolate=False)
    return (
        (f(at), f(1.5, 1), f.derivative()(at), f.integrate(0, 2.5), f(at, nu=2), ends(at)),
        (known(x), interpolate.interp1d([0, 1, 9], [1.0, 3.0, 2.0])(x)),
        interpolate.interp1d(x, t, kind="cubic")(x[2:4] + 0.01),
        interpolate.PchipInterpolator(x, y)(at),
        interpolate.Akima1DInterpolator(x, y)(x[:3]),
        interpolate.CubicHermiteSpline(x, y, t[0])(at),
    )


@program(_places)
def splines_by_the_names_of_fitpack(x, y, t):
    at, tck = np.linspace(x[0], x[-1], 7), interpolate.splrep(x, y)
    through = interpolate.InterpolatedUnivariateSpline(x, y)
    return (
        (interpolate.splev(at, tck), interpolate.splev(x[1], tck, der=1)),
        (interpolate.splint(x[0], x[-1], tck), through(at), through.integral(x[1], x[3])),
        interpolate.UnivariateSpline(x, y, s=0, k=1)(at),
        interpolate.make_interp_spline(x, t.T)(at),
    )


@program(_places)
def between_places_of_grids(x, y, t):
    f = interpolate.RegularGridInterpolator((np.arange(3.0), x), t)
    free = interpolate.RegularGridInterpolator(
        (np.arange(3.0), x), t, "nearest", bounds_error=False, fill_value=0.0
    )
    g = interpolate.RectBivariateSpline(np.arange(4.0), x, np.concatenate((t, t[:1])))
    inside = np.stack((np.linspace(0, 2, 5), np.linspace(x[0], x[-1], 5)), axis=-1)
    return (
        (f(inside), f((0.5, x)), free(inside - 1.0), f([1.0, x[2]])),
        interpolate.interpn((np.arange(3.0), x), t, inside),
        (g(np.array([0.5, 9.0]), x[:3]), g.ev(inside[:, 0], inside[:, 1]), g(0.3, x[1])),
        (g(x, y, grid=False), g.ev(x, y, dy=1)),
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
