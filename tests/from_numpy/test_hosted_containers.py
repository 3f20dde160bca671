"""Dictionaries, sets, deques and popped lists of the run give what Python gives, by regions."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy import hosted_containers
from from_numpy.outcomes import check_same

GIVEN = (hosted_containers.X, hosted_containers.W)


def _program(function: Any) -> Any:
    return distspmd.program(function, comm=MPI.COMM_SELF, host="allow", schedule={})


@pytest.mark.parametrize("function", hosted_containers.EVERY, ids=lambda f: f.__name__)
def test_containers_of_the_run_are_those_of_python(function: Any) -> None:
    check_same(_program(function)(*copy.deepcopy(GIVEN)), function(*copy.deepcopy(GIVEN)))


@pytest.mark.parametrize("function", hosted_containers.HOSTED, ids=lambda f: f.__name__)
def test_programs_with_containers_are_read_without_a_call(function: Any) -> None:
    lowering = distspmd.lower(numpy_program(function, *GIVEN), {})
    assert any(space.python for space in lowering.spaces)


@pytest.mark.parametrize(
    ("function", "error"),
    [(hosted_containers.missing, KeyError), (hosted_containers.grows_meanwhile, RuntimeError)],
    ids=lambda value: value.__name__,
)
def test_their_errors_are_those_of_python(function: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        _program(function)(*GIVEN)


def test_array_work_between_them_is_refused_with_what_to_write() -> None:
    arguments = hosted_containers.X, np.ones(4_000_000)
    with pytest.raises(UnsupportedProgram, match="Write the array work in statements of its own"):
        numpy_program(hosted_containers.large, *arguments)


def test_they_can_be_refused() -> None:
    with pytest.raises(UnsupportedProgram, match="a dictionary whose keys the run decides"):
        numpy_program(hosted_containers.by_get, *GIVEN, host="refuse")
