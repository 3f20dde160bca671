"""Several spaces that share arrays: chains, partial outputs, copies, propagation."""

import dace
import numpy as np

from lowering.harness import cases


@dace.program
def chain(x: dace.float64[10, 7]):
    a = np.sin(x)
    b = np.transpose(a)
    return b + 1.0


@dace.program
def map_chain(x: dace.float64[10], y: dace.float64[10]):
    t = np.zeros((10,), np.float64)
    for i in dace.map[0:10]:
        t[i] = x[i] * 2
    for i in dace.map[0:10]:
        y[i] = t[9 - i] + 1


@dace.program
def part_of_output(x: dace.float64[4], y: dace.float64[10]):
    y[3:7] = x


@dace.program
def two_parts(x: dace.float64[10], y: dace.float64[10]):
    y[0:4] = x[0:4] * 2
    y[6:10] = x[2:6]


@dace.program
def slices(x: dace.float64[10, 6]):
    return x[2:8, 1:4] * 2, x[:, 3] + 1, x[4] - 1, x[::2, 1]


@dace.program
def concatenated(a: dace.float64[6], b: dace.float64[4]):
    return np.concatenate((a, b)), a[1:3]


@dace.program
def stacked(a: dace.float64[6, 2], b: dace.float64[4, 2]):
    return np.concatenate((a * 2, b), axis=0) + 1


@dace.program
def copied(x: dace.float64[8, 3]):
    y = np.copy(x)
    y += 1
    return y


@dace.program
def reused(x: dace.float64[9]):
    a = x + 1
    b = a * a
    a[:] = b - x
    return a + b


@dace.program
def overwritten(x: dace.float64[9], y: dace.float64[9]):
    y[:] = x
    y[2:5] = 0.0
    y[:] = y * 2


@dace.program
def unused(x: dace.float64[9], z: dace.float64[4]):
    return x + 1


@dace.program
def scalar_chain(x: dace.float64[9]):
    s = np.sum(x)
    t = np.max(x) * s
    return x * s + t, t


@dace.program
def result_is_argument(x: dace.float64[9]):
    return x


@dace.program
def broadcast_row(x: dace.float64[7, 5], y: dace.float64[7, 5]):
    y[:] = x[0]
    y[:, 2] = 1.0


@dace.program
def swapped(x: dace.float64[9], y: dace.float64[9]):
    t = np.copy(x)
    x[:] = y
    y[:] = t


@dace.program
def looped(x: dace.float64[9]):
    for t in range(4):
        x[:] = x * 0.5 + t


@dace.program
def attention(q: dace.float64[6, 4], k: dace.float64[6, 4], v: dace.float64[6, 4]):
    s = q @ k.T
    e = np.exp(s)
    n = np.sum(e, axis=1)
    out = e @ v
    r = np.zeros((6, 4), np.float64)
    for i, j in dace.map[0:6, 0:4]:
        r[i, j] = out[i, j] / n[i]
    return r


CASES = [
    *cases(
        chain, {"__return": (2, 2)}, {"a": (4, 1), "b": (2, 2), "__return": (1, 4)}, {"a": (3, 1)}
    ),
    *cases(map_chain, {"t.2": (4,), "y": (2,)}, {"y": (3,)}, {"t.2": (4,), "y": (4,)}),
    *cases(part_of_output, {"y": (4,)}, {"y": (3,)}),
    *cases(two_parts, {"y": (4,), "y.2": (2,)}, {"y": (3,)}),
    *cases(slices, {"__return_0": (2, 2)}, {"__return_0": (3, 1), "__return_1": (3,)}),
    *cases(concatenated, {}, {"__return_0": (2,)}, ranks=3),
    *cases(stacked, {"__return": (4, 1)}),
    *cases(copied, {"__return.2": (4, 1)}, {"__return": (2, 1)}),
    *cases(reused, {"a": (3,)}, {"b": (4,)}),
    *cases(overwritten, {"y": (3,)}, {"y.2": (2,), "y.3": (4,)}),
    *cases(unused, {"__return": (3,)}),
    *cases(scalar_chain, {"s": (4,), "__return_0": (2,)}),
    *cases(result_is_argument, {}, ranks=2),
    *cases(broadcast_row, {"y": (3, 1)}, {"y": (2, 2)}),
    *cases(swapped, {"x": (3,)}, {"t": (2,), "y": (4,)}),
    *cases(looped, {"x": (4,)}),
    *cases(attention, {"s": (3, 1, 1)}, {"s": (2, 2, 1), "out": (2, 1, 2)}),
]
