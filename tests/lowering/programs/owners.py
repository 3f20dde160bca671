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
    *cases(counted_from_the_end, {"u": (4,)}, where=below(13, 3), frontend="numpy"),
]
