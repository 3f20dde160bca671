"""NumPy functions that DaCe makes of other nodes, and programs with hardly anything in them."""

import dace
import numpy as np

from lowering.harness import cases


@dace.program
def einsum(a: dace.float64[4, 5], b: dace.float64[5, 6]):
    return np.einsum("ij,jk->ik", a, b)


@dace.program
def batched_einsum(a: dace.float64[3, 4, 5], b: dace.float64[3, 5, 6]):
    return np.einsum("bij,bjk->bik", a, b)


@dace.program
def inner_einsum(a: dace.float64[4, 5], b: dace.float64[5, 5], c: dace.float64[6, 5]):
    return np.einsum("ij,kj->ik", a, b), np.einsum("ij,kj->ik", a, c)


@dace.program
def dot(x: dace.float64[10], y: dace.float64[10]):
    return np.dot(x, y)


@dace.program
def outer(x: dace.float64[5], y: dace.float64[4]):
    return np.multiply.outer(x, y)


@dace.program
def masked(x: dace.float64[10]):
    x[x > 0] = 0


@dace.program
def gathered(x: dace.float64[10], c: dace.int64[4]):
    return x[c]


@dace.program
def rolled(x: dace.float64[10]):
    y = x + 1
    return np.roll(y, 2) * 2


@dace.program
def contracted(a: dace.float64[4, 5], b: dace.float64[5, 6]):
    return np.tensordot(a, b, axes=([1], [0]))


@dace.program
def contracted_over_two(a: dace.float64[4, 5, 3], b: dace.float64[3, 6, 5]):
    return np.tensordot(a, b, axes=([1, 2], [2, 0]))


@dace.program
def no_iterations(x: dace.float64[5], y: dace.float64[5]):
    for i in dace.map[3:3]:
        y[i] = x[i]


@dace.program
def only_a_number(x: dace.float64[5]):
    return 3.0


@dace.program
def transposed(x: dace.float64[4, 5, 3]):
    return np.transpose(x, (2, 0, 1)), np.transpose(x)


@dace.program
def transposed_beside(x: dace.float64[6, 4, 3], z: dace.float64[8]):
    return np.transpose(x, (2, 0, 1)), 2 * z


@dace.program
def shifted_in_a_circle(x: dace.float64[10]):
    return np.roll(x, 2)


@dace.program
def repeated(x: dace.float64[5]):
    return x + x, x * x


@dace.program
def eye(x: dace.float64[4, 4]):
    return x + np.eye(4)


CASES = [
    *cases(einsum, {"__return": (2, 1, 2)}, {"__return": (2, 2, 1)}),
    *cases(batched_einsum, {"__return": (3, 1, 1, 1)}, {"__return": (1, 2, 1, 2)}),
    *cases(
        inner_einsum, {"__return_0": (2, 1, 2), "__return_1": (2, 2, 1)}, {"__return_1": (1, 3, 1)}
    ),
    *cases(dot, {"dot_x_y": (4,)}, {"dot_x_y": (3,)}),
    *cases(outer, {"__return": (2, 2)}),
    *cases(masked, {"x": (4,)}, {"x": (3,)}),
    *cases(gathered, {"__return": (2,)}, c=lambda rng: rng.integers(0, 10, 4)),
    *cases(rolled, {"y": (4,)}, {"__return": (3,)}),
    *cases(contracted, {"__return": (2, 1, 2)}, {"__return": (3, 1, 1)}),
    *cases(contracted_over_two, {"__return": (2, 2, 1, 1)}, {"__return": (1, 2, 1, 2)}),
    *cases(no_iterations, {"y": (2,)}),
    *cases(only_a_number, {}, ranks=2),
    *cases(
        transposed, {"__return_0": (3, 1, 1), "__return_1": (1, 2, 2)}, {"__return_0": (1, 4, 1)}
    ),
    *cases(transposed_beside, {"__return_1": (4,)}, {"__return_0": (2, 3, 1), "__return_1": (4,)}),
    *cases(shifted_in_a_circle, {"__return": (4,)}, {"__return": (3,)}),
    *cases(repeated, {"__return_0": (4,), "__return_1": (2,)}),
    *cases(eye, {"__return": (2, 2)}),
]
