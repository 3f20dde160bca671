"""Conflict resolutions beyond sums: bits, differences, quotients, and functions of the program."""

# ruff: noqa: F821, F841 (tasklets declare their connectors)

import dace
import numpy as np

from lowering.harness import cases


@dace.program
def less(x: dace.float64[10, 5], y: dace.float64[5]):
    for i, j in dace.map[0:10, 0:5]:
        y[j] -= x[i, j]


@dace.program
def divided(x: dace.float64[10, 5], y: dace.float64[5]):
    for i, j in dace.map[0:10, 0:5]:
        y[j] /= x[i, j]


@dace.program
def bits(x: dace.uint32[10, 5], both: dace.uint32[5], some: dace.uint32[5], odd: dace.uint32[5]):
    for i, j in dace.map[0:10, 0:5]:
        both[j] &= x[i, j]
    for i, j in dace.map[0:10, 0:5]:
        some[j] |= x[i, j]
    for i, j in dace.map[0:10, 0:5]:
        odd[j] ^= x[i, j]


@dace.program
def least_of_steps(x: dace.float64[9, 4, 5], y: dace.float64[5]):
    for t in range(4):
        for i, j in dace.map[0:9, 0:5]:
            with dace.tasklet:
                value << x[i, t, j]
                least >> y(1, lambda a, b: min(a, b))[j]
                least = value


@dace.program
def doubled_squares(x: dace.complex128[10, 5], y: dace.complex128[5]):
    for i, j in dace.map[0:10, 0:5]:
        with dace.tasklet:
            a << x[i, j]
            b >> y(1, lambda p, q: p + 2 * q * q)[j]
            b = a


@dace.program
def any_of(x: dace.float32[10, 5], y: dace.float32[5]):
    """Probabilities that any of several events happens."""
    for i, j in dace.map[0:10, 0:5]:
        with dace.tasklet:
            a << x[i, j]
            b >> y(1, lambda p, q: p + q - p * q)[j]
            b = a


@dace.program
def composed(x: dace.int64[10, 5], y: dace.int64[5], z: dace.int64[10, 5]):
    for i, j in dace.map[0:10, 0:5]:
        with dace.tasklet:
            a << x[i, j]
            b >> y(1, lambda p, q: p * q + p + q)[j]
            b = a
    for i, j in dace.map[0:10, 0:5]:
        z[i, j] = y[j] - x[i, j]


@dace.program
def places(x: dace.float64[10, 6]):
    return np.argmax(x, axis=0), np.argmin(x, axis=1)


def _least_of_steps(x, y):
    y[:] = np.minimum(y, x.min(axis=(0, 1)))


def _folded(function):
    def run(x, y, z=None):
        for row in x:
            y[:] = function(y, row)
        if z is not None:
            z[:] = y - x

    return run


def _wide(rng):
    return rng.integers(0, 2**32, (10, 5), np.uint32)


CASES = [
    *cases(
        places, {"argmax_x": (3,), "argmax_x.2": (1, 3), "argmin_x": (2,), "argmin_x.2": (2, 1)}
    ),
    *cases(less, {"y": (3, 1)}, {"y": (2, 2)}),
    *cases(divided, {"y": (3, 1)}, x=lambda rng: rng.random((10, 5)) + 0.5),
    *cases(
        bits,
        {"both": (4, 1), "some": (1, 3), "odd": (2, 2)},
        x=_wide,
        both=lambda rng: rng.integers(2**31, 2**32, 5, np.uint32),
    ),
    *cases(least_of_steps, {"y": (4, 1)}, {"y": (2, 2)}, {"y": (3, 1)}, reference=_least_of_steps),
    *cases(doubled_squares, {"y": (3, 1)}, reference=_folded(lambda p, q: p + 2 * q * q)),
    *cases(
        any_of,
        {"y": (3, 1)},
        {"y": (3, 2)},
        reference=_folded(lambda p, q: p + q - p * q),
        x=lambda rng: rng.random((10, 5), np.float32),
    ),
    *cases(
        composed,
        {"y": (3, 1), "z": (1, 2)},
        {"y": (2, 2), "z": (4, 1)},
        reference=_folded(lambda p, q: p * q + p + q),
        x=lambda rng: rng.integers(-9, 9, (10, 5)),
    ),
]
