"""A process that runs for long: what it has closed, and what it has not used for long, is gone."""

import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.layouts import Layout, Mesh, Split
from distspmd.runtime.redistribution import kept_engines, redistribute

comm = MPI.COMM_WORLD
ROUNDS = 200


def resident() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def added(x: Any) -> Any:
    return x + 1


def doubled(x: Any) -> Any:
    return x * 2


def lowered(function: Any, x: Any) -> distspmd.lowering.Lowering:
    return distspmd.lower(distspmd.frontend.numpy_program(function, x=x), {"__return": (2,)})


def programs(rounds: int) -> None:
    x = np.arange(8.0)
    made = [lowered(f, x) if comm.rank == 0 else None for f in (added, doubled)]
    for n in range(rounds):
        with distspmd.compile(made[n % 2], comm) as program:
            found = program(x=x) if comm.rank == 0 else program()
        if comm.rank == 0:
            assert (found == (doubled if n % 2 else added)(x)).all()
    names = ("libadded", "libdoubled")
    mapped = [
        line
        for line in Path("/proc/self/maps").read_text().splitlines()
        if any(name in line for name in names)
    ]
    assert not mapped, mapped


def redistributions(rounds: int) -> None:
    mesh = Mesh(x=comm.size)
    for n in range(rounds):
        extents = (3 + n, 5)
        rows = Layout(mesh, extents, splits=(Split(3 + n, ("x",)), Split(5)))
        columns = Layout(mesh, extents, splits=(Split(3 + n), Split(5, ("x",))))
        whole = np.arange(5.0 * (3 + n)).reshape(extents)
        at = tuple(slice(*ends) for ends in rows.box(comm.rank))
        to = tuple(slice(*ends) for ends in columns.box(comm.rank))
        for _ in range(2):  # the second time the engine is known
            found = distspmd.redistribute(comm, whole[at].copy(), rows, columns)
            assert (found == whole[to]).all()
        known = redistribute.known_of(comm)
        assert len(known.engines) <= kept_engines.MOST_ENGINES
        assert len(known.ready) <= 2 * kept_engines.MOST_ENGINES


kept_engines.MOST_ENGINES = 8
for work in (programs, redistributions):
    work(ROUNDS // 4)
    before = resident()
    work(ROUNDS)
    grown = resident() - before
    assert grown < 4 << 20, f"{work.__name__}: rank {comm.rank} has {grown} bytes more"
    print(f"{work.__name__}: {grown} bytes more on rank {comm.rank}", flush=True)
