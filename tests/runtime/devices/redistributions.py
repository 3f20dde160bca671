"""Run under mpiexec: random redistributions of tiles on emulated devices, and of some on the host.

Usage: redistributions.py SEED CASES. Each is compared with the simulator.
"""

import os
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.encoding import DTYPES
from distspmd.runtime.devices.arrays import DeviceArray, DeviceStream
from distspmd.runtime.devices.transports import VARIABLE
from distspmd.runtime.redistribution.redistribute import known_of

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
from random_redistributions import Case, _redistribution

comm = MPI.COMM_WORLD
os.environ.setdefault(VARIABLE, "pulls")  # whatever was measured here
DEVICE = os.environ.get("DISTSPMD_TEST_DEVICE", "emulated")
KINDS = ["layouts", "layouts", "scatter", "gather", "partial", "gathered", "halo"]


def lend(rng: random.Random, tile: np.ndarray, where: str) -> DeviceArray | np.ndarray:
    """A tile in a memory; within a larger array, or not."""
    if where == "host" or 0 in tile.shape or tile.dtype.kind not in "biufc":
        return tile.copy()
    pads = [(rng.randint(0, 2), rng.randint(0, 2)) if rng.random() < 0.3 else (0, 0)] * tile.ndim
    padded = DeviceArray.of(np.pad(tile, pads), DEVICE)
    return padded[tuple(slice(lo, lo + n) for (lo, _), n in zip(pads, tile.shape, strict=True))]


def on_host(tile: DeviceArray | np.ndarray) -> np.ndarray:
    return tile.numpy() if isinstance(tile, DeviceArray) else tile


def main(seed: int, cases: int) -> None:
    rng, own = random.Random(seed), random.Random(seed * 100 + comm.rank)
    moved = staged = 0
    while moved < cases:
        move = _redistribution(rng, comm.size, rng.choice(KINDS))
        if move.source.partial is not None and move.dtype not in DTYPES:
            continue
        try:
            plan = distspmd.plan(move.source, move.target, move.dtype)
        except distspmd.errors.NoSolver:
            continue
        case = Case(plan, rng.randrange(1000), False)
        rank, sources, targets = comm.rank, move.source.ranks, move.target.ranks
        tile = out = None
        places = ["device"] if rng.random() < 0.5 else ["device", "device", "host"]
        if rank < sources and not intervals.is_empty(move.source.box(rank)):
            tile = lend(own, case.sources[rank], own.choice(places))
        if rank < targets and not intervals.is_empty(move.target.box(rank)):
            out = lend(own, case.before[rank], own.choice(places))
        for _ in range(2):
            found = distspmd.redistribute(
                comm, tile, move.source, move.target, out=out, dtype=move.dtype
            )
            assert found is out
            if out is not None:
                wanted, got = case.after[rank], on_host(out)
                same = np.array_equal(got, wanted, equal_nan=wanted.dtype.kind in "fc")
                assert same, f"rank {rank}: {plan}\n{got}\nis not\n{wanted}"
            if move.source.partial is not None:
                break
        moved += 1
    transports = [made for made in known_of(comm).transports.values() if made]
    staged = comm.allreduce(sum(sum(transport.nbytes()) for transport in transports))
    assert staged > 0
    pulled = comm.allreduce(sum(transport.pulls() for transport in transports))
    assert pulled > 0 or comm.size == 1


def others() -> None:
    """New tiles of the kind that went in, streams, and what is refused on all ranks."""
    size = comm.size
    rows = Layout.parse(f"[{-(-12 // size)}{{p}}12, 12]", Mesh(p=size))
    columns = Layout.parse(f"[12, {-(-12 // size)}{{p}}12]", Mesh(p=size))
    whole = np.arange(144.0).reshape(12, 12)
    mine = np.ascontiguousarray(whole[intervals.slices(rows.box(comm.rank))])
    wanted = whole[intervals.slices(columns.box(comm.rank))]
    tile = DeviceArray(mine.shape, float, DEVICE)
    tile.write(np.zeros_like(mine))
    tile.write(mine, stream=DeviceStream(DEVICE))
    found = distspmd.redistribute(comm, tile, rows, columns)
    assert isinstance(found, DeviceArray)
    assert np.array_equal(found.numpy(), wanted)

    def refused(text: str, tile: object, out: object = None) -> None:
        with pytest.raises(distspmd.errors.ArgumentError, match=re.escape(text)):
            distspmd.redistribute(comm, tile, rows, columns, out=out, dtype=float)

    refused("pass a NumPy array", [1, 2])
    backwards = DeviceArray.of(mine[::-1], DEVICE)[::-1]
    refused("it has the strides", backwards)
    refused("cannot be written in place", tile, DeviceArray.of(wanted, DEVICE).read_only())
    if size == 1:
        refused("it shares memory with the source tile", tile, tile)


def dealt(layout: Layout, whole: np.ndarray) -> np.ndarray | None:
    """The tile of a rank, of blocks that are dealt in turn or not."""
    if comm.rank >= layout.ranks:
        return None
    at = layout.mesh.coordinates(comm.rank)
    held = []
    for split in layout.splits:
        block, parts = split.block or split.tile(layout.mesh), split.parts(layout.mesh)
        kept = np.arange(split.extent) // block % parts == split.index(layout.mesh, at)
        held.append(np.flatnonzero(kept))
    return whole[np.ix_(*held)]


def block_cyclic() -> None:
    """Blocks that are dealt in turn, from and to others, each tile in either memory."""
    size = comm.size
    whole = np.arange(7.0 * 23).reshape(7, 23)
    mesh = Mesh(x=size)
    rows, columns = -(-7 // size), -(-23 // size)
    texts = [f"[{rows}{{x}}7, 23]", f"[7, {columns}{{x}}23]"]
    if size > 1:  # rows one by one, columns by threes
        texts += [f"[{rows}{{x}}7/1, 23]", f"[7, {-(-8 // size) * 3}{{x}}23/3]"]
    layouts = [Layout.parse(text, mesh) for text in texts]
    own = random.Random(comm.rank)
    for source in layouts:
        for target in layouts:
            if not (source.is_block_cyclic or target.is_block_cyclic):
                continue
            tile, wanted = dealt(source, whole), dealt(target, whole)
            given = None if tile is None else lend(own, tile, own.choice(["device", "host"]))
            empty = None if wanted is None else np.zeros_like(wanted)
            out = None if empty is None else lend(own, empty, own.choice(["device", "host"]))
            for _ in range(2):
                distspmd.redistribute(comm, given, source, target, out=out, dtype=float)
                if out is not None:
                    assert np.array_equal(on_host(out), wanted), f"{source} -> {target}"


main(*map(int, sys.argv[1:]))
others()
block_cyclic()
if comm.rank == 0:
    print("all is right")
