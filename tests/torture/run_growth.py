"""Many calls, and many programs one after the other, in one process on each rank: nothing may grow.

Usage: run_growth.py CALLS PROGRAMS

Memory, open files and shared memory are looked at after a quarter of the work and at its end.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dace
import numpy as np
from mpi4py import MPI
from parsed_by_dace import numpy_program

import distspmd
from distspmd.layouts import Layout, Mesh, Split

MOST_GROWTH = 8 << 20
"""Bytes that a process may have more at the end: allocators keep some."""


@dace.program
def smoothed(x: dace.float64[64, 48], w: dace.float64[48, 48]):
    y = x @ w
    z = np.zeros((64, 48), dtype=np.float64)
    z[1:-1] = y[:-2] + y[2:]
    return z, np.sum(z, axis=0)


@dataclass(frozen=True)
class Held:
    """What a process holds: bytes of memory, open files, and files of the user in shared memory."""

    memory: int
    files: int
    shared: int

    @classmethod
    def now(cls) -> Held:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        shared = [f for f in Path("/dev/shm").iterdir() if f.stat().st_uid == os.getuid()]
        files = len(list(Path("/proc/self/fd").iterdir()))
        return cls(pages * os.sysconf("SC_PAGE_SIZE"), files, len(shared))


def main(calls: int, programs: int) -> None:
    comm = MPI.COMM_WORLD
    rng = np.random.default_rng(1)
    x, w = rng.random((64, 48)), rng.random((48, 48))
    given = (x, w) if comm.rank == 0 else ()
    wanted = smoothed.f(x, w)
    sdfg = numpy_program(smoothed) if comm.rank == 0 else None
    grid = (comm.size, 1, 1)
    lowered = distspmd.lower(sdfg, {"y": grid}) if sdfg is not None else None

    def is_right(found: Any) -> None:
        if comm.rank == 0:
            for one, other in zip(found, wanted, strict=True):
                assert np.allclose(one, other)

    def call(program: distspmd.execution.Program) -> Callable[[], None]:
        return lambda: is_right(program(*given))

    def one_program() -> None:
        with distspmd.compile(lowered, comm) as program:
            is_right(program(*given))

    def one_communicator() -> None:
        mine = comm.Dup()
        mesh = Mesh(x=comm.size)
        rows = Layout(mesh, (9, 6), splits=(Split(9, ("x",)), Split(6)))
        columns = Layout(mesh, (9, 6), splits=(Split(9), Split(6, ("x",))))
        shape = rows.shape(comm.rank)
        tile = np.ones(shape) if 0 not in shape else None
        found = distspmd.redistribute(mine, tile, rows, columns, dtype=float)
        assert found is None or (found == 1).all()
        mine.Free()

    with distspmd.compile(lowered, comm) as program:
        watch(comm, f"{calls} calls", call(program), calls)
    watch(comm, f"{programs} programs", one_program, programs)
    watch(comm, f"{programs} communicators", one_communicator, programs)


def watch(comm: Any, what: str, work: Callable[[], None], times: int) -> None:
    """Do work so often; all ranks end if one holds more at the end than after a quarter."""
    for _ in range(max(1, times // 4)):
        work()
    comm.Barrier()
    before = Held.now()
    comm.Barrier()
    for _ in range(times - times // 4):
        work()
    comm.Barrier()
    after = Held.now()
    grown = after.memory - before.memory
    assert grown < MOST_GROWTH, f"{what}: rank {comm.rank} has {grown} bytes more"
    assert after.files <= before.files, f"{what}: rank {comm.rank}: {before} became {after}"
    assert after.shared <= before.shared, f"{what}: rank {comm.rank}: {before} became {after}"
    if comm.rank == 0:
        print(f"{what}: {grown} bytes more on rank 0, {after.files} files", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
