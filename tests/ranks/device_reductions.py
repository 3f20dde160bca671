"""Reductions as kernels of our own, on devices: beside NumPy, with the same bits each time."""

import os
import sys
from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd

comm = MPI.COMM_WORLD
DEVICE = os.environ.get("DISTSPMD_TEST_DEVICE", "emulated")
rank = comm.Get_rank()
RNG = np.random.default_rng(0)


def sums(x, n):
    """Of all, of rows, of columns, of a middle dimension; of products, and of numbers of places."""
    rows = np.sum(x, axis=(1, 2))
    columns = np.sum(x, axis=0)
    middle = np.max(x * x, axis=1)
    return np.sum(x), rows, columns, middle, np.min(n), np.sum(n, axis=1), np.sum(x > 0, axis=2)


def products(x, n):
    return np.prod(n % 3 + 1, axis=1), np.prod(x, axis=0), np.prod(n % 2 + 1)


def normalised(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def compiled(function: Any, given: dict[str, Any]) -> Any:
    lowered = None
    if rank == 0:
        program = distspmd.frontend.numpy_program(function, **given)
        schedule = {
            space.name: (comm.size, *(1,) * (len(space.parameters) - 1))
            for space in distspmd.iteration_spaces(program)
            if space.parameters
        }
        lowered = distspmd.lower(program, schedule)
    return distspmd.compile(lowered, comm, device=DEVICE)


def right(function: Any, given: dict[str, Any], kernels: int) -> None:
    with compiled(function, given) as program:
        found = [program(**given) if rank == 0 else program() for _ in range(2)]
        if rank != 0:
            return
        remarks = [remark for _, _, remark in program.device.spaces]
        own = ("many threads", "kernel of rows")
        assert sum(any(name in r for name in own) for r in remarks) == kernels, remarks
        wanted = function(**given)
        for once, again, want in zip(
            *(one if isinstance(one, tuple) else (one,) for one in (*found, wanted)), strict=True
        ):
            assert np.array_equal(once, again, equal_nan=True), "the same bits each time"
            assert np.asarray(once).dtype == np.asarray(want).dtype
            assert np.allclose(once, want, rtol=1e-5, equal_nan=True), (once, want)


def of(*shape: int) -> dict[str, Any]:
    x = RNG.random(shape, np.float32) - np.float32(0.3)
    return {"x": x, "n": RNG.integers(-5, 50, shape[:2])}


given = of(5, 7, 300)
right(sums, given, 7)
if "all" in sys.argv:
    given["x"][1, 2, 3] = np.nan
    right(sums, given, 7)
    right(sums, of(3, 70_000, 2), 7)
    right(sums, of(40, 1, 1), 7)
    right(products, of(9, 33), 3)
    right(normalised, {"x": RNG.random((6, 1000)).astype(np.float32)}, 1)
comm.Barrier()
if rank == 0:
    print("all is right")
