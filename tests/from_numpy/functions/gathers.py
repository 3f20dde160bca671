"""Arrays of indices beside numbers and slices, on both sides of assignments."""

import numpy as np

from from_numpy.functions.registry import program


def _of_types(rng):
    return rng.normal(size=(7, 5)), rng.integers(0, 3, 7), rng.random((7, 2)), rng.random((4, 7, 5))


@program(_of_types)
def gathered_from_parts(x, i, p, f):
    return (
        x[i[1:], 1] + p[1:, 0],
        x[:4][i[:3]],
        f[0, :, i],
        f[0][:, [1, 3]],
        f[:, i, 2],
        x[1:, [1, 3]],
        f[1:3, 1, [0, -1]],
        x[i, ::2],
        x[::-1][i, 3:1:-1],
        x[i][:, None, 1:3],
        f[i, :, i][:, 2],
    )


@program(_of_types)
def scattered_to_parts(x, i, p, f):
    counts = np.zeros(3)
    np.add.at(counts, i, p[:, 0])
    np.add.at(x[:, 1], i, p[:, 1])
    np.add.at(x, (i, 2), p[:, 0] * 2)
    x[i[:2], 3] = p[:2, 0]
    x[1:5, 4][[0, 2]] = 9.0
    x[[1, 2], 1:3] = p[3:5]
    f[1][:, [0, 2]] = -1.0
    f[0, [1, 2], :] = x[:2]
    return counts
