"""Run under mpiexec: random redistributions of tiles that go from device to device.

Usage: pulls.py SEED CASES. Each is compared with the simulator; memory is that of a program,
or lent for a call.
"""

import os
import random
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.plans.encoding import DTYPES, Storage
from distspmd.plans.plan import Plan
from distspmd.plans.staged_boxes import staging_table
from distspmd.runtime.devices.arrays import DeviceArray
from distspmd.runtime.devices.kinds import KINDS, device_of_process
from distspmd.runtime.devices.transport import Transport
from distspmd.runtime.devices.transports import TRANSPORTS, VARIABLE, use_transport
from distspmd.runtime.engine.engine import Engine, runnable
from distspmd.runtime.watch.agreement import Agreement

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from random_redistributions import Case, _redistribution

comm = MPI.COMM_WORLD
os.environ.setdefault(VARIABLE, "pulls")  # whatever was measured here
DEVICE = device_of_process(KINDS[os.environ.get("DISTSPMD_TEST_DEVICE", "emulated")])
KINDS_OF_MOVES = ["layouts", "layouts", "scatter", "gather", "partial", "gathered", "halo"]


class Held:
    """A tile of a rank within a larger array of its device, or nothing."""

    def __init__(self, rng: random.Random, layout: Layout, tiles: Sequence[np.ndarray]) -> None:
        box = layout.box(comm.rank)
        self.pointer: int | None = None
        self.storage = Storage.of(box)
        if comm.rank >= layout.ranks or intervals.is_empty(box):
            return
        tile = tiles[comm.rank]
        pads = [(rng.randint(0, 2), rng.randint(0, 2)) for _ in range(tile.ndim)]
        whole = np.ascontiguousarray(np.pad(tile, pads))
        self.array = DeviceArray.of(whole, DEVICE.kind)
        self.inner = tuple(slice(lo, lo + n) for (lo, _), n in zip(pads, tile.shape, strict=True))
        begin = sum(lo * s for (lo, _), s in zip(pads, whole.strides, strict=True))
        self.pointer = self.array.address + begin
        strides = tuple(stride // tile.itemsize for stride in whole.strides)
        self.storage = Storage(tuple(lo for lo, _ in box), strides)


def draw(rng: random.Random) -> Plan:
    while True:
        move = _redistribution(rng, comm.size, rng.choice(KINDS_OF_MOVES))
        if move.dtype in DTYPES and np.dtype(move.dtype).kind in "biufc":
            with suppress(distspmd.errors.NoSolver):
                solver = rng.choice([None, None, "collectives"])  # which pass through other layouts
                return runnable(distspmd.plan(move.source, move.target, move.dtype, solver))


def run(plan: Plan, own: random.Random, case: Case, lent: bool) -> int:
    """Run a plan; how often it went from device to device."""
    move = plan.redistribution
    held = [Held(own, move.source, case.sources), Held(own, move.target, case.before)]
    ends = [one.storage for one in held]
    engine = Engine(comm, [("move", plan, ends)])
    table = staging_table([(plan, ends)], [], comm.rank)
    transport = Transport(DEVICE, engine.context, engine.end, table)
    chosen = use_transport(transport, engine, Agreement.of(comm), [(plan, ends)])
    asked = os.environ.get(VARIABLE, "") if comm.size > 1 else "staged"
    refused = TRANSPORTS[asked].refuses(plan)
    assert chosen.name == ("staged" if refused else asked), chosen.staged_because
    pointers = [one.pointer for one in held]
    for _ in range(1 if move.source.partial is not None else 2):
        transport.lend(0)
        for at in filter(None, pointers if lent else ()):
            transport.lend(at)
        transport.run(0, pointers)
        assert not DEVICE.error()
        if held[1].pointer is not None:
            wanted, got = case.after[comm.rank], held[1].array.numpy()[held[1].inner]
            same = np.array_equal(got, wanted, equal_nan=wanted.dtype.kind in "fc")
            assert same, f"rank {comm.rank}: {plan}\n{got}\nis not\n{wanted}"
    moved = transport.pulls() + transport.messages() + transport.in_pieces()
    assert (moved > 0) == (not TRANSPORTS[chosen.name].refuses(plan)), refused
    counted = engine.statistics(0)
    assert counted.received_bytes >= counted.least_bytes
    comm.Barrier()
    transport.close()
    engine.close()
    return moved


def main(seed: int, cases: int) -> None:
    rng, own = random.Random(seed), random.Random(seed * 100 + comm.rank)
    moved = 0
    for _ in range(cases):
        plan = draw(rng)
        moved += run(plan, own, Case(plan, rng.randrange(1000), False), rng.random() < 0.3)
    assert moved > cases // 3
    if comm.rank == 0:
        print(f"all is right: {moved} moves")


main(*map(int, sys.argv[1:]))
