"""Rarer forms of NumPy's functions: weights, masks, lists for letters, statistics as padding."""

import numpy as np

from from_numpy.functions.registry import program


def _tables(rng):
    return rng.normal(size=(4, 6)), rng.integers(0, 9, (4, 6))


@program(_tables)
def compared_with_nan(x, n):
    holes = np.where(x > 0, np.nan, x)
    return (
        np.array_equal(holes, holes.copy(), equal_nan=True),
        np.array_equal(x, holes, equal_nan=True),
        (np.array_equiv(x, x[:, :2]), np.array_equiv(x, x[0])),
        np.nan_to_num(holes, nan=x[0, 0]),
        np.hsplit(x[0], 2),
        (np.iterable(x), np.iterable(x[0, 0]), np.asarray_chkfinite(x)),
    )


@program(_tables)
def weighted_and_masked(x, n):
    stack = np.stack([x, x + 1])
    return (
        np.average(stack, axis=(0, 1), weights=np.ones((2, 4)) + x[:2, :4] ** 2),
        (np.std(x, where=x > -1), np.var(x, axis=0, where=n > 1), x.std(where=x > 0)),
        np.std(x, axis=1, keepdims=True, where=n > 0),
        np.std(x.astype(np.float32), where=x > 0, axis=(0, 1)),
        (np.var(n, where=n > 3, ddof=1), np.std(x * 1j + x, where=n > 2)),
        (np.cov(x, aweights=np.arange(1, 7)), np.cov(x, fweights=n[0] + 1)),
    )


@program(_tables)
def lists_for_letters(x, n):
    return (
        np.einsum(x, [0, 1], [1, 0]),
        np.einsum(x, [0, 1], x, [0, 1]),
        np.einsum(x, [Ellipsis, 1], [Ellipsis]),
        np.einsum(x, [0, 1], x.T, [1, 2], [0, 2]),
        np.einsum(x.T @ x, [0, 0]),
    )


@program(_tables)
def reduced_one_by_one(x, n):
    changed = x.copy()
    np.negative.at(changed, ([0, 1], [2, 3]))
    return (
        (np.gcd.reduce(n + 1, axis=0), np.lcm.reduce(n[0, :3] + 1), np.hypot.reduce(x[0])),
        np.hypot.reduce(x, axis=1, keepdims=True),
        np.logaddexp.reduce(x, axis=None),
        (np.fmax.reduce(x, axis=1), np.subtract.reduce(x[0])),
        changed,
    )


@program(_tables)
def padded_by_statistics(x, n):
    def marked(line, width, axis, given):
        line[: width[0]] = given.get("mark", 10)
        line[-width[1] :] = axis

    return (
        np.pad(x, (2, 3), "linear_ramp", end_values=(5, -4)),
        (np.pad(x, 2, "maximum"), np.pad(x, ((1, 2), (0, 1)), "mean"), np.pad(n, 2, "mean")),
        (np.pad(x, 1, "median"), np.pad(n, (2, 1), "linear_ramp")),
        (np.pad(x, {1: (1, 2)}), np.pad(x, {-1: 2})),
        (np.pad(x[0], 2, "maximum", stat_length=2), np.pad(x, 2, "mean", stat_length=(1, 2))),
        (np.pad(n, 2, marked), np.pad(n, 1, marked, mark=100)),
    )


@program(_tables)
def lines_that_differ(x, n):
    rows = np.stack([x[0], x[1], x[0]])
    whole = np.unique(n % 2, axis=0, return_index=True, return_inverse=True, return_counts=True)
    return whole, np.unique(rows, axis=0), np.unique(n % 2, axis=-1, return_counts=True)


@program(_tables)
def places_of_what_is_common(x, n):
    return np.intersect1d(n[0], n[1], return_indices=True)


@program(_tables)
def between_arrays(x, n):
    return (
        (np.linspace(x[0], x[1], 5), np.linspace(0, x[0], 4, endpoint=False, axis=1)),
        (np.linspace(n[0], n[1], 3), np.linspace(x[0], 1, 1)),
        (np.logspace(2.0, 3.0, num=4, base=np.abs(x[0]) + 1, axis=-1)),
        (np.unwrap(n[0], period=4), np.unwrap(n, period=7, axis=0)),
        (np.ediff1d(x, to_begin=-99.0, to_end=x[0, :2]), np.ediff1d(n, to_end=5)),
        np.isposinf(np.where(x > 0, np.inf, -np.inf), np.zeros((4, 6), bool)),
    )
