"""Sums over ranks have the same bits by each transport between devices: in the order of ranks.

Those that ``DISTSPMD_TRIED`` names are tried, and each has to have moved the tiles itself.
"""

import os

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.runtime.devices.transports import VARIABLE
from distspmd.runtime.redistribution.redistribute import known_of

DEVICE = os.environ.get("DISTSPMD_TEST_DEVICE", "emulated")
TRANSPORTS = os.environ.get("DISTSPMD_TRIED", "pulls,nccl,staged").split(",")
mesh = Mesh(p=MPI.COMM_WORLD.size)
comms = {name: MPI.COMM_WORLD.Dup() for name in TRANSPORTS}
rank, size = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
for extent in (7, 1001, 100_003):  # the last is a reduce-scatter and an all-gather
    tile = -(-extent // size)
    for dtype in (np.float32, np.float64):
        operands = [
            (np.random.default_rng(n).standard_normal(extent) * 10.0**n).astype(dtype)
            for n in range(size)
        ]
        wanted = operands[0].copy()
        for operand in operands[1:]:
            wanted += operand
        for text in (f"[{extent}]", f"[{tile}{{p}}{extent}]"):
            source = Layout.parse(f"[{extent}] + partial(sum){{p}}", mesh)
            target = Layout.parse(text, mesh)
            (box,) = target.box(rank)
            for name in TRANSPORTS:
                os.environ[VARIABLE] = name
                mine = distspmd.runtime.DeviceArray.of(operands[rank], DEVICE)
                found = distspmd.redistribute(comms[name], mine, source, target)
                if found is not None:
                    assert found.numpy().tobytes() == wanted[slice(*box)].tobytes(), (name, text)

COUNTS = {"pulls": "pulls", "nccl": "messages", "mpi": "messages", "staged": "in_pieces"}
for name in TRANSPORTS:
    made = list(known_of(comms[name]).transports.values())
    assert len(made) == 3 * 2 * 2, "each of them is one of its own"
    for transport in made:
        moved = {count: getattr(transport, count)() for count in COUNTS.values()}
        by_it = {COUNTS[name if size > 1 else "staged"]: 1}  # a rank alone has no other way
        assert {count: n for count, n in moved.items() if n} == by_it, (name, moved)
if rank == 0:
    print("all is right")
