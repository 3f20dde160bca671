"""Cumulative sums and products, and what universal functions accumulate."""

import numpy as np

from from_numpy.functions.registry import program


def _of_types(rng):
    x = rng.normal(size=(7, 5))
    holes = x.copy()
    holes[2, 3] = np.nan
    return (
        x,
        holes,
        rng.integers(-5, 5, (6, 4), dtype=np.int8),
        rng.random((3, 4, 5)) + 1j * rng.random((3, 4, 5)),
        rng.random(9) < 0.6,
    )


@program(_of_types)
def cumulative_sums(x, holes, small, z, b):
    into = np.zeros_like(x)
    np.cumsum(x, axis=0, out=into)
    return (
        np.cumsum(x),
        np.cumsum(x, 0),
        x.cumsum(1),
        into,
        small.cumsum(),
        np.cumsum(small, 0),
        np.cumsum(small, 0, dtype=np.int8),
        np.cumsum(small, 1, dtype=np.float32),
        z.cumsum(1),
        b.cumsum(),
        np.cumsum(x[1:, ::2] * 2, axis=1),
        np.cumsum(x[:, 1]),
        np.nancumsum(holes, axis=1),
        np.cumsum(holes, axis=0),
        np.cumsum(x[:, :1], axis=1),
    )


@program(_of_types)
def cumulative_products(x, holes, small, z, b):
    return (
        np.cumprod(x.T, axis=-1),
        z.cumprod(axis=2),
        small.cumprod(),
        np.nancumprod(holes),
        b.cumprod(),
        np.cumsum(np.cumprod(x, axis=0), axis=1),
    )


@program(_of_types)
def accumulated(x, holes, small, z, b):
    return (
        np.maximum.accumulate(holes, axis=1),
        np.minimum.accumulate(holes),
        np.fmax.accumulate(holes, axis=0),
        np.add.accumulate(small, axis=1),
        np.add.accumulate(b),
        np.logical_and.accumulate(b),
        np.logical_or.accumulate(x > 0, axis=1),
        np.multiply.accumulate(x),
        np.subtract.accumulate(x, axis=1),
        np.bitwise_xor.accumulate(small),
        np.divide.accumulate(small + 9),
        np.maximum.accumulate(x[::-1], axis=0)[::-1],
    )


@program(lambda rng: (rng.normal(size=(6, 5)), rng.random(6)))
def scans_in_loops(x, v):
    for k in range(1, len(v) - 1):
        x[k] = np.cumsum(x[k])
        x[k, 0] = np.cumsum(v[:k])[::-1].sum()
    for row in x:
        row[:] = np.cumsum(row) - row
    return x


@program(lambda rng: (np.sort(rng.random(7)), rng.random(7), rng.random((4, 5))))
def gradients_of_any_spacing(x, y, a):
    return (
        np.gradient(y, x),
        np.gradient(y, x, edge_order=2),
        np.gradient(y, 0.5, edge_order=2),
        *np.gradient(a, y[:4], 2.0, edge_order=2),
        np.gradient(a, x[:5] * 2, axis=1),
        np.gradient(a[:, :3].astype(np.float32), x[:4], axis=0),
    )
