"""Maps that use their index: stencils, triangles, strides, indirection, conditions."""

import dace
import numpy as np

from lowering.harness import cases


@dace.program
def index_value(x: dace.float64[10, 7], y: dace.float64[10, 7]):
    for i, j in dace.map[0:10, 0:7]:
        y[i, j] = x[i, j] * i + j


@dace.program
def stencil(x: dace.float64[12], y: dace.float64[12]):
    for i in dace.map[1:11]:
        y[i] = x[i - 1] + x[i + 1] - 2 * x[i]


@dace.program
def stencil_2d(x: dace.float64[8, 7], y: dace.float64[8, 7]):
    for i, j in dace.map[1:7, 1:6]:
        y[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]


@dace.program
def sliced_stencil(x: dace.float64[12], y: dace.float64[12]):
    y[1:-1] = 0.5 * (x[:-2] + x[2:])


@dace.program
def two_steps(x: dace.float64[12], y: dace.float64[12]):
    y[1:-1] = 0.5 * (x[:-2] + x[2:])
    x[1:-1] = 0.5 * (y[:-2] + y[2:])


@dace.program
def jacobi(x: dace.float64[10, 10], y: dace.float64[10, 10]):
    for _t in range(3):
        y[1:-1, 1:-1] = 0.2 * (
            x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        )
        x[1:-1, 1:-1] = 0.2 * (
            y[1:-1, 1:-1] + y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:]
        )


@dace.program
def triangular(x: dace.float64[10, 7], o: dace.float64[10]):
    for i in dace.map[0:10]:
        for j in dace.map[i:7]:
            o[i] += x[i, j] * i


@dace.program
def triangular_write(x: dace.float64[8, 8], y: dace.float64[8, 8]):
    for i in dace.map[0:8]:
        for j in dace.map[0 : i + 1]:
            y[i, j] = x[j, i]


@dace.program
def fir(x: dace.float64[32], h: dace.float64[4], y: dace.float64[28]):
    for i, k in dace.map[0:28, 0:4]:
        y[i] += h[k] * x[i - k + 4]


@dace.program
def stepped(x: dace.float64[11], y: dace.float64[11]):
    for i in dace.map[1:11:3]:
        y[i] = x[i] * i


@dace.program
def stepped_reads(x: dace.float64[20], y: dace.float64[10]):
    for i in dace.map[0:10]:
        y[i] = x[2 * i + 1]


@dace.program
def stepped_writes(x: dace.float64[10], y: dace.float64[20]):
    for i in dace.map[0:10]:
        y[2 * i] = x[i]


@dace.program
def reversed_reads(x: dace.float64[10], y: dace.float64[10]):
    for i in dace.map[0:10]:
        y[i] = x[9 - i]


@dace.program
def reversed_writes(x: dace.float64[10], y: dace.float64[10]):
    for i in dace.map[0:10]:
        y[9 - i] = x[i]


@dace.program
def modulo(x: dace.float64[4], y: dace.float64[10]):
    for i in dace.map[0:10]:
        y[i] = x[i % 4]


@dace.program
def halved(x: dace.float64[5], y: dace.float64[10]):
    for i in dace.map[0:10]:
        y[i] = x[i // 2]


@dace.program
def diagonal(x: dace.float64[9], y: dace.float64[9, 9]):
    for i in dace.map[0:9]:
        y[i, i] = x[i]


@dace.program
def diagonal_read(y: dace.float64[9, 9]):
    x = np.zeros((9,), np.float64)
    for i in dace.map[0:9]:
        x[i] = y[i, i]
    return x


@dace.program
def flattened(x: dace.float64[4, 5], y: dace.float64[20]):
    for i, j in dace.map[0:4, 0:5]:
        y[5 * i + j] = x[i, j]


@dace.program
def indirect(x: dace.float64[10], c: dace.int64[7], y: dace.float64[7]):
    for i in dace.map[0:7]:
        y[i] = x[c[i]] * i


@dace.program
def spmv(
    row: dace.int64[7],
    col: dace.int64[20],
    val: dace.float64[20],
    x: dace.float64[9],
    y: dace.float64[6],
):
    for i in dace.map[0:6]:
        for k in range(row[i], row[i + 1]):
            y[i] += val[k] * x[col[k]]


@dace.program
def conditional(x: dace.float64[11], y: dace.float64[11]):
    for i in dace.map[0:11]:
        if x[i] > 0:
            y[i] = x[i]


@dace.program
def both_branches(x: dace.float64[11], y: dace.float64[11]):
    for i in dace.map[0:11]:
        if x[i] > 0:
            y[i] = x[i]
        else:
            y[i] = -i


@dace.program
def conditional_count(x: dace.float64[11], n: dace.int64[1]):
    for i in dace.map[0:11]:
        if x[i] > 0:
            n[0] += 1


@dace.program
def local_loop(x: dace.float64[10, 5], c: dace.int64[10], y: dace.float64[10]):
    for i in dace.map[0:10]:
        acc = 0.0
        for k in range(5):
            if x[i, k] > 0:
                acc += x[i, k] * x[c[i], k]
        y[i] = acc


@dace.program
def local_array(x: dace.float64[10, 4], y: dace.float64[10, 4]):
    for i in dace.map[0:10]:
        row = np.zeros((4,), np.float64)
        for j in range(4):
            row[j] = x[i, j] * i
        for j in range(4):
            y[i, j] = row[3 - j]


@dace.program
def row_slices(x: dace.float64[10, 4], y: dace.float64[10, 4]):
    for i in dace.map[0:10]:
        y[i, :] = x[i, :] * 2


@dace.program
def row_sums(x: dace.float64[10, 4], y: dace.float64[10]):
    for i in dace.map[0:10]:
        y[i] = np.sum(x[i, :])


@dace.program
def _scaled(v: dace.float64[4], s: dace.float64, out: dace.float64[4]):
    out[:] = v * s


@dace.program
def called(x: dace.float64[10, 4], s: dace.float64[10], y: dace.float64[10, 4]):
    for i in dace.map[0:10]:
        _scaled(x[i, :], s[i], y[i, :])


@dace.program
def nested_stencil(x: dace.float64[9, 8], y: dace.float64[9, 8]):
    for i in dace.map[1:8]:
        for j in dace.map[1:7]:
            y[i, j] = x[i - 1, j] + x[i + 1, j + 1]


@dace.program
def shifted_rows(x: dace.float64[6, 4], y: dace.float64[9, 4]):
    for i, j in dace.map[0:6, 0:4]:
        y[i + 3, j] = x[i, j] + i * j


@dace.program
def product_of_indices(y: dace.float64[6, 5]):
    for i, j in dace.map[0:6, 0:5]:
        y[i, j] = i * 10 + j


@dace.program
def pairs(x: dace.float64[10], y: dace.float64[5]):
    for i in dace.map[0:5]:
        y[i] = x[2 * i] + x[2 * i + 1]


@dace.program
def offset_range(x: dace.float64[20], y: dace.float64[20]):
    for i in dace.map[5:15]:
        y[i] = x[i] + x[i - 5] * x[i + 5]


def called_in_numpy(x, s, y):
    y[:] = x * s[:, np.newaxis]


def columns(rng):
    return rng.integers(0, 9, 20)


def rows(rng):
    return np.sort(np.concatenate([[0, 20], rng.integers(0, 20, 5)]))


CASES = [
    *cases(index_value, {"y": (2, 2)}, {"y": (3, 1)}, {"y": (2, 3)}, {"y": (1, 8)}),
    *cases(stencil, {"y": (4,)}, {"y": (3,)}, {"y": (1,)}),
    *cases(stencil_2d, {"y": (2, 2)}, {"y": (4, 2)}, {"y": (1, 3)}),
    *cases(sliced_stencil, {"y": (4,)}, {"y": (3,)}),
    *cases(two_steps, {"y": (4,), "x": (4,)}, {"y": (3,)}),
    *cases(jacobi, {"y": (2, 2)}, {"y": (3, 2), "x": (3, 2)}),
    *cases(triangular, {"o": (4,)}, {"o": (3,)}),
    *cases(triangular_write, {"y": (4,)}, {"y": (3,)}),
    *cases(fir, {"y": (2, 2)}, {"y": (3, 1)}, {"y": (1, 4)}),
    *cases(stepped, {"y": (2,)}, {"y": (3,)}, {"y": (8,)}),
    *cases(stepped_reads, {"y": (4,)}),
    *cases(stepped_writes, {"y": (4,)}, {"y": (3,)}),
    *cases(reversed_reads, {"y": (4,)}),
    *cases(reversed_writes, {"y": (4,)}, {"y": (3,)}),
    *cases(modulo, {"y": (4,)}),
    *cases(halved, {"y": (4,)}, {"y": (3,)}),
    *cases(diagonal, {"y": (4,)}),
    *cases(diagonal_read, {"__return.2": (3,)}),
    *cases(flattened, {"y": (4, 1)}, {"y": (3, 1)}),
    *cases(indirect, {"y": (4,)}, {"y": (3,)}, c=lambda rng: rng.integers(0, 10, 7)),
    *cases(spmv, {"y": (4,)}, {"y": (3,)}, row=rows, col=columns),
    *cases(conditional, {"y": (4,)}, {"y": (3,)}),
    *cases(both_branches, {"y": (4,)}),
    *cases(conditional_count, {"n": (4,)}),
    *cases(local_loop, {"y": (4,)}, c=lambda rng: rng.integers(0, 10, 10)),
    *cases(local_array, {"y": (4,)}),
    *cases(row_slices, {"y": (4,)}),
    *cases(row_sums, {"y": (4,)}),
    *cases(called, {"y": (4,)}, reference=called_in_numpy),
    *cases(nested_stencil, {"y": (4,)}),
    *cases(shifted_rows, {"y": (2, 2)}, {"y": (4, 1)}),
    *cases(product_of_indices, {"y": (2, 2)}),
    *cases(pairs, {"y": (4,)}),
    *cases(offset_range, {"y": (4,)}, {"y": (3,)}),
]
