"""Parts that are put in and taken apart, windows, and places of triangles."""

import numpy as np

from from_numpy.functions.registry import program


def _of_types(rng):
    return rng.normal(size=(5, 6)), rng.integers(0, 3, (4, 9)), rng.normal(size=8), np.int64(4)


@program(_of_types)
def parts_put_in(x, n, v, k):
    return (
        np.insert(v, [1, 3, 3], [7.0, 8.0, 9.0]),
        np.insert(v, [6, 0], 5.0),
        np.insert(v, slice(2, 5), 1.0),
        np.insert(x, [1, -1], 2.0, axis=1),
        np.insert(x, [0, 2], x[:, :2], axis=1),
        np.insert(x, [2, 2], x[0], axis=0),
        np.insert(n, 2, 5),
        np.insert(v, np.array([True, False] * 4), 3.0),
    )


@program(_of_types)
def elements_put(x, n, v, k):
    np.put(x, [0, 7, -1], [1.0, 2.0])
    np.put(v, [11, -9], 5.0, mode="wrap")
    np.put(n[:, ::2], [99, 2], 7, mode="clip")
    v.put(n[0, :2], [8.0, 9.0])
    return v.nbytes, x[:, 1].strides, n.strides


@program(_of_types)
def parts_taken_apart(x, n, v, k):
    first, *_, last = np.unstack(x, axis=1)
    counts = np.unique_counts(n)
    whole = np.unique_all(n)
    return (
        first + last,
        np.packbits(n > 0),
        np.packbits(n, axis=1),
        np.packbits(n, axis=0, bitorder="little"),
        np.unpackbits(np.packbits(n, axis=-1), axis=-1),
        (counts.values, counts.counts),
        (whole.values, whole.indices, whole.inverse_indices, whole.counts),
        np.unique_inverse(n).inverse_indices,
    )


@program(_of_types)
def places_of_triangles(x, n, v, k):
    square = x[:k, :k]
    size = int(k)
    rows, columns = np.tril_indices(size)
    upper = np.triu_indices(size, 1)
    return (
        square[rows, columns],
        square[upper],
        square[np.diag_indices(size)],
        x[np.tril_indices(5, -1, 6)],
        x[:5, :5][np.mask_indices(5, np.triu, 1)],
    )


@program(_of_types)
def windows(x, n, v, k):
    view = np.lib.stride_tricks.sliding_window_view
    strided = np.lib.stride_tricks.as_strided
    step = v.strides[0]
    return (
        view(v, 3).mean(axis=-1),
        view(v, 3)[::2],
        view(x, (2, 3)).sum(axis=(2, 3)),
        view(x, 4, axis=1).max(axis=-1),
        strided(v, (3, 3), (2 * step, step)),
        strided(x, (4, 5, 2, 2), x.strides * 2).sum(axis=(-1, -2)),
        strided(v, shape=(3, 8), strides=(0, step)),
    )
