"""Views, which become copies: reshapes, kept dimensions, slices that go into library nodes."""

import dace
import numpy as np

from lowering.harness import cases


@dace.program
def kept_dimension(x: dace.float64[6, 9]):
    m = np.maximum.reduce(x, axis=1, keepdims=True)
    e = np.exp(x - m)
    return e / np.add.reduce(e, axis=1, keepdims=True)


@dace.program
def reshaped(x: dace.float64[4, 6]):
    return np.reshape(x, (8, 3)) * 2, np.reshape(x, (24,)) + 1


@dace.program
def result_reshaped(x: dace.float64[4, 6]):
    y = x + 1
    return np.reshape(y, (2, 2, 6))


@dace.program
def flattened(x: dace.float64[4, 6]):
    return x.flatten() + 1


@dace.program
def new_axis(x: dace.float64[4], y: dace.float64[5]):
    return x[:, np.newaxis] * y


@dace.program
def product_with_column(x: dace.float64[4, 3], y: dace.float64[5, 4]):
    return y @ x[:, 1]


@dace.program
def sum_of_part(x: dace.float64[9, 8]):
    return np.sum(x[2:7, 1:4], axis=0), np.max(x[3])


@dace.program
def shifted_onto_itself(x: dace.float64[9], y: dace.float64[9, 9]):
    x[1:5] = x[0:4]
    y[1:5, 0:9:2] = y[0:4, 1:6]


@dace.program
def heads(x: dace.float64[4, 6], w: dace.float64[6, 6]):
    q = np.reshape(x @ w, (4, 2, 3))
    return np.sum(q * q, axis=2)


CASES = [
    *cases(kept_dimension, {"e": (2, 2)}, {"m_keepdims": (3, 1)}, {"__return": (4, 1)}),
    *cases(reshaped, {"__return_0": (4, 1)}, {"__return_0": (2, 3), "__return_1": (3,)}),
    *cases(result_reshaped, {"y": (2, 2)}, {"y": (3, 1)}, {"y": (4, 1)}),
    *cases(flattened, {"__return": (4,)}, {"__return": (3,)}),
    *cases(new_axis, {"__return": (2, 2)}),
    *cases(product_with_column, {"__return": (2, 2)}, {"__return": (3, 1)}),
    *cases(sum_of_part, {"__return_0": (3, 1), "max_x_slice": (2,)}, {"__return_0": (1, 4)}),
    *cases(shifted_onto_itself, {"x": (4,), "y": (2, 2)}, {"x": (3,)}),
    *cases(heads, {"x_matmul_w": (2, 2, 1)}, {"__return": (1, 2, 1)}, {"x_matmul_w": (1, 3, 1)}),
]
