"""Reductions of any axis, with every operation."""

import dace
import numpy as np

from lowering.harness import cases


@dace.program
def sums(x: dace.float64[10, 7]):
    return np.sum(x, axis=0), np.sum(x, axis=1), np.sum(x)


@dace.program
def extremes(x: dace.float64[10, 7]):
    return np.max(x, axis=0), np.min(x, axis=1), np.max(x), np.min(x)


@dace.program
def products(x: dace.float64[6, 3]):
    return np.multiply.reduce(x, axis=0), np.multiply.reduce(x, axis=1)


@dace.program
def logical(x: dace.float64[10, 3]):
    return np.all(x > -0.4, axis=1), np.any(x > 0.4, axis=0), np.all(x > -2), np.any(x > 2)


@dace.program
def cube(x: dace.float64[4, 5, 6]):
    return np.sum(x, axis=(0, 2)), np.max(x, axis=(1, 2)), np.sum(x, axis=1)


@dace.program
def ufuncs(x: dace.int64[9, 4]):
    return np.add.reduce(x, axis=0), np.maximum.reduce(x, axis=1), np.multiply.reduce(x, axis=1)


@dace.program
def of_types(x: dace.int32[9, 4], y: dace.float32[9], z: dace.complex128[9], w: dace.complex64[9]):
    return np.sum(x, axis=0), np.max(y), np.sum(z), np.multiply.reduce(w), np.min(x)


@dace.program
def means(x: dace.float64[10, 7]):
    return np.mean(x, axis=0), np.mean(x)


@dace.program
def complex_means(x: dace.complex128[10, 7], y: dace.complex64[9]):
    return np.mean(x, axis=0), np.mean(x, axis=1), np.mean(y)


@dace.program
def counts(x: dace.bool[10, 7], y: dace.float64[10, 7]):
    return np.sum(x.astype(np.int64), axis=0), np.sum((y > 0).astype(np.int64))


@dace.program
def moments(x: dace.float64[10, 7]):
    variance = np.mean((x - np.mean(x, axis=0)) ** 2, axis=0)
    deviation = np.sqrt(np.mean((x - np.mean(x)) ** 2))
    return variance, deviation, np.sqrt(np.sum(x * x)), np.max(x, axis=0) - np.min(x, axis=0)


@dace.program
def centred(x: dace.float64[10]):
    m = np.sum(x) / 10
    return x - m


@dace.program
def normalised(x: dace.float64[10, 4]):
    s = np.sum(x, axis=0)
    return x / s


@dace.program
def accumulated(x: dace.float64[8, 5], y: dace.float64[5]):
    for i, j in dace.map[0:8, 0:5]:
        y[j] += x[i, j] * 2


@dace.program
def from_zeros(x: dace.float64[8, 5]):
    y = np.zeros((5,), np.float64)
    for i, j in dace.map[0:8, 0:5]:
        y[j] += x[i, j]
    return y


@dace.program
def twice_from_zeros(x: dace.float64[8, 5]):
    y = np.zeros((8,), np.float64)
    for i, j in dace.map[0:8, 0:5]:
        y[i] += x[i, j]
    for i, j in dace.map[0:8, 0:5]:
        y[i] += x[i, j] * x[i, j]
    return y


@dace.program
def to_one_element(x: dace.float64[9], y: dace.float64[1]):
    for i in dace.map[0:9]:
        y[0] += x[i]


@dace.program
def greatest(x: dace.float64[9], y: dace.float64[1]):
    for i in dace.map[0:9]:
        y[0] = max(y[0], x[i])


@dace.program
def sums_of_steps(x: dace.float64[8, 5]):
    y = np.zeros((5,), np.float64)
    for t in range(4):
        for i, j in dace.map[0:8, 0:5]:
            y[j] += x[i, j] * t
        for k, j in dace.map[0:8, 0:5]:
            y[j] += x[k, j] / (t + 1)
    return y


@dace.program
def restarted(x: dace.float64[9, 5], z: dace.float64[5]):
    y = np.zeros((5,), np.float64)
    for t in range(6):
        if t % 3 == 2:
            z[:] = z + y
            y[:] = x[t]
        for s in range(3):
            for i, j in dace.map[0:9, 0:5]:
                y[j] += x[i, j] * (t + s)
    return y


@dace.program
def histogram(c: dace.int64[20], h: dace.int64[5]):
    for i in dace.map[0:20]:
        h[c[i]] += 1


@dace.program
def tiny(x: dace.float64[1, 3]):
    return np.sum(x, axis=0), np.sum(x, axis=1), np.max(x)


def bins(rng):
    return rng.integers(0, 5, 20)


def _each(*names):
    """The same grid for several spaces."""
    return lambda grid: dict.fromkeys(names, grid)


SUMS = _each("__return_0", "__return_1", "sum_x_1")
EXTREMES = _each("__return_0", "__return_1", "max_x_0", "min_x_0")
LOGICAL = _each("__return_0", "__return_1", "all_expr_0", "any_expr_0")
THREE = _each("__return_0", "__return_1", "__return_2")

CASES = [
    *cases(sums, *map(SUMS, [(2, 2), (3, 1), (1, 3), (4, 2)])),
    *cases(extremes, *map(EXTREMES, [(2, 2), (4, 1), (1, 4)])),
    *cases(products, *map(_each("__return_0", "__return_1"), [(2, 1), (4, 1), (2, 3)])),
    *cases(logical, *map(LOGICAL, [(2, 2), (4, 1), (1, 3)])),
    *cases(cube, *map(THREE, [(2, 1, 2), (1, 3, 1), (2, 2, 2), (1, 1, 4)])),
    *cases(ufuncs, *map(THREE, [(2, 2), (4, 1)])),
    *cases(
        of_types,
        {"__return_0": (3, 1), "max_y": (3,), "sum_z": (2,), "reduce_w": (4,), "min_x": (2, 2)},
    ),
    *cases(
        means,
        {"mean_x": (2, 2)},
        {"mean_x": (1, 4), "mean_x_1": (2, 2), "__return_0": (3,)},
        ranks=(4, 6),
    ),
    *cases(complex_means, {"__return_0": (3,), "__return_1": (2,), "mean_y": (4,)}),
    *cases(counts, {"__return_0": (2, 2), "sum_expr_0": (4, 1)}),
    *cases(moments, {"variance": (3, 1)}),
    *cases(centred, {"sum_x": (4,)}, {"__return": (3,)}, {"m": (2,)}),
    *cases(normalised, {"s": (2, 2)}, {"s": (4, 1), "__return": (4, 1)}),
    *cases(accumulated, {"y": (2, 2)}, {"y": (4, 1)}, {"y": (1, 4)}, {"y": (3, 1)}),
    *cases(from_zeros, {"__return.2": (2, 2)}, {"__return": (2,), "__return.2": (4, 1)}),
    *cases(twice_from_zeros, {"__return.2": (2, 2), "__return.3": (1, 4)}, {"__return.2": (1, 3)}),
    *cases(to_one_element, {"y": (4,)}, {"y": (1,)}, {"y": (2,)}),
    *cases(
        sums_of_steps,
        *map(_each("__return.2", "__return.3"), [(4, 1), (3, 1), (2, 2), (6, 1)]),
        {"__return.2": (4, 1)},
    ),
    *cases(restarted, *map(_each("__return.3"), [(4, 1), (2, 2), (1, 3)])),
    *cases(greatest, {"y": (1,)}),
    *cases(histogram, {"h": (4,)}, {"h": (3,)}, c=bins),
    *cases(tiny, {"__return_0": (1, 3), "sum_x_0": (2, 1), "max_x": (1, 2)}),
]
