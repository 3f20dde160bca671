"""Programs on emulated devices: large grids, arguments that ranks hold, bits, refusals, memory."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.runtime.compilers.cuda_toolkit import missing_for_runs

if TYPE_CHECKING:
    import dace

comm = MPI.COMM_WORLD
DEVICE = os.environ.get("DISTSPMD_TEST_DEVICE", "emulated")
rank = comm.Get_rank()
ROWS = 70_000


def refused(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()


def tall(x: dace.float32[ROWS, 8]) -> dace.float32[ROWS, 8]:
    return x * 2 + 1


def damped(x: dace.float64[50], y: dace.float64[50]):
    y[1:-1] += x[:-2] - x[2:]
    return np.sum(y)


def picked(x: dace.float64[20], i: dace.int64[8]):
    return x[i]


ALL, FIRST, NONE = slice(None), slice(1), slice(0)


def compiled(function: Any, split: slice, device: str | None, **options: Any) -> Any:
    """A program of which some spaces are split over two ranks."""

    def lowered() -> distspmd.lowering.Lowering:
        names = [space.name for space in distspmd.iteration_spaces(function)]
        return distspmd.lower(function, dict.fromkeys(names[split], (2,)), **options)

    return distspmd.compile(lowered, comm, device=device)


def grids() -> None:
    """More rows than a grid of CUDA has in its second dimension."""
    x = np.arange(ROWS * 8, dtype=np.float32).reshape(ROWS, 8)
    with compiled(tall, NONE, DEVICE) as program:
        found = program(x=x) if rank == 0 else program()
        if rank == 0:
            assert np.array_equal(found, x * 2 + 1)
            assert program.device.arguments == ("x", "__return")
            assert f"Nodes of the program on the device '{DEVICE}'" in str(
                distspmd.explain(program)
            )


def held() -> None:
    """Arguments that ranks hold are copied to the device and back, in several calls."""
    rng = np.random.default_rng(0)
    x, y = rng.random(50), rng.random(50)
    options = {"arguments": {"x": "replicated", "y": "distributed", "__return": "replicated"}}
    with compiled(damped, FIRST, DEVICE, **options) as program:
        tile = program.tile("y", y)
        box = program.layout("y").box(rank)
        for _ in range(2):
            total = program(x=x, y=tile)
            y[1:-1] += x[:-2] - x[2:]
            assert np.array_equal(tile, y[slice(*box[0])])
            assert np.isclose(total, y.sum())


def errors() -> None:
    """What the program itself raises is raised on all ranks, as on the host."""
    x, i = np.arange(20.0), np.arange(-4, 4)
    with compiled(picked, ALL, DEVICE) as program:
        found = program(x=x, i=i) if rank == 0 else program()
        assert rank != 0 or np.array_equal(found, x[i])
        with pytest.raises(IndexError, match="out of bounds for a dimension of 20"):
            program(x=x, i=i + 21) if rank == 0 else program()


def bits() -> None:
    """Sums in a fixed order have the bits that they have on the host."""
    rng = np.random.default_rng(1)
    x, y = rng.random(50), rng.random(50)
    found = []
    for device in (None, DEVICE):
        with compiled(damped, ALL, device, deterministic=True) as program:
            given = (x.copy(), y.copy())
            found.append((program(*given) if rank == 0 else program(), *given))
    if rank == 0:
        assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def refusals() -> None:
    """Kinds of devices that are not there are refused on all ranks, with what is missing."""
    lowered = distspmd.lower(tall, {}) if rank == 0 else None
    refused(
        lambda: distspmd.compile(lowered, comm, device="tpu"),
        distspmd.errors.ArgumentError,
        "'tpu' was given",
    )
    missing = missing_for_runs()
    if missing:
        refused(
            lambda: distspmd.compile(lowered, comm, device="cuda"),
            distspmd.errors.DeviceError,
            f"device='cuda' was asked for, a GPU of NVIDIA, but {missing}",
        )


def short_of_memory() -> None:
    """A device without room for a program is an error on all ranks."""
    lowered = distspmd.lower(tall, {}) if rank == 0 else None
    refused(
        lambda: distspmd.compile(lowered, comm, device=DEVICE),
        distspmd.errors.DeviceError,
        "the device has no memory for 2,240,000 bytes more",
    )


if sys.argv[1:] == ["short"]:
    short_of_memory()
else:
    for part in (refusals, grids, held, errors, bits):
        part()
comm.Barrier()
if rank == 0:
    print("all is right on the device")
