"""Maxima and minima of numbers among which are NaN and infinities: a NaN wins, as in NumPy."""

# ruff: noqa: F821, F841 (tasklets declare their connectors)

import dace
import numpy as np

from lowering.harness import Generator, cases


def holed(*shape, dtype=np.float64):
    """Draws numbers of which every seventh or so is none, and whole columns are infinite."""

    def draw(rng: Generator) -> np.ndarray:
        values = rng.random(shape) - 0.5
        values[rng.random(shape) < 0.15] = np.nan
        values[..., 2], values[..., 3] = -np.inf, np.inf
        values[..., 4] = rng.random(shape[:-1])
        return values.astype(dtype)

    return draw


@dace.program
def extremes(x: dace.float64[10, 7]):
    return np.max(x, axis=0), np.min(x, axis=0), np.max(x, axis=1), np.min(x), x.max()


@dace.program
def extremes_of_singles(x: dace.float32[33, 7]):
    return np.max(x, axis=0), np.minimum.reduce(x, axis=1), np.max(x), np.maximum.reduce(x, axis=0)


@dace.program
def greater_of_two(x: dace.float64[10, 7], y: dace.float64[10, 7]):
    return np.maximum(x, y), np.minimum(y, 0.1), np.clip(x, -0.2, 0.2), np.maximum(0, x)


@dace.program
def greater_in_python(x: dace.float64[10, 7], y: dace.float64[10]):
    for i in range(10):
        y[i] = max(x[i, 0], x[i, 1]) + min(0.1, x[i, 4])


@dace.program
def written_together(x: dace.float64[12, 7], most: dace.float64[7], least: dace.float64[7]):
    for i, j in dace.map[0:12, 0:7]:
        with dace.tasklet:
            value << x[i, j]
            larger >> most(1, lambda a, b: max(a, b))[j]
            smaller >> least(1, lambda a, b: min(a, b))[j]
            larger = value
            smaller = value


def _written_together(x, most, least):
    most[:] = np.maximum(most, x.max(axis=0))
    least[:] = np.minimum(least, x.min(axis=0))


@dace.program
def saturated(x: dace.float64[12, 7], y: dace.float64[7]):
    for i, j in dace.map[0:12, 0:7]:
        with dace.tasklet:
            value << x[i, j]
            total >> y(1, lambda a, b: min(a + b, 1))[j]
            total = value


@dace.program
def positive_in_all(x: dace.float64[12, 7], y: dace.float64[7], z: dace.float64[7]):
    for i, j in dace.map[0:12, 0:7]:
        with dace.tasklet:
            value << x[i, j]
            every >> y(1, lambda a, b: a > 0 and b > 0)[j]
            other >> z(1, lambda a, b: a + 1 != b)[j]
            every = value
            other = value


def _positive_in_all(x, y, z):
    for row in x:
        y[:] = (y > 0) & (row > 0)
        z[:] = z + 1 != row


def _saturated(x, y):
    for row in x:
        y[:] = np.minimum(y + row, 1)


@dace.program
def places_of_extremes(x: dace.float64[10, 7], k: dace.int32[4, 3]):
    return np.argmax(x, axis=0), np.argmin(x, axis=1), np.argmax(k, axis=1)


CASES = [
    *cases(
        extremes,
        {"__return_0": (2, 2), "__return_1": (1, 4), "__return_2": (2, 2), "min_x_0": (2, 2)},
        {"__return_0": (1, 3), "__return_2": (1, 4), "min_x_0": (4, 1), "max": (1, 2)},
        {},
        ranks=4,
        x=holed(10, 7),
    ),
    *cases(
        extremes_of_singles,
        {"__return_0": (1, 4), "__return_1": (2, 2), "max_x_0": (4, 1)},
        x=holed(33, 7, dtype=np.float32),
    ),
    *cases(
        greater_of_two,
        {"__return_0": (4, 1), "__return_1": (1, 4), "__return_2": (2, 2), "__return_3": (2, 1)},
        x=holed(10, 7),
        y=holed(10, 7),
    ),
    *cases(greater_in_python, {}, x=holed(10, 7)),
    *cases(
        written_together,
        {"most": (4, 1)},
        {"most": (2, 2)},
        {"most": (1, 1)},
        ranks=4,
        reference=_written_together,
        x=holed(12, 7),
        most=holed(7),
    ),
    *cases(
        saturated, {"y": (1, 4)}, {"y": (1, 1)}, reference=_saturated, x=holed(12, 7), y=holed(7)
    ),
    *cases(
        positive_in_all,
        {"y": (1, 4)},
        reference=_positive_in_all,
        x=lambda rng: rng.integers(-1, 6, (12, 7)).astype(float),
    ),
    *cases(
        places_of_extremes,
        {"argmax_x.2": (1, 4), "argmin_x.2": (4, 1), "argmax_k.2": (2, 1)},
        x=holed(10, 7),
        k=lambda rng: np.full((4, 3), np.iinfo(np.int32).min, np.int32),
    ),
]
