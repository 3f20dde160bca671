"""Products of matrices and vectors in all schemes."""

import dace
import numpy as np

from lowering.harness import cases


@dace.program
def matmul(a: dace.float32[10, 8], b: dace.float32[8, 6]):
    return a @ b


@dace.program
def batched(a: dace.float64[3, 5, 4], b: dace.float64[3, 4, 6]):
    return a @ b


@dace.program
def matrix_vector(a: dace.float64[10, 7], x: dace.float64[7]):
    return a @ x


@dace.program
def vector_matrix(x: dace.float64[10], a: dace.float64[10, 7]):
    return x @ a


@dace.program
def inner(x: dace.float64[10], y: dace.float64[10]):
    return x @ y


@dace.program
def transposed_left(x: dace.float64[10, 7], y: dace.float64[10, 5]):
    return x.T @ y


@dace.program
def transposed_right(x: dace.float64[10, 7], y: dace.float64[5, 7]):
    return x @ y.T


@dace.program
def gram(a: dace.float64[7, 5]):
    return a @ a.T


@dace.program
def square(a: dace.float64[6, 6]):
    return a @ a


@dace.program
def square_plus_transposed(a: dace.float64[6, 6]):
    return a @ a + a.T


@dace.program
def of_integers(a: dace.int64[4, 5], b: dace.int64[5, 3]):
    return a @ b


@dace.program
def of_complex(a: dace.complex64[4, 5], b: dace.complex64[5, 3], c: dace.complex128[3, 3]):
    return a @ b, c @ c


@dace.program
def in_chain(a: dace.float64[10, 8], b: dace.float64[8, 6], c: dace.float64[6, 5]):
    return a @ b @ c


@dace.program
def into_argument(a: dace.float64[9, 4], b: dace.float64[4, 5], c: dace.float64[9, 5]):
    c[:] = a @ b


@dace.program
def added_to_argument(a: dace.float64[9, 4], b: dace.float64[4, 5], c: dace.float64[9, 5]):
    c += a @ b


@dace.program
def of_row(a: dace.float64[5, 6], x: dace.float64[6, 4]):
    return a[3, :] @ x


@dace.program
def of_rows(a: dace.float64[9, 6], b: dace.float64[6, 4]):
    return a[1:5] @ b


@dace.program
def of_part(a: dace.float64[9, 6], b: dace.float64[6, 4], c: dace.float64[9, 4]):
    c[2:6] = a[1:5, 2:5] @ b[3:6]


@dace.program
def network(
    x: dace.float64[8, 5], w1: dace.float64[5, 9], b1: dace.float64[9], w2: dace.float64[9, 3]
):
    h = np.maximum(x @ w1 + b1, 0)
    return h @ w2


@dace.program
def thin(a: dace.float64[3, 1], b: dace.float64[1, 4]):
    return a @ b


@dace.program
def one_by_one(a: dace.float64[1, 5], b: dace.float64[5, 1], c: dace.float64[1, 1]):
    return a @ b, c @ c, b @ a


@dace.program
def complex_vectors(a: dace.complex128[5, 3], x: dace.complex128[5], y: dace.complex64[4]):
    return x @ a, x @ x, y @ y


@dace.program
def integer_vectors(a: dace.int64[5, 3], x: dace.int64[5], y: dace.int32[3]):
    return x @ a, x @ x, a @ y


@dace.program
def nested_batches(a: dace.float32[2, 3, 5, 4], b: dace.float32[2, 3, 4, 6]):
    return a @ b


@dace.program
def broadcast_batch(a: dace.float64[3, 5, 4], b: dace.float64[4, 6]):
    return a @ b


SCHEMES = [
    (1, 1, 1),
    (2, 1, 1),
    (1, 2, 1),
    (1, 1, 2),
    (3, 1, 1),
    (1, 3, 1),
    (1, 1, 3),
    (4, 1, 1),
    (1, 4, 1),
    (1, 1, 4),
    (2, 2, 1),
    (2, 1, 2),
    (1, 2, 2),
    (3, 2, 1),
    (1, 2, 3),
    (3, 1, 2),
    (2, 2, 2),
    (8, 1, 1),
    (1, 1, 8),
    (4, 1, 2),
]


@dace.program
def solved(a: dace.float64[7, 7], b: dace.float64[7, 5]):
    return np.linalg.solve(a, b)


@dace.program
def solved_for_a_vector(a: dace.float32[7, 7], b: dace.float32[7]):
    x = np.linalg.solve(a, b)
    return 2 * x


@dace.program
def solved_windows(
    a: dace.complex128[2, 7, 7], b: dace.complex128[9, 10], c: dace.complex128[2, 7, 5]
):
    for k in range(2):
        c[k] = np.linalg.solve(a[k], b[1:8, 2:7])


def far_from_singular(dtype, *stack):
    return lambda rng: (rng.random((*stack, 7, 7)) + 7 * np.eye(7)).astype(dtype)


CASES = [
    *(case for grid in SCHEMES for case in cases(matmul, {"_MatMult_": grid})),
    *cases(matmul, {"_MatMult_": (2, 2, 1)}, {"_MatMult_": (1, 1, 3)}, ranks=6),
    *cases(
        batched,
        *(
            {"__return": g}
            for g in [
                (3, 1, 1, 1),
                (1, 2, 2, 1),
                (1, 1, 1, 4),
                (2, 1, 1, 2),
                (2, 2, 1, 2),
                (4, 1, 1, 1),
            ]
        ),
    ),
    *cases(matrix_vector, *({"__return": g} for g in [(4, 1), (1, 3), (2, 2), (2, 3)])),
    *cases(vector_matrix, *({"__return": g} for g in [(4, 1), (1, 3), (2, 2)])),
    *cases(inner, {"__return": (4,)}, {"__return": (3,)}, {"__return": (1,)}),
    *cases(
        transposed_left, *({"__return": g} for g in [(2, 1, 2), (3, 1, 1), (1, 4, 1), (2, 2, 2)])
    ),
    *cases(transposed_right, *({"__return": g} for g in [(2, 1, 2), (3, 1, 1), (1, 4, 1)])),
    *cases(gram, *({"__return": g} for g in [(2, 1, 2), (2, 2, 1), (1, 4, 1)])),
    *cases(square, *({"__return": g} for g in [(2, 2, 1), (1, 1, 4), (3, 1, 2)])),
    *cases(square_plus_transposed, {"a_matmul_a": (2, 2, 1)}, {"__return": (3, 1)}),
    *cases(of_integers, *({"__return": g} for g in [(2, 1, 2), (2, 2, 1)])),
    *cases(of_complex, {"__return_0": (2, 1, 2), "__return_1": (1, 3, 1)}),
    *cases(
        in_chain,
        {"a_matmul_b": (2, 2, 1), "__return": (1, 2, 2)},
        {"a_matmul_b": (4, 1, 1)},
        {"__return": (1, 1, 3)},
    ),
    *cases(into_argument, {"c": (2, 2, 1)}, {"c": (3, 1, 1)}),
    *cases(added_to_argument, {"c": (3, 1)}, {"c": (2, 2)}),
    *cases(of_row, *({"__return": g} for g in [(2, 2), (1, 3), (4, 1)])),
    *cases(of_rows, *({"__return": g} for g in [(2, 2, 1), (3, 1, 1), (1, 1, 4), (2, 1, 2)])),
    *cases(of_part, *({"c": g} for g in [(2, 2, 1), (3, 1, 1), (1, 1, 3)])),
    *cases(network, {"x_matmul_w1": (4, 1, 1)}, {"x_matmul_w1": (1, 4, 1), "__return": (1, 1, 4)}),
    *cases(thin, {"__return": (2, 2, 1)}, {"__return": (1, 1, 2)}),
    *cases(thin, {"__return": (1, 4, 1)}),
    *cases(one_by_one, {"__return_0": (1, 1, 4), "__return_1": (1, 1, 1), "__return_2": (2, 2, 1)}),
    *cases(one_by_one, {"__return_0": (1, 1, 3), "__return_2": (3, 1, 1)}),
    *cases(complex_vectors, {"__return_0": (3, 1), "__return_1": (4,), "__return_2": (2,)}),
    *cases(complex_vectors, {"__return_0": (2, 2), "__return_1": (2,), "__return_2": (3,)}),
    *cases(integer_vectors, {"__return_0": (2, 2), "__return_1": (4,), "__return_2": (3, 1)}),
    *cases(
        nested_batches,
        {"__return": (2, 1, 2, 1, 1)},
        {"__return": (1, 2, 1, 2, 1)},
        {"__return": (1, 1, 2, 2, 2)},
    ),
    *cases(solved, {"__return": (3,)}, {"__return": (4,)}, a=far_from_singular(float)),
    *cases(solved_for_a_vector, {"__return": (3,)}, a=far_from_singular(np.float32)),
    *cases(solved_windows, {"c_slice": (2,)}, a=far_from_singular(complex, 2)),
    *cases(broadcast_batch, {"__return": (2, 1, 2, 1)}, {"__return": (1, 3, 1, 1)}),
]
