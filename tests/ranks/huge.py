"""More than 2^31 elements between two ranks, by all transports; 9 GB of memory, by hand.

python tests/ranks/huge.py
"""

import sys
from pathlib import Path

import numpy as np

import distspmd
from distspmd.layouts import Layout, Mesh
from distspmd.plans.machine import Machine
from distspmd.runtime.allocation import launched_ranks
from distspmd.runtime.launch.mpiexec import launch
from distspmd.runtime.measure.hosts import NEVER

EXTENTS = (46_000, 48_000)
CASES = (
    ("[23000{x}46000, 48000]", "[46000, 24000{x}48000]", Machine()),
    ("boxes[46000, 48000]{0: 0:46000, 0:48000}", "[46000, 48000]", Machine(run_bytes=NEVER)),
    ("boxes[46000, 48000]{0: 0:46000, 0:48000}", "[46000, 48000]", Machine(run_bytes=0)),
)


def row(i, lo, hi):
    return (np.arange(lo, hi, dtype=np.int64) * 3 + i * 7) % 251


def main(comm):
    assert EXTENTS[0] * EXTENTS[1] > 2**31
    for source, target, machine in CASES:
        sides = [Layout.parse(text, Mesh(x=2)) for text in (source, target)]
        ((top, bottom), (left, right)) = sides[0].box(comm.rank)
        tile = np.empty((bottom - top, right - left), np.uint8)
        for at, line in enumerate(tile):
            line[...] = row(top + at, left, right)
        found = distspmd.redistribute(comm, tile, *sides, dtype="uint8", machine=machine)
        del tile
        ((top, bottom), (left, right)) = sides[1].box(comm.rank)
        for at, line in enumerate(found):
            assert (line == row(top + at, left, right)).all(), f"row {top + at}"
        del found
        if comm.rank == 0:
            print(f"{source} -> {target}: all arrived", flush=True)


if __name__ == "__main__":
    if launched_ranks() is None:
        sys.exit(launch([Path(__file__).resolve()], ranks=2, threads=1).returncode)
    from mpi4py import MPI

    main(MPI.COMM_WORLD)
