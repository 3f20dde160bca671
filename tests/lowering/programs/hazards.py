"""What is easily got wrong: values read where they are written, in other layouts, in part."""
# ruff: noqa: F821, F841  (memlets of explicit tasklets)

import dace
import numpy as np

from lowering.harness import cases


@dace.program
def stepped_inside(x: dace.float64[6, 8], y: dace.float64[6, 8]):
    for i in dace.map[0:6]:
        for j in dace.map[0:8:2]:
            y[i, j] = x[i, j]


@dace.program
def read_after_write(x: dace.float64[12, 10], y: dace.float64[12, 10], z: dace.float64[12, 10]):
    for i, j in dace.map[0:12, 0:10]:
        y[i, j] = x[i, j] * 2
        z[i, j] = y[i, j] + 1
    for i, j in dace.map[0:12, 0:10]:
        y[i, j] = y[i, j] * 3
        z[i, j] = y[i, j] - z[i, j]


@dace.program
def guarded_in_place(x: dace.float64[12, 10]):
    for i, j in dace.map[0:12, 0:10]:
        if x[i, j] > 0:
            x[i, j] = x[i, j] * 2
    for i, j in dace.map[0:12, 0:10]:
        if x[i, j] < 0:
            x[i, j] = x[i, j] + 1
    for i, j in dace.map[0:12, 0:10]:
        x[i, j] = x[i, j] * 0.5


@dace.program
def odd_from_even(x: dace.float64[24]):
    for i in dace.map[1:11]:
        if x[2 * i] > 0:
            x[2 * i + 1] = x[2 * i] + x[2 * i + 2]


@dace.program
def two_outputs_of_one_map(x: dace.float64[10], y: dace.float64[20]):
    for i in dace.map[0:10]:
        y[i] = x[i]
        y[i + 10] = -x[i]


@dace.program
def accumulated_then_used(x: dace.float64[8, 6], y: dace.float64[6]):
    y[:] = y * 2
    for i, j in dace.map[0:8, 0:6]:
        y[j] += x[i, j]
    y[:] = y + 1


@dace.program
def read_before_and_after(x: dace.float64[12], y: dace.float64[12]):
    a = x + 1
    x[:] = a * 2
    y[:] = x + a


@dace.program
def greatest(x: dace.float64[8, 6], y: dace.float64[6]):
    for i, j in dace.map[0:8, 0:6]:
        with dace.tasklet:
            a << x[i, j]
            b >> y(1, lambda p, q: max(p, q))[j]
            b = a


@dace.program
def least(x: dace.int32[8, 6], y: dace.int32[8]):
    for i, j in dace.map[0:8, 0:6]:
        with dace.tasklet:
            a << x[i, j]
            b >> y(1, lambda p, q: min(p, q))[i]
            b = a


@dace.program
def multiplied(x: dace.complex128[8, 6], y: dace.complex128[1]):
    for i, j in dace.map[0:8, 0:6]:
        with dace.tasklet:
            a << x[i, j]
            b >> y(1, lambda p, q: p * q)[0]
            b = a * 2


@dace.program
def all_of(x: dace.bool[8, 6], y: dace.bool[6]):
    for i, j in dace.map[0:8, 0:6]:
        with dace.tasklet:
            a << x[i, j]
            b >> y(1, lambda p, q: p and q)[j]
            b = a


@dace.program
def any_of(x: dace.bool[8, 6], y: dace.bool[8]):
    for i, j in dace.map[0:8, 0:6]:
        with dace.tasklet:
            a << x[i, j]
            b >> y(1, lambda p, q: p or q)[i]
            b = a


@dace.program
def diagonals(x: dace.float64[6, 5], y: dace.float64[10]):
    for i, j in dace.map[0:6, 0:5]:
        y[i + j] += x[i, j]


@dace.program
def five_dimensions(x: dace.float32[2, 3, 2, 3, 2]):
    return np.sum(x * 2, axis=(1, 3)), np.transpose(x, (4, 3, 2, 1, 0)) + 1


@dace.program
def rows_and_columns(x: dace.float64[7, 7]):
    r = np.sum(x, axis=1)
    c = np.sum(x, axis=0)
    y = np.zeros((7, 7), np.float64)
    for i, j in dace.map[0:7, 0:7]:
        y[i, j] = r[i] * c[j] + r[j] + c[i]
    return y


@dace.program
def written_from_both_ends(x: dace.float64[10], y: dace.float64[10]):
    for i in dace.map[0:5]:
        y[i] = x[i] * 2
    for i in dace.map[0:5]:
        y[9 - i] = y[i] + 1


@dace.program
def many_scalars(a: dace.float32, b: dace.int32, c: dace.bool, d: dace.complex64):
    return a + b, d * a, c


@dace.program
def initialised_in_part(x: dace.float64[10]):
    y = np.zeros((10,), np.float64)
    y[2:8] = x[2:8]
    for i in dace.map[0:10]:
        y[i] += i
    return y


def greatest_in_numpy(x, y):
    y[:] = np.maximum(y, x.max(axis=0))


def least_in_numpy(x, y):
    y[:] = np.minimum(y, x.min(axis=1))


def multiplied_in_numpy(x, y):
    y[0] *= np.prod(x * 2)


def all_in_numpy(x, y):
    y[:] = y & x.all(axis=0)


def any_in_numpy(x, y):
    y[:] = y | x.any(axis=1)


CASES = [
    *cases(stepped_inside, {"y": (4,)}, {"y": (1,)}),
    *cases(read_after_write, {"y": (4, 1), "y.2": (1, 4)}, {"y": (2, 2), "y.2": (4, 1)}),
    *cases(guarded_in_place, {"x": (4, 1), "x.2": (1, 4), "x.3": (2, 2)}, {"x": (3, 1)}),
    *cases(odd_from_even, {"x": (4,)}, {"x": (3,)}),
    *cases(two_outputs_of_one_map, {"y": (1,)}),
    *cases(accumulated_then_used, {"y.2": (2, 2)}, {"y.2": (4, 1), "y": (3,)}, {"y.2": (1, 3)}),
    *cases(read_before_and_after, {"a": (4,), "x": (3,), "y": (2,)}, {"x": (4,)}),
    *cases(greatest, {"y": (2, 2)}, {"y": (4, 1)}, {"y": (1, 3)}, reference=greatest_in_numpy),
    *cases(least, {"y": (2, 2)}, {"y": (1, 4)}, reference=least_in_numpy),
    *cases(multiplied, {"y": (2, 2)}, {"y": (3, 1)}, reference=multiplied_in_numpy),
    *cases(all_of, {"y": (2, 2)}, {"y": (4, 1)}, reference=all_in_numpy),
    *cases(any_of, {"y": (2, 2)}, {"y": (1, 4)}, reference=any_in_numpy),
    *cases(diagonals, {"y": (2, 2)}, {"y": (3, 1)}, {"y": (1, 4)}),
    *cases(five_dimensions, {"__return_0": (2, 1, 1, 3, 1), "__return_1": (1, 1, 2, 1, 2)}),
    *cases(rows_and_columns, {"__return.2": (2, 2)}, {"r": (4, 1)}, {"c": (1, 3)}, ranks=4),
    *cases(written_from_both_ends, {"y": (2,), "y.2": (3,)}, {"y": (5,)}),
    *cases(many_scalars, {}, ranks=3),
    *cases(initialised_in_part, {"__return": (4,)}, {"__return.3": (3,)}),
]
