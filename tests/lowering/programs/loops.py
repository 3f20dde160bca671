"""Sequential loops around spaces: what an index of the loop reads and writes."""

import dace
import numpy as np

from lowering.harness import cases


@dace.program
def rows_in_turn(x: dace.float64[5, 6]):
    for t in range(1, 5):
        x[t] = x[t - 1] * 2 + x[t]


@dace.program
def columns_backwards(x: dace.float64[6, 5]):
    for t in range(3, -1, -1):
        x[:, t] = x[:, t + 1] + x[:, t]


@dace.program
def sum_of_each_row(x: dace.float64[4, 10]):
    y = np.zeros((4,), np.float64)
    for t in range(4):
        y[t] = np.sum(x[t])
    return y


@dace.program
def growing(x: dace.float64[8], y: dace.float64[8]):
    for t in range(8):
        for i in dace.map[0:8]:
            if i <= t:
                y[i] += x[t]


@dace.program
def powers(a: dace.float64[4, 4], x: dace.float64[4]):
    for _t in range(3):
        x[:] = a @ x
    return x + 1


@dace.program
def every_other(x: dace.float64[9], y: dace.float64[9]):
    for t in range(0, 8, 2):
        for i in dace.map[0:9]:
            y[i] = y[i] + x[t] * i


@dace.program
def two_deep(x: dace.float64[3, 4, 5]):
    for s in range(1, 3):
        for t in range(1, 4):
            x[s, t] = x[s - 1, t] + x[s, t - 1]


@dace.program
def accumulated_in_loop(x: dace.float64[6, 5], y: dace.float64[5]):
    for t in range(3):
        for i, j in dace.map[0:6, 0:5]:
            y[j] += x[i, j] * t


@dace.program
def five_points(x: dace.float64[13, 11], y: dace.float64[13, 11]):
    for _t in range(3):
        for i, j in dace.map[1:12, 1:10]:
            y[i, j] = 0.2 * (x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])
        for i, j in dace.map[1:12, 1:10]:
            x[i, j] = 0.2 * (y[i, j] + y[i - 1, j] + y[i + 1, j] + y[i, j - 1] + y[i, j + 1])


@dace.program
def wide_and_narrow(x: dace.float64[3, 20]):
    for t in range(1, 3):
        x[t, 3:-3] = x[t - 1, :-6] - x[t - 1, 6:]
        x[t, 1:-1] = x[t, 1:-1] + x[t - 1, 2:] * x[t, 5]


@dace.program
def triangle(x: dace.float64[9, 7]):
    for t in range(2, 9):
        x[t, : t - 2] += x[t - 1, : t - 2] * t


@dace.program
def corner(x: dace.float64[9, 9], y: dace.float64[9]):
    for t in range(9):
        for i, j in dace.map[0 : 9 - t, 0 : 9 - t]:
            x[i + t, j + t] = x[i + t, j + t] * 2 - y[i]


@dace.program
def products_of_parts(a: dace.float64[9, 9], x: dace.float64[9]):
    for t in range(9):
        x[t] -= a[t, :t] @ x[:t]


@dace.program
def sums_of_parts(a: dace.float64[7, 9]):
    y = np.zeros((9,), np.float64)
    for t in range(8, 0, -1):
        y[t] = np.sum(a[2:, t:])
    return y


@dace.program
def two_triangles(a: dace.float64[8, 8], b: dace.float64[8, 8]):
    for s in range(8):
        for t in range(s, 8):
            b[t, s:t] = a[t, s:t] @ a[s:t, s:t]


@dace.program
def tails(x: dace.float64[9, 9], y: dace.float64[9], z: dace.float64[9]):
    for k in range(1, 9):
        y[k:] = z[k:] * 2
        x[k:, k] -= y[k:]
        x[k, k:] = y[k:] + x[k, k:]


@dace.program
def eliminated(a: dace.float64[13, 13]):
    for k in range(12):
        for i in dace.map[k + 1 : 13]:
            a[i, k] = a[i, k] / (a[k, k] + 20)
        for i, j in dace.map[k + 1 : 13, k + 1 : 13]:
            a[i, j] = a[i, j] - a[i, k] * a[k, j]


@dace.program
def cholesky(a: dace.float64[13, 13]):
    for k in range(13):
        a[k, k] = np.sqrt(a[k, k])
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        for i, j in dace.map[k + 1 : 13, k + 1 : 13]:
            a[i, j] -= a[i, k] * a[j, k]


@dace.program
def forward_substitution(a: dace.float64[11, 11], b: dace.float64[11], x: dace.float64[11]):
    for i in range(11):
        x[i] = b[i] / (a[i, i] + 4)
        b[i + 1 :] -= a[i + 1 :, i] * x[i]


def _definite(rng):
    a = rng.random((13, 13))
    return a @ a.T + 13 * np.eye(13)


CASES = [
    *cases(cholesky, {"a.2": (4,), "a.3": (4, 1)}, {"a.3": (2, 3)}, {"a.3": (1, 3)}, a=_definite),
    *cases(forward_substitution, {"b": (4,)}, {"b": (3,), "x": (1,)}),
    *cases(tails, {"y": (3,), "x": (4,)}, {"x.2": (3,)}),
    *cases(eliminated, {"a": (4,), "a.2": (4, 1)}, {"a.2": (2, 3)}),
    *cases(five_points, {"x": (2, 2), "y": (2, 2)}, {"y": (3, 2)}, {"x": (4, 1), "y": (1, 3)}),
    *cases(five_points, {"y": (8, 1)}),
    *cases(wide_and_narrow, {"x": (4,)}, {"x": (3,), "x.2": (2,)}),
    *cases(rows_in_turn, {"x": (3,)}, {"x": (4,), "x_slice_times_2": (2,)}, {}),
    *cases(columns_backwards, {"x": (4,)}, {"x": (3,)}),
    *cases(sum_of_each_row, {}, ranks=3),
    *cases(growing, {"y": (4,)}, {"y": (3,)}),
    *cases(powers, {"x": (4,)}, {"_MatMult_": (2, 2)}),
    *cases(every_other, {"y": (4,)}),
    *cases(two_deep, {"x": (3,)}),
    *cases(accumulated_in_loop, {"y": (2, 2)}, {"y": (3, 1)}),
    *cases(triangle, {"x": (3,)}, {"x_slice_times_t": (4,)}),
    *cases(corner, {"x": (2, 2)}, {"x": (3, 1)}),
    *cases(products_of_parts, {"a_slice_matmul_x_slice": (3,)}),
    *cases(sums_of_parts, {"y_slice": (2, 2)}, {"y_slice": (1, 3)}),
    *cases(two_triangles, {"b_slice": (4, 1)}, {"b": (3,)}),
]
