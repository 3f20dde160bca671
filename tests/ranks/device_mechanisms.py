"""Mechanisms of programs on devices, each on any number of ranks, beside NumPy.

Each is split over all ranks along the first dimension of each space, so that some ranks have less
than others, or nothing, and is called twice with other values.
"""

import copy
import os
import sys
from collections.abc import Callable
from typing import Any

import dace
import dace.autodiff  # registers requires_grad_, backward and grad
import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.runtime.devices.arrays import DeviceArray

DEVICE = os.environ.get("DISTSPMD_TEST_DEVICE", "emulated")
comm = MPI.COMM_WORLD
rows, columns = dace.symbol("rows"), dace.symbol("columns")


@dace.program
def folded(x: dace.int64[7, 3], y: dace.int64[3]):
    """A reduction by a function of the program, which continues what was there."""
    for i, j in dace.map[0:7, 0:3]:
        with dace.tasklet:
            a << x[i, j]  # noqa: F821
            b >> y(1, lambda p, q: p * q + p + q)[j]  # noqa: F821
            b = a  # noqa: F821, F841


def in_turn(x, y):
    for row in x:
        y[:] = y * row + y + row


@dace.program
def step(x: dace.float64[7, 4], y: dace.float64[7, 3], w: dace.float64[4, 3]):
    """Gradients that the program asks for: operands of sums that ranks have."""
    w.requires_grad_()
    difference = x @ w - y
    loss = np.sum(difference * difference)
    loss.backward()
    w[:] = w - 0.01 * w.grad


def by_hand(x, y, w):
    w -= 0.02 * x.T @ (x @ w - y)


def gathered(x, at, bins):
    """Elements that data choose, and places that data choose."""
    picked = x[at] * 2
    counts = np.zeros(5)
    np.add.at(counts, bins, picked)
    return picked, counts


def settled(x, least):
    """Halos in place, and an end that a residual decides."""
    change = 1.0
    count = 0
    while change > least:
        before = x.copy()
        x[1:-1] = 0.5 * (x[:-2] + x[2:])
        change = np.max(np.abs(x - before))
        count += 1
    return count, np.sum(x)


def normalised(x: dace.float64[rows, columns]):
    """Sizes that each call decides; chains over rows, and sums that a split leaves partial."""
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    shares = e / np.sum(e, axis=1, keepdims=True)
    return shares, np.sum(shares, axis=0), x.T @ shares


def drawn(number: int) -> np.random.Generator:
    return np.random.default_rng(number)


def lowered(program: Any, options: dict[str, Any], given: dict[str, Any] | None) -> Any:
    known = {} if given is None else given
    reader = "dace" if hasattr(program, "f") else "numpy"
    sdfg = distspmd.frontend.numpy_program(program, frontend=reader, **known)
    schedule = {
        space.name: (comm.size, *(1 for _ in space.parameters[1:]))
        for space in distspmd.iteration_spaces(sdfg)
        if space.parameters
    }
    return distspmd.lower(sdfg, schedule, **options).sdfg


def right(
    program: Any,
    reference: Callable[..., Any],
    draw: Callable[[int], dict[str, Any]],
    held: str = "root",
    on_device: bool = False,
    read: bool = True,
) -> None:
    """As NumPy, in two calls, with arguments that are held so, in either memory."""
    first = draw(0)
    arrays = [name for name, value in first.items() if isinstance(value, np.ndarray)]
    options = {} if held == "root" else {"arguments": dict.fromkeys(arrays, held)}
    made = lowered(program, options, first if read else None) if comm.rank == 0 else None
    with distspmd.compile(made, comm, device=DEVICE) as compiled:
        for number in range(2):
            given = draw(number)
            wanted = copy.deepcopy(given)
            result = reference(**wanted)
            mine = dict(given)
            if comm.rank and held == "root":
                found = compiled()
                assert found is None or isinstance(found, distspmd.runtime.MissingResult | tuple)
                continue
            for name in arrays if held != "root" else ():
                mine[name] = np.ascontiguousarray(compiled.tile(name, given[name]))
                wanted[name] = compiled.tile(name, wanted[name])
            if on_device:
                mine.update({name: DeviceArray.of(mine[name], DEVICE) for name in arrays})
            found = compiled(**mine)
            for name in arrays:
                array = mine[name].numpy() if on_device else mine[name]
                np.testing.assert_allclose(array, wanted[name], rtol=1e-9, err_msg=name)
            if comm.rank == 0 and result is not None:
                ours, theirs = (r if isinstance(r, tuple) else (r,) for r in (found, result))
                for one, want in zip(ours, theirs, strict=True):
                    array = one.numpy() if isinstance(one, DeviceArray) else one
                    np.testing.assert_allclose(array, want, rtol=1e-9)


def fold_of(number: int) -> dict[str, Any]:
    rng = drawn(number)
    return {"x": rng.integers(-2, 3, (7, 3)), "y": rng.integers(-2, 3, 3)}


def step_of(number: int) -> dict[str, Any]:
    rng = drawn(number)
    return {"x": rng.random((7, 4)), "y": rng.random((7, 3)), "w": rng.random((4, 3))}


def gather_of(number: int) -> dict[str, Any]:
    rng = drawn(number)
    return {"x": rng.random(11), "at": rng.integers(0, 11, 9), "bins": rng.integers(0, 5, 9)}


def settle_of(number: int) -> dict[str, Any]:
    return {"x": drawn(number).random(13), "least": 1e-2 / (1 + number)}


def functions() -> None:
    right(folded, in_turn, fold_of)


def gradients() -> None:
    right(step, by_hand, step_of)
    right(step, by_hand, step_of, "replicated", True)


def fetches() -> None:
    right(gathered, gathered, gather_of)
    right(gathered, gathered, gather_of, on_device=True)


def residuals() -> None:
    for held in ("root", "replicated", "distributed"):
        for on_device in (False, True):
            right(settled, settled, settle_of, held, on_device)


def sizes() -> None:
    """Also fewer rows than ranks."""
    schedule = None
    if comm.rank == 0:
        sdfg = distspmd.frontend.numpy_program(normalised)
        spaces = [s for s in distspmd.iteration_spaces(sdfg) if s.parameters]
        parts = {s.name: (comm.size, *(1 for _ in s.parameters[1:])) for s in spaces}
        schedule = distspmd.lower(sdfg, parts)
    with distspmd.compile(schedule, comm, device=DEVICE) as program:
        for shape in ((7, 5), (2, 40), (1, 3), (7, 5)):
            x = drawn(sum(shape)).random(shape)
            found = program(x=x) if comm.rank == 0 else program()
            if comm.rank == 0:
                e = np.exp(x - x.max(axis=1, keepdims=True))
                shares = e / e.sum(axis=1, keepdims=True)
                for one, want in zip(
                    found, (shares, shares.sum(axis=0), x.T @ shares), strict=True
                ):
                    np.testing.assert_allclose(one, want, rtol=1e-9)


for part in sys.argv[1:] or ("functions", "gradients", "fetches", "residuals", "sizes"):
    globals()[part]()
comm.Barrier()
if comm.rank == 0:
    print("all is right")
