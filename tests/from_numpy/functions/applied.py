"""Functions of Python at elements and lines; grids and choices."""

import math

import numpy as np

from from_numpy.functions.registry import program


def _of_types(rng):
    return (
        rng.normal(size=(5, 8)),
        rng.integers(0, 3, (5, 8)),
        rng.normal(size=(3, 4, 5)),
        rng.normal(size=8),
    )


def _limited(a, b):
    if a > b:
        return a - b
    return a + b


def _steps(a):
    total = 0.0
    while a > 0.1:
        total = total + a
        a = a / 2
    return total


_limited_everywhere = np.vectorize(_limited)


@program(_of_types)
def functions_of_elements(x, n, f, v):
    rooted = np.vectorize(lambda a: math.sqrt(abs(a)))
    both = np.vectorize(lambda a: (a + 1, a * 2), otypes=[float, float])
    more, twice = both(n)
    return (
        _limited_everywhere(x, v),
        _limited_everywhere(x, 0.5),
        rooted(f),
        more,
        twice,
        np.vectorize(_steps)(x),
    )


@program(_of_types)
def functions_of_lines(x, n, f, v):
    return (
        np.apply_along_axis(np.sum, 1, x),
        np.apply_along_axis(lambda a: a / np.max(np.abs(a)), 0, x),
        np.apply_along_axis(np.cumsum, 1, f),
        np.apply_along_axis(lambda a, b: a[::2] * b, 2, f, 3.0),
        np.apply_along_axis(np.sort, 0, v),
    )


@program(_of_types)
def functions_in_pieces(x, n, f, v):
    return (
        np.piecewise(x, [x < 0, x >= 0], [-1, 1]),
        np.piecewise(x, [x < 0, x > 1], [lambda a: -a, 1, lambda a: a * a]),
        np.piecewise(n, [n == 1], [10]),
        np.choose(n, [x, -x, 0.0]),
        np.choose(n - 1, (x, v, -x), mode="clip"),
        n.choose([v, x, -v], mode="wrap"),
    )


@program(_of_types)
def grids(x, n, f, v):
    rows, columns = np.indices((4, 6))
    return (
        rows * 10 + columns,
        np.indices(x.shape, dtype=np.float32),
        np.fromfunction(lambda i, j: i - 2 * j, (5, 3)),
        np.fromfunction(lambda i: i % 2 == 0, (7,), dtype=int),
        x[np.ix_([0, 3], [1, 2, 7])],
        np.mgrid[0:3, 1:7:2],
        np.ogrid[0:5][: x.shape[0]] + x[:, 0],
    )


@program(_of_types)
def covariances(x, n, f, v):
    z = x + 1j * x[::-1]
    return (
        np.cov(x),
        np.cov(x, rowvar=False, bias=True),
        np.cov(v),
        np.cov(v, x[0] * 2, ddof=2),
        np.cov(z),
        np.corrcoef(x),
        np.corrcoef(v, x[1]),
        np.corrcoef(n, rowvar=False),
    )


@program(_of_types)
def statistics_without_nan(x, n, f, v):
    holes = np.where(n == 0, np.nan, x)
    return (
        np.nanstd(holes),
        np.nanstd(holes, axis=0),
        np.nanvar(holes, axis=1, ddof=1, keepdims=True),
        np.nanvar(n),
        np.nanargmax(holes, axis=1),
        np.nanargmin(holes),
        np.nanstd(f, axis=(0, 2)),
    )
