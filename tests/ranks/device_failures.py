"""A call of the device fails on one rank, in the middle of a program's call: all ranks end.

Usage: device_failures.py KIND:N. Rank 1 lets the N-th call of a kind fail, counted from where the
program is called the second time; a line says so where there are fewer.
"""

import sys

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.runtime.devices import KINDS, device_of_process

N, STEPS = 64, 3
comm = MPI.COMM_WORLD
fail = device_of_process(KINDS["emulated"])._library.distspmd_emulated_fail


def smoothed(x, steps):
    for _ in range(steps):
        x[1:-1] = (x[:-2] + x[2:]) / 2
    return np.sum(x, axis=1) @ x


def lowered() -> distspmd.Lowering:
    made = distspmd.frontend.numpy_program(smoothed, x=np.ones((N, N)), steps=STEPS)
    spaces = distspmd.iteration_spaces(made)
    first = next(space for space in spaces if len(space.parameters) == 2)
    return distspmd.lower(made, {first.name: (comm.size, 1)})


def called(program: distspmd.Program) -> None:
    x = np.random.default_rng(0).random((N, N))
    wanted = x.copy()
    expected = smoothed(wanted, STEPS)
    found = program(x=x, steps=STEPS) if comm.rank == 0 else program()
    if comm.rank == 0:
        np.testing.assert_allclose(x, wanted)
        np.testing.assert_allclose(found, expected)


program = distspmd.compile(lowered, comm, device="emulated")
called(program)
comm.Barrier()
if comm.rank == 0:
    print(f"the first call is right, by {program.transport}", flush=True)
if comm.rank == 1:
    fail(sys.argv[1].encode())
called(program)
fail(b"")
comm.Barrier()
if comm.rank == 0:
    print("there are fewer of that kind", flush=True)
