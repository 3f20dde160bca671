"""All ranks run programs that return objects of Python; rank 0 says so if all is as in Python."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import distspmd
from distspmd.errors import ProgramValueError
from distspmd.runtime import MissingResult
from distspmd.runtime.host import host_regions
from from_numpy import returned_objects
from from_numpy.outcomes import check_same

comm = MPI.COMM_WORLD
ARGUMENTS = (returned_objects.X, returned_objects.CODES)
SPLIT = {"y": (comm.size, 1), "__return_0": (comm.size, 1)}


def called(function: Any, **options: Any) -> Any:
    """What this rank gets."""
    program = distspmd.program(function, comm=comm, host="allow", **options)
    return program(*ARGUMENTS) if comm.rank == 0 else program()


def replicated(function: Any, **schedule: Any) -> Any:
    """What this rank gets of what all ranks get."""
    return called(function, results="replicated", schedule=schedule)


each = {"__return_0": (comm.size, 1)}
for function in (returned_objects.beside_arrays, returned_objects.grown_in_a_loop):
    check_same(replicated(function, **each), function(*ARGUMENTS))
y, found = replicated(returned_objects.of_the_user, **each)
assert type(found) is returned_objects.Summary
assert found.me is found
assert found.counts == returned_objects.of_the_user(*ARGUMENTS)[1].counts
_, both, shared = replicated(returned_objects.alike, **each)
assert both["one"] is both["other"] is shared

found = called(returned_objects.counted)
if comm.rank == 0:
    assert found == returned_objects.counted(*ARGUMENTS)
else:
    assert isinstance(found, MissingResult)

if comm.size > 1:
    message = "without_a_copy: other processes cannot get 'later', a generator of rank 0: "
    with pytest.raises(ProgramValueError, match=message):
        replicated(returned_objects.without_a_copy, **each)
assert not host_regions.OBJECTS
comm.Barrier()
if comm.rank == 0:
    print("all is as in Python")
