"""What functions return of which the run decides lengths, types or forms, for arrays of devices.

With ``all``, also lists, forms and types, and tensors of PyTorch.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.runtime.devices.arrays import DeviceArray

sys.path.insert(0, str(Path(__file__).parents[1]))
rank = MPI.COMM_WORLD.rank
DEVICE = os.environ.get("DISTSPMD_TEST_DEVICE", "emulated")


def chosen(x):
    """Maps within maps of the host have memory of the host."""
    return x[x > 0], np.unique(np.round(x))


def columns(x):
    rows = np.reshape(x, (2, -1))
    return rows[:, rows[0] > 0]


def listed(x):
    found = []  # it is the run that decides how many there are
    for value in x:
        if value > 0:
            found.append(value)  # noqa: PERF401
    return found, len(found)


def forms(x):
    if x[0] > 0:
        return x * 2, 1
    return (x[:3] + 1, 2)


def typed(x):
    best = 0
    for value in x:
        if value > best:
            best = value
    return best


def on_host(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(on_host, value))
    value = value.cpu() if hasattr(value, "cpu") else value
    return value.numpy() if hasattr(value, "numpy") else value


def check(found: Any, wanted: Any, kind: type) -> None:
    """They are the same, and arrays that are returned are of a kind."""
    if isinstance(wanted, tuple):
        assert isinstance(found, tuple)
        for pair in zip(found, wanted, strict=True):
            check(*pair, kind)
        return
    if isinstance(wanted, np.ndarray) and wanted.shape:
        assert isinstance(found, kind)
        assert kind is not DeviceArray or found.strides == wanted.copy().strides, "without gaps"
    elif isinstance(wanted, list):
        assert isinstance(found, list)
    found = on_host(found)
    np.testing.assert_array_equal(found, wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype


def run(function: Callable[..., Any], kind: type, on: Callable[[Any], Any]) -> None:
    program = distspmd.program(device=DEVICE)(function)
    for sign in (1, -1):
        x = np.random.default_rng(3).standard_normal(10)
        x[0] = sign * abs(x[0])
        found = program(on(x)) if rank == 0 else program()
        if rank == 0:
            check(found, function(x), kind)
    program.close()


def main(functions: tuple[Callable[..., Any], ...], tensors: bool) -> None:
    for function in functions:
        run(function, DeviceArray, lambda x: DeviceArray.of(x, DEVICE))
        if tensors:
            import torch
            from training import emulated_torch

            if DEVICE == "emulated":
                emulated_torch.register()
            run(function, torch.Tensor, lambda x: torch.from_numpy(x).to(DEVICE))


whole = sys.argv[1:] == ["all"]
main((columns, listed, forms, typed) if whole else (chosen,), tensors=whole)
if whole:
    main((chosen,), tensors=True)
if rank == 0:
    print("all is right")
