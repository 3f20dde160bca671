"""All ranks run programs with regions; rank 0 says so if all is as in Python."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import distspmd
from from_numpy import hosted
from from_numpy.outcomes import check_same

comm = MPI.COMM_WORLD


def called(function: Any, arguments: Any, **options: Any) -> Any:
    """What all ranks get."""
    program = distspmd.program(function, comm=comm, results="replicated", **options)
    return program(*arguments) if comm.rank == 0 else program()


for function in (hosted.carried, hosted.by_objects, hosted.in_place, hosted.printed, hosted.drawn):
    arguments = (hosted.X, hosted.CODES)
    own = copy.deepcopy(arguments)
    hosted.RANDOM = np.random.default_rng(5)
    expected = function(*own) if comm.rank == 0 else None
    hosted.RANDOM = np.random.default_rng(5)
    given = copy.deepcopy(arguments)
    found = called(function, given, host="allow")
    if comm.rank == 0:
        check_same(found, expected)
        check_same(given, own)

split = {"y": (comm.size, 1), "__return": (comm.size, 1)}
found = called(hosted.split, (hosted.X, hosted.CODES), schedule=split)  # which says so
check_same(found, hosted.split(hosted.X, hosted.CODES))

with pytest.raises(hosted.Unknown, match="9 names"):
    called(hosted.raising, (hosted.X, hosted.CODES), host="allow")
comm.Barrier()
if comm.rank == 0:
    print("all is as in Python")
