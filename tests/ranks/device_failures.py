"""A call of the device fails on one rank, in the middle of a program's call: all ranks end.

Usage: device_failures.py KIND:N [redistribute]. Rank 1 lets the N-th call of a kind fail, counted
from where the program is called the second time, or tiles are redistributed; a line says so where
there are fewer.
"""

import functools
import sys

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.runtime.devices.kinds import KINDS, device_of_process

N, STEPS = 64, 3
comm = MPI.COMM_WORLD
fail = device_of_process(KINDS["emulated"])._library.distspmd_emulated_fail


def smoothed(x, steps):
    for _ in range(steps):
        x[1:-1] = (x[:-2] + x[2:]) / 2
    return np.sum(x, axis=1) @ x


def lowered() -> distspmd.lowering.Lowering:
    made = distspmd.frontend.numpy_program(smoothed, x=np.ones((N, N)), steps=STEPS)
    spaces = distspmd.iteration_spaces(made)
    first = next(space for space in spaces if len(space.parameters) == 2)
    return distspmd.lower(made, {first.name: (comm.size, 1)})


def called(program: distspmd.execution.Program) -> None:
    x = np.random.default_rng(0).random((N, N))
    wanted = x.copy()
    expected = smoothed(wanted, STEPS)
    found = program(x=x, steps=STEPS) if comm.rank == 0 else program()
    if comm.rank == 0:
        np.testing.assert_allclose(x, wanted)
        np.testing.assert_allclose(found, expected)


def moved() -> None:
    """Rows become columns, and the same call is a pull or a message again."""
    mesh = Mesh(p=comm.size)
    layouts = [Layout.parse(text, mesh) for text in ("[32{p}64, 64]", "[64, 32{p}64]")]
    boxes = [tuple(slice(*pair) for pair in layout.box(comm.rank)) for layout in layouts]
    x = np.random.default_rng(0).random((N, N))
    tile = distspmd.runtime.DeviceArray.of(x[boxes[0]], "emulated")
    found = distspmd.redistribute(comm, tile, *layouts)
    np.testing.assert_array_equal(found.numpy(), x[boxes[1]])


if sys.argv[2:]:
    again, how = moved, "redistribute"
else:
    program = distspmd.compile(lowered, comm, device="emulated")
    again, how = functools.partial(called, program), program.transport
again()
comm.Barrier()
if comm.rank == 0:
    print(f"the first call is right, by {how}", flush=True)
if comm.rank == 1:
    fail(sys.argv[1].encode())
again()
fail(b"")
comm.Barrier()
if comm.rank == 0:
    print("there are fewer of that kind", flush=True)
