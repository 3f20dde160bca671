"""Histograms and counts."""

import numpy as np

from from_numpy.functions.registry import program

KNOWN = np.array([0, 3, 3, 1])


def _points(rng):
    return (
        rng.normal(size=(6, 7)),
        rng.integers(0, 9, 23),
        rng.random((23, 2)),
        rng.random(17).astype(np.float32),
        rng.integers(0, 255, 40, dtype=np.uint8),
    )


@program(_points)
def histograms(x, n, p, f, u):
    edges = np.array([-1.0, 0.0, 0.25, 2.0])
    return (
        *np.histogram(x, bins=6, range=(-2, 2)),
        *np.histogram(x),
        *np.histogram(n, bins=9),
        *np.histogram(x, bins=edges, density=True),
        *np.histogram(x[0], bins=[-1, 0, 1]),
        *np.histogram(n, 4, weights=p[:, 0]),
        *np.histogram(f, bins=5),
        *np.histogram(x > 0, bins=3),
        np.histogram(np.ones(4), bins=4)[1],
        np.histogram_bin_edges(x, 3),
        np.histogram(np.where(x > 1, np.nan, x), bins=3, range=(-1, 1), density=True)[0],
    )


@program(_points)
def histograms_of_points(x, n, p, f, u):
    counts, xs, ys = np.histogram2d(p[:, 0], p[:, 1], bins=(3, 4))
    weighed, _, _ = np.histogram2d(
        p[:, 0], p[:, 1], bins=5, range=[[0, 1], [0.2, 0.8]], weights=p[:, 1]
    )
    dense, edges = np.histogramdd(p, bins=(2, 3), density=True)
    return counts, xs, ys, weighed, dense, edges[0]


@program(_points)
def numbers_counted(x, n, p, f, u):
    return (
        np.bincount(u, minlength=256),
        np.bincount(u, weights=u * 0.5, minlength=300),
        np.bincount(x[0] > 0, minlength=2),
        np.bincount(n, minlength=9),
        np.bincount(n, p[:, 0], 12),
        np.bincount(KNOWN),
        np.bincount(KNOWN, weights=x[0, :4]),
    )
