"""Sorts, their places, and searches."""

import numpy as np

from from_numpy.functions.registry import program

KNOWN = np.array([3, 1, 3])


def _of_types(rng):
    x = rng.normal(size=(7, 5))
    x[2, 3] = x[4, 1] = np.nan
    return (
        x,
        rng.integers(-5, 5, (6, 4)),
        rng.integers(0, 3, (4, 3)) + 1j * rng.integers(0, 3, (4, 3)),
        rng.random(9) < 0.6,
        rng.random((3, 4, 5)).astype(np.float32),
    )


@program(_of_types)
def sorted_arrays(x, n, z, b, f):
    y = x.copy()
    y.sort(axis=0)
    part = x.copy()
    part[1:, ::2].sort()
    z[1, 1] = np.nan
    return (
        np.sort(x),
        np.sort(x, axis=0),
        np.sort(n, axis=None),
        np.sort(z, axis=0),
        np.sort_complex(n[0]),
        np.sort(b),
        np.sort(f, axis=1),
        y,
        part,
        np.sort(n[:, 1])[::-1],
        np.partition(f, 2, axis=-1)[..., 2],
    )


@program(_of_types)
def places_in_order(x, n, z, b, f):
    order = np.argsort(x[:, 0])
    return (
        np.argsort(x),
        np.argsort(x, axis=0, kind="stable"),
        np.argsort(n, axis=0, stable=True),
        n.argsort(axis=None, kind="stable"),
        x[order],
        order,
        np.lexsort((n[:, 0], n[:, 1])),
        np.lexsort((n // 3, n % 2), axis=0),
        np.take_along_axis(f, np.argpartition(f, 1, axis=0), axis=0)[1],
    )


@program(_of_types)
def searches(x, n, z, b, f):
    line = np.sort(n, axis=None)
    edges = np.array([-2.0, 0.0, 0.5, 1.0])
    return (
        np.searchsorted(line, n),
        np.searchsorted(line, n, side="right"),
        line.searchsorted(0),
        line.searchsorted([0.5, -9, 9]),
        np.searchsorted(x[:, 0], [0.1, 0.2], sorter=np.argsort(x[:, 0])),
        np.searchsorted(np.sort(x[:, 3]), x[:, 3]),
        np.digitize(x, edges),
        np.digitize(x, edges[::-1], right=True),
        np.digitize(n, [0, 3], right=True),
        np.isin(n, [1, 2, -3]),
        np.isin(n, n[0], invert=True),
        np.isin(x, x[2]),
        np.unique(KNOWN),
    )


@program(_of_types)
def along_an_axis(x, n, z, b, f):
    lowest = np.argmin(f, axis=1, keepdims=True)
    np.put_along_axis(f, lowest, -9.0, axis=1)
    np.put_along_axis(n, np.argsort(n, axis=0, kind="stable"), n[:, :1] * 2, axis=0)
    return (
        np.take_along_axis(x, np.argsort(x, axis=0), axis=0),
        np.take_along_axis(f, np.argmax(f, axis=1, keepdims=True), axis=1),
        np.take_along_axis(x, np.array([[0, -1, 2]]), axis=1),
    )
