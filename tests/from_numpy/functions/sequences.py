"""Between points, filters, polynomials, integrals and phases."""

import numpy as np

from from_numpy.functions.registry import program


def _of_types(rng):
    return (
        rng.normal(size=(6, 11)),
        np.sort(rng.random(9)),
        rng.normal(size=9),
        rng.normal(size=(5,)) + 1j * rng.normal(size=5),
        rng.integers(-4, 5, 7),
    )


@program(_of_types)
def between_points(x, xp, fp, z, n):
    return (
        np.interp(x, xp, fp),
        np.interp(0.5, xp, fp),
        np.interp(xp, xp, fp),
        np.interp(x, xp, fp, left=-1, right=fp[3]),
        np.interp(x[0], xp, fp * 1j + 1),
        np.interp(x, xp, fp, period=0.7),
        np.interp([1, 2.5], [1, 2, 3], n[:3]),
        np.interp(np.array([0.1, np.nan]), xp, fp),
    )


@program(_of_types)
def filters(x, xp, fp, z, n):
    return (
        np.convolve(fp, n),
        np.convolve(n, fp, mode="same"),
        np.convolve(x[0], n, "valid"),
        np.convolve(fp, np.ones(4) / 4, mode="same"),
        np.convolve(z, fp),
        np.correlate(fp, z, mode="full"),
        np.correlate(z, fp, mode="same"),
        np.correlate(fp, n),
        np.correlate(z, x[1], "valid"),
        np.correlate(n, n, "full"),
        np.lib.stride_tricks.sliding_window_view(x, 3, axis=1).mean(axis=-1),
        np.lib.stride_tricks.sliding_window_view(x, (2, 4)).max(axis=(2, 3)),
    )


@program(_of_types)
def polynomials(x, xp, fp, z, n):
    return (
        np.polyval(fp, x),
        np.polyval(n, 2),
        np.polyval([1, -2, 3], x[0]),
        np.polyval(z, xp),
        np.vander(xp),
        np.vander(n, 4),
        np.vander(z, 3, increasing=True),
    )


@program(_of_types)
def integrals_and_phases(x, xp, fp, z, n):
    return (
        np.trapezoid(x),
        np.trapezoid(fp, xp),
        np.trapezoid(x, dx=0.5, axis=0),
        np.trapezoid(x, np.cumsum(x * x, axis=1), axis=1),
        np.trapezoid(n),
        np.unwrap(x * 5),
        np.unwrap(np.cumsum(fp) * 3, period=4.0),
        np.unwrap(x * 4, axis=0, discont=4),
        np.unwrap(n),
    )
