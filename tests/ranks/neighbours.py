"""Reductions of which neighbours are results of their own, and of truth values, beside NumPy."""

from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd

comm = MPI.COMM_WORLD


def distances(a, b):
    return np.sum(np.abs(a[:, :, None] - b[None, :, :]), axis=1)


def furthest(a, b):
    return np.max(np.abs(a[:, :, None] - b[None, :, :]), axis=1)


def of_mask(x, y):
    mask = np.logical_and(y > 0.3, y < 0.6)
    kept = np.where(mask, x, np.inf)
    return np.sum(np.where(mask, x, 0.0)), np.sum(mask), np.min(kept, axis=0), np.any(mask, axis=1)


def check(function: Any, schedule: Any, *arguments: Any) -> None:
    program = distspmd.program(function, schedule=schedule)
    found, wanted = program(*arguments), function(*arguments)
    if comm.rank == 0:
        pairs = zip(found, wanted, strict=True) if type(wanted) is tuple else [(found, wanted)]
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=1e-12)
    program.close()


if __name__ == "__main__":
    rng = np.random.default_rng(5)
    for columns, function in ((3, distances), (11, distances), (140, distances), (12, furthest)):
        a, b = rng.random((4, 9)), rng.random((9, columns))
        check(function, {"__return": (1, comm.size, 1)}, a, b)
    check(of_mask, {"mask": (1, comm.size)}, rng.random((7, 11)), rng.random((7, 11)))
