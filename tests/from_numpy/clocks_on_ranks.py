"""Readings of clocks on several ranks: those of rank 0, in their order."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import distspmd
from from_numpy.test_clocks import check_ordered, ordered

comm = MPI.COMM_WORLD
program = distspmd.program(ordered, comm=comm, results="replicated", schedule={"x": (2,)})
for _ in range(2):  # the first one makes it
    before = comm.bcast(time.perf_counter())
    found = program(np.zeros(6)) if comm.rank == 0 else program()
after = comm.bcast(time.perf_counter())
for mine, theirs in zip(found, comm.bcast(found), strict=True):
    assert np.array_equal(mine, theirs)
check_ordered(found, before, after)
print("as on rank 0", flush=True)
