"""Element-wise programs: broadcasting, scalars, types, uneven and tiny extents."""

import dace
import numpy as np

from lowering.harness import cases


@dace.program
def broadcast(x: dace.float64[4, 7, 5], y: dace.float64[7, 5], z: dace.float64[5]):
    return np.sin(x) + y * 2 - z


@dace.program
def column_times_row(x: dace.float64[7, 1], y: dace.float64[1, 5]):
    return x * y + 1.0


@dace.program
def outer_and_differences(x: dace.float64[7], y: dace.float64[5]):
    return np.multiply.outer(x, y), x[1:] - x[:-1]


@dace.program
def tiny(x: dace.float64[3], y: dace.float64[1]):
    return x * y


@dace.program
def one_element(x: dace.float64[1], y: dace.float64[1, 1]):
    return x + y


@dace.program
def scalars(x: dace.float64[10], s: dace.float64, n: dace.int64):
    return x * s + n


@dace.program
def scalar_result(s: dace.float64, t: dace.float64):
    return s * t + 1.0


@dace.program
def in_place(x: dace.float64[10, 7], s: dace.float64):
    x[:] = x * s + 1


@dace.program
def add_to(x: dace.float64[11], y: dace.float64[11]):
    x += y


@dace.program
def several_results(x: dace.float64[10, 3], y: dace.float64[10, 3]):
    return x + y, x - y, x * y


@dace.program
def result_and_in_place(x: dace.float64[10], y: dace.float64[10]):
    y[:] = x * 2
    return x + y


@dace.program
def choose(x: dace.float64[13], y: dace.float64[13]):
    return np.where(x > y, x, y * 2)


@dace.program
def where(x: dace.float64[7, 5], y: dace.float64[7, 5]):
    return np.where(x > 0, x, y)


@dace.program
def where_of_one(x: dace.float64[9], c: dace.bool[9]):
    return np.where(c, x, x)


@dace.program
def where_of_windows(x: dace.float64[7, 5], y: dace.float64[5], c: dace.bool[9, 5]):
    return np.where(c[1:8], x, y), np.where(c[8], x[2:5], y)


@dace.program
def compare(x: dace.int32[13], y: dace.int32[13]):
    return x > y, np.logical_and(x > 0, y > 0), x == y


@dace.program
def single(x: dace.float32[5, 6], y: dace.float32[5, 6]):
    return np.exp(x) * y - np.float32(2)


@dace.program
def integers(x: dace.int32[9], y: dace.int64[9]):
    return x * 3 - y, x // 2


@dace.program
def complexes(x: dace.complex128[6, 2], y: dace.complex64[6, 2], s: dace.complex128):
    return x * s + 1, y * y, np.conj(x), np.abs(x)


@dace.program
def booleans(x: dace.bool[9], y: dace.bool[9]):
    return np.logical_or(x, y), np.logical_not(x), np.logical_xor(x, y)


@dace.program
def mixed_types(x: dace.float32[8], y: dace.float64[8], z: dace.int64[8]):
    return x + y, y * z, x * z


@dace.program
def clipped(x: dace.float64[10]):
    return np.minimum(np.maximum(x, -0.1), 0.2)


@dace.program
def unsigned(x: dace.uint8[10], y: dace.uint32[10]):
    return x + y


@dace.program
def powers(x: dace.float64[10]):
    return x**2 + x**3


@dace.program
def constant(x: dace.float64[6]):
    return np.full((6,), 3.0) + x, np.ones((4, 2)), np.arange(10)


CASES = [
    *cases(broadcast, {"__return": (1, 1, 1)}, {"__return": (2, 1, 2)}, {"__return": (1, 3, 2)}),
    *cases(broadcast, {"__return": (2, 2, 2)}, {"__return": {"__i1": 4}}),
    *cases(column_times_row, {"__return": (3, 1)}, {"__return": (2, 3)}, {"__return": (1, 8)}),
    *cases(outer_and_differences, {"__return_0": (2, 2), "__return_1": (4,)}),
    *cases(tiny, {"__return": (4,)}, {"__return": (1,)}),
    *cases(one_element, {"__return": (1, 1)}, {"__return": (2, 1)}, ranks=3),
    *cases(scalars, {"__return": (4,)}, {"__return": (3,)}),
    *cases(scalar_result, {}, ranks=2),
    *cases(in_place, {"x": (2, 2)}, {"x": (3, 1)}),
    *cases(add_to, {"x": (4,)}, {"x": (3,)}),
    *cases(several_results, {"__return_0": (4, 1), "__return_1": (1, 3), "__return_2": (2, 2)}),
    *cases(result_and_in_place, {"__return": (3,)}, {"y": (4,), "__return": (2,)}),
    *cases(choose, {"__return": (4,)}),
    *cases(where, {}, {"__return": (2, 1)}, {"__return": (1, 3)}, {"__return": (2, 2)}),
    *cases(where_of_one, {"__return": (4,)}),
    *cases(where_of_windows, {"__return_0": (2, 2), "__return_1": (2, 1)}),
    *cases(compare, {"__return_0": (3,)}),
    *cases(single, {"__return": (2, 3)}),
    *cases(integers, {"__return_0": (4,)}),
    *cases(complexes, {"__return_0": (3, 1)}),
    *cases(booleans, {"__return_0": (4,)}),
    *cases(mixed_types, {"__return_0": (3,), "__return_1": (2,)}),
    *cases(clipped, {"__return": (4,)}),
    *cases(unsigned, {"__return": (3,)}),
    *cases(powers, {"__return": (3,)}),
    *cases(constant, {"__return_0": (3,), "__return_1": (4, 1), "__return_2": (4,)}),
]
