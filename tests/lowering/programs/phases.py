"""Loops that each want an array in another layout: sweeps along rows, then along columns."""

import dace

from lowering.harness import cases


@dace.program
def sweeps(u: dace.float64[13, 11]):
    for _t in range(3):
        for k in range(1, 11):
            u[:, k] = 0.5 * u[:, k] + 0.25 * u[:, k - 1]
        for k in range(1, 13):
            u[k, :] = 0.5 * u[k, :] + 0.25 * u[k - 1, :]


@dace.program
def inner_sweeps(u: dace.float64[14, 12], v: dace.float64[14, 12]):
    for _t in range(3):
        for j in range(1, 13):
            v[j, 1:11] = 0.3 * u[j, 0:10] + 0.4 * u[j, 1:11] + 0.2 * u[j, 2:12] + v[j - 1, 1:11]
        for j in range(10, 0, -1):
            u[1:13, j] = 0.5 * v[0:12, j] - 0.25 * v[2:14, j] + u[1:13, j + 1]


@dace.program
def part_of_the_rows(u: dace.float64[12, 12]):
    for k in range(1, 12):
        u[:, k] = u[:, k] + u[:, k - 1]
    for _t in range(4):
        for k in range(3, 9):
            u[k, 2:10] = u[k, 2:10] - 0.5 * u[k - 1, 2:10]
    u[:] = u * 2


@dace.program
def left_early(u: dace.float64[9, 9], n: dace.int64):
    for k in range(1, 9):
        u[:, k] = u[:, k] + u[:, k - 1]
    for k in range(1, 9):
        if k > n:
            break
        u[k, :] = u[k, :] + u[k - 1, :]
    for k in range(1, 9):
        u[:, k] = u[:, k] * 0.5 + u[:, k - 1]


CASES = [
    *cases(sweeps, {"u": (4,), "u.2": (4,)}, {"u": (3,), "u.2": (2,)}),
    *cases(inner_sweeps, {"v": (3,), "u": (3,)}, {"v": (6,), "u": (4,)}),
    *cases(part_of_the_rows, {"u": (4,), "u.2": (4,), "u.3": (4, 1)}),
    *cases(left_early, {"u": (3,), "u.2": (3,), "u.3": (3,)}, n=lambda _: 5),
]
