"""Writes where data choose: the rank that holds the place does them, and all ranks know it."""

import dace
import numpy as np

from lowering.harness import cases


@dace.program
def source_in_a_stencil(u: dace.float64[23], where: dace.int64[1]):
    k = int(where[0])
    for _t in range(3):
        u[1:-1] = (u[:-2] + u[2:]) / 2
        u[k] += 1.0


@dace.program
def source_that_moves(u: dace.float64[23], where: dace.int32[4]):
    for t in range(4):
        u[1:-1] = (u[:-2] + u[2:]) / 2
        k = int(where[t])
        u[k] = u[k] * 2 + t


@dace.program
def rows_and_columns(a: dace.float64[11, 9], where: dace.int64[4], v: dace.float64[9]):
    for t in range(4):
        k, m = where[t], where[3 - t]
        a *= 1.5
        a[k, :] = v + t
        a[:, m] += 1
        a[k, m] -= 3.0
    return a.sum()


@dace.program
def under_conditions(u: dace.float64[17], where: dace.int64[5]):
    for t in range(5):
        k = where[t]
        if u[k] < 100.0:
            u[k] += 200.0
        u *= 2


@dace.program
def of_other_elements(u: dace.float64[23], w: dace.float64[29], where: dace.int64[4]):
    for t in range(4):
        w += 1
        u[where[t]] = w[3 * t] + w.sum()
        u *= 1.5


@dace.program
def counted_from_the_end(u: dace.int64[13], where: dace.int64[3]):
    for t in range(3):
        u += t
        u[-where[t] - 1] = 7
    return np.max(u)


@dace.program
def elements_by_index(y: dace.float64[19], index: dace.int64[14], v: dace.float64[14]):
    for t in range(3):
        y[index] = v + t
        y += 1


@dace.program
def sums_by_index(y: dace.float64[19], index: dace.int32[14], v: dace.float32[14]):
    for _t in range(2):
        np.add.at(y, index, v)
        y *= 0.5


@dace.program
def rows_by_index(a: dace.float64[9, 4], i: dace.int64[6], v: dace.float64[6, 4]):
    a[i] = v
    a[i, :2] = 7
    a[:, i % 4] = v[0, 0]
    a[i, (i + 1) % 4] = v[:, 0]
    np.add.at(a, i, v * 2)
    a[i] += v


@dace.program
def blocks_by_indices(a: dace.int64[9, 4], i: dace.int64[3, 2], v: dace.int64[3, 2, 4]):
    a[i] = v
    a[i, np.array([1, 0])] = v[:, :, 0]
    a *= 2


@dace.program
def beside_numbers(a: dace.float64[5, 6, 4], i: dace.int64[3], v: dace.float64[3, 4]):
    a *= 2
    a[3, i, :] = v
    a[:, i, 2] = v[:, 0]
    a[i, 1] = v
    a[i, 1] += v
    np.add.at(a, (i, 2), v)
    for t in range(4):
        a[i, t, t] = v[:, t]
    a += 1


@dace.program
def columns_by_index(a: dace.float64[9, 9], i: dace.int64[5], v: dace.float64[5]):
    for _t in range(2):
        a *= 2
        a[i, 1] = v
        a += 1


@dace.program
def diagonal_of_another(a: dace.float64[9, 9], y: dace.float64[9]):
    y *= 1.5
    a *= 2
    a[range(9), range(9)] = y
    a += 1


@dace.program
def labels(p: dace.complex128[9, 4], k: dace.int64[9]):
    n = np.arange(9)
    p[n, k] -= 1
    p[n, k] = p[n, k] * 2
    return p.sum()


def below(extent, count, dtype=np.int64):
    """Random places of an axis."""
    return lambda rng: rng.integers(0, extent, count).astype(dtype)


CASES = cases(source_in_a_stencil, {"u": (4,)}, {"u": (3,)}, where=below(23, 1), frontend="numpy")
CASES += [
    *cases(source_that_moves, {"u": (6,)}, where=below(23, 4, np.int32), frontend="numpy"),
    *cases(
        rows_and_columns,
        {"a": (3, 1)},
        {"a": (2, 3)},
        {"a": (1, 4)},
        where=below(9, 4),
        frontend="numpy",
    ),
    *cases(under_conditions, {"u.2": (4,)}, where=below(17, 5), frontend="numpy"),
    *cases(
        of_other_elements,
        {"w": (3,)},
        {"u.2": (3,)},
        {"w": (2,), "u.2": (3,)},
        where=below(23, 4),
        frontend="numpy",
    ),
    *cases(
        elements_by_index,
        {"y": (4,)},
        {"y.2": (3,)},
        {"values": (3,)},
        index=below(19, 14),
        frontend="numpy",
    ),
    *cases(
        sums_by_index, {"y": (3,)}, {"y.2": (6,)}, index=below(19, 14, np.int32), frontend="numpy"
    ),
    *cases(
        rows_by_index,
        {"a": (3, 2)},
        {"a": (1, 3)},
        {"a.4": (2, 2)},
        i=below(4, 6),
        frontend="numpy",
    ),
    *cases(
        blocks_by_indices,
        {"a": (4, 1)},
        {"a": (2, 2)},
        i=lambda rng: rng.integers(0, 4, (3, 2)),
        frontend="numpy",
    ),
    *cases(
        beside_numbers,
        {"a": (3, 1, 1)},
        {"a": (1, 3, 2)},
        {"a": (1, 1, 4)},
        i=below(5, 3),
        frontend="numpy",
    ),
    *cases(
        columns_by_index,
        {"a": (3, 1)},
        {"a": (2, 2)},
        {"a": (1, 4)},
        i=below(9, 5),
        frontend="numpy",
    ),
    *cases(diagonal_of_another, {"y": (3,)}, {"a.2": (3,)}, {"a": (2, 2)}, frontend="numpy"),
    *cases(labels, {"p": (4,)}, k=below(4, 9), frontend="numpy"),
    *cases(counted_from_the_end, {"u": (4,)}, where=below(13, 3), frontend="numpy"),
]
