"""Control flow that reads data: residuals, branches, indices, early ends, nested functions."""

import dace
import numpy as np

from lowering.harness import cases

N = 22


@dace.program
def until_small(a: dace.float64[N], tolerance: dace.float64):
    error = 1.0 + tolerance
    b = np.zeros_like(a)
    while error > tolerance:
        b[1:-1] = 0.5 * (a[:-2] + a[2:])
        error = np.sum(np.abs(b[1:-1] - a[1:-1]))
        a[1:-1] = b[1:-1]


@dace.program
def branches(a: dace.float64[N], flag: dace.int32):
    b = np.empty_like(a)
    if flag > 0:
        b[:] = a * 2
    else:
        b[:] = a + 1
    if a[3] > 0:
        b += 1
    return b


@dace.program
def rows_by_index(a: dace.float64[N, 7], index: dace.int64[4]):
    b = np.zeros((7,))
    for k in range(4):
        b += a[index[k]]
    return b


@dace.program
def as_often_as_asked(a: dace.float64[N], n: dace.int32):
    for _t in range(n):
        a[1:-1] = a[:-2] + a[2:]


@dace.program
def counted(a: dace.float64[N]):
    k = 0
    while a[k] < 10 and k < 15:
        a += 1
        k += 1
    return a * k


@dace.program
def skips_and_stops(a: dace.float64[N], index: dace.int64[N]):
    s = np.zeros((N,))
    for k in range(N):
        if a[index[k]] > 0.3:
            continue
        if a[k] > 0.45:
            break
        s += a[k]
    return s


@dace.program
def early(a: dace.float64[N]):
    if a[0] > 0:
        return a * 2
    return a + 1


@dace.program
def grows_until_large(a: dace.float64[N]):
    go = True
    n = 0
    while go:
        a[:] = np.abs(a) * 2 + 1
        n += 1
        go = np.max(a) < 100
    return n + a


@dace.program
def _scaled_or_not(x: dace.float64[9]):
    if x[0] > 0:
        x *= 2
    x += 1


@dace.program
def function_of_rows(a: dace.float64[5, 9]):
    for i in range(5):
        _scaled_or_not(a[i])


def _function_of_rows(a):
    for row in a:
        if row[0] > 0:
            row *= 2
        row += 1


@dace.program
def _smoothed(x: dace.float64[N], y: dace.float64[N], w: dace.float64):
    y[1:-1] = w * (x[:-2] + x[2:])


@dace.program
def function_to_and_fro(x: dace.float64[N], y: dace.float64[N]):
    for _t in range(3):
        _smoothed(x, y, 0.5)
        _smoothed(y, x, 0.25)


CASES = [
    *cases(until_small, {"b": (4,)}, {"b.2": (3,)}, tolerance=lambda _: 0.05),
    *cases(branches, {"__return": (3,)}, {"__return.2": (4,)}, flag=lambda rng: rng.integers(0, 2)),
    *cases(
        rows_by_index, {"__return": (3,)}, {"__return.2": (4,)}, index=lambda r: r.integers(0, N, 4)
    ),
    *cases(as_often_as_asked, {"a": (3,)}, n=lambda rng: rng.integers(0, 5)),
    *cases(counted, {"a": (4,)}, ranks=6),
    *cases(skips_and_stops, {"__return": (3,)}, index=lambda rng: rng.integers(0, N, N)),
    *cases(early, {"__return": (3,)}, {}),
    *cases(grows_until_large, {"a": (4,)}),
    *cases(function_of_rows, {"a_0": (4,)}, reference=_function_of_rows),
    *cases(function_to_and_fro, {"y": (4,), "x": (3,)}),
]
