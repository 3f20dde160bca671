"""Masked arrays, matrices, polynomials and users' classes of arrays are objects of Python."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy import hosted_arrays
from from_numpy.outcomes import check_same


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("function", hosted_arrays.ARGUMENTS, ids=lambda f: f.__name__)
def test_objects_like_arrays_give_what_python_gives(function: Any) -> None:
    expected = function(*copy.deepcopy(hosted_arrays.ARGUMENTS[function]))
    program = distspmd.program(function, comm=MPI.COMM_SELF, host="allow")
    for _ in range(2):
        check_same(program(*copy.deepcopy(hosted_arrays.ARGUMENTS[function])), expected)


@pytest.mark.parametrize("function", hosted_arrays.COMPILED, ids=lambda f: f.__name__)
def test_functions_of_coefficients_are_compiled(function: Any) -> None:
    sdfg = numpy_program(function, *hosted_arrays.ARGUMENTS[function], host="refuse")
    assert distspmd.iteration_spaces(sdfg)


def test_array_work_of_such_objects_is_refused_with_what_to_write() -> None:
    program = distspmd.program(hosted_arrays.large, comm=MPI.COMM_SELF)
    with pytest.raises(UnsupportedProgram, match="elements of array work that all ranks could"):
        program(np.zeros((2000, 1000)))
