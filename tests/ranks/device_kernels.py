"""Kernels of our own on devices, of elements and of rows: beside NumPy, the same bits each time."""

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


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def normalised(x, g, b):
    d = x - np.mean(x, axis=-1, keepdims=True)
    return d / np.sqrt(np.mean(d * d, axis=-1, keepdims=True) + 1e-5) * g + b


def surprise(x):
    shifted = x - np.max(x, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(shifted), axis=-1)) - shifted[:, 0]


def down(x):
    """Along the first dimension: neighbours in memory belong to other rows."""
    e = np.exp(x - np.max(x, axis=0, keepdims=True))
    return e / np.sum(e, axis=0, keepdims=True)


def rows(a, b, c, d, g):
    """Rows of 31, 33, 1024 and 5000 elements; two chains over the same rows are one kernel."""
    return softmax(a), normalised(b, g, g * 2), softmax(c), surprise(d), surprise(c)


def long_rows(x, g):
    """Rows that no registers hold, and one element each."""
    return softmax(x), normalised(x, g, g), softmax(x[:, :1])


def kept(x):
    """What a chain passes on is a result, too, and is read by others behind it."""
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    s = np.sum(e, axis=1, keepdims=True)
    return e, s, e / s, e[:, ::2] * 2


def written(x):
    """A chain that changes its operand, and one that reads what was there before."""
    before = x[:, 1:] - x[:, :-1]
    x[:] = x - np.max(x, axis=1, keepdims=True)
    x[:] = x / np.sum(x, axis=1, keepdims=True)
    return before, np.min(x, axis=1)


def elements(x, y, n, v):
    """Vectors, and what cannot be one: odd places, steps, transposes, other types, indices."""
    i, j = np.indices(x.shape)
    return (
        x * 2 + 1,
        x[:, 1:] - x[:, :-1],
        x[:, ::2] + 1,
        x.T * 2,
        x + v,
        np.where(n > 2, x, -x),
        n * (i - 2 * j),
        y * x.astype(np.float64),
        (n % 7).astype(np.int8) < 3,
        np.sqrt(np.abs(v)),
    )


def compiled(function: Any, given: dict[str, Any]) -> Any:
    lowered = None
    if rank == 0:
        program = distspmd.frontend.numpy_program(function, **given)
        schedule = {}
        for space in filter(lambda space: space.parameters, distspmd.iteration_spaces(program)):
            parts = [1] * len(space.parameters)
            columns = function is down and space.parameters[0].startswith("__i")
            parts[1 if columns else 0] = comm.size
            schedule[space.name] = tuple(parts)
        lowered = distspmd.lower(program, schedule)
    return distspmd.compile(lowered, comm, device=DEVICE)


def right(function: Any, given: dict[str, Any], own: int, of_dace: int = 0) -> None:
    """Twice with the same bits, as NumPy, by so many kernels of rows, and of DaCe's."""
    with compiled(function, given) as program:
        copies = [{name: x.copy() for name, x in given.items()} for _ in range(3)]
        found = [program(**one) if rank == 0 else program() for one in copies[:2]]
        if rank != 0:
            return
        remarks = [remark for _, _, remark in program.device.spaces]
        assert sum("kernel of rows" in remark for remark in remarks) == own, remarks
        assert sum("kernel of DaCe" in remark for remark in remarks) == of_dace, remarks
        wanted = function(**copies[2])
        every = [
            [*(one if isinstance(one, tuple) else (one,)), *copy.values()]
            for one, copy in zip((*found, wanted), copies, strict=True)
        ]
        for number, (once, again, want) in enumerate(zip(*every, strict=True)):
            assert np.array_equal(once, again, equal_nan=True), "the same bits each time"
            assert np.asarray(once).dtype == np.asarray(want).dtype
            assert np.allclose(once, want, rtol=2e-5, atol=1e-6, equal_nan=True), (number, want)


def of(*shape: int, dtype: Any = np.float32) -> Any:
    return (RNG.random(shape) - 0.3).astype(dtype)


def several_rows(count: int) -> None:
    a, b, c, d = (of(count, n) for n in (31, 33, 1024, 5000))
    a[0, 3], c[0, 1000], c[-1, 5] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        right(rows, {"a": a, "b": b, "c": c, "d": d, "g": of(33)}, 4)


def several_elements(extents: tuple[int, int], of_dace: int) -> None:
    """Short tables of indices are texts of C++, which are left to DaCe."""
    n = RNG.integers(-5, 50, extents)
    given = {"x": of(*extents), "y": of(*extents, dtype=np.float64), "n": n, "v": of(extents[1])}
    right(elements, given, 0, of_dace)


several_rows(5)
several_elements((6, 8), 2)
if "all" in sys.argv:
    several_rows(4)
    several_elements((5, 7), 2)
    several_elements((3, 1000), 1)
    right(long_rows, {"x": of(3, 20_000), "g": of(20_000)}, 1)
    right(long_rows, {"x": of(4, 1025, dtype=np.float64), "g": of(1025, dtype=np.float64)}, 1)
    right(down, {"x": of(9, 40)}, 1)
    right(down, {"x": of(33, 40)}, 1)
    right(kept, {"x": of(7, 45)}, 1)
    right(written, {"x": of(5, 50) + 1}, 2)
comm.Barrier()
if rank == 0:
    print("all is right")
