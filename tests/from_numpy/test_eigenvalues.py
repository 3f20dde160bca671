"""Eigenvalues of real matrices have the type that NumPy gives them in a run."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ProgramTypeError, UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.eigenvalues import CASES, MATRICES
from from_numpy.harness import run_here
from from_numpy.outcomes import RIGHT

QUICK = ("as_they_are", "sorted_by_size", "decisions")


@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(c, marks=() if c.name.split("-")[0] in QUICK else pytest.mark.slow, id=c.name)
        for c in CASES
    ],
)
def test_results_are_real_where_all_eigenvalues_are(case: Any) -> None:
    found = run_here(case)
    assert (found.kind, found.reason) == (RIGHT, "")


@pytest.mark.slow
def test_ranks_agree_on_what_the_eigenvalues_are(launch: Any) -> None:
    program = Path(__file__).parent / "run_here.py"
    done = launch(program, "from_numpy.eigenvalues", ranks=3)
    assert done.stdout.split("\n")[-2] == f"{len(CASES)} of {len(CASES)} right", done.stdout


def written_into_real_numbers(a: Any) -> Any:
    values = np.linalg.eigvals(a)
    found = np.zeros(3)
    found[:] = values
    return found


def rounded_down(a: Any) -> Any:
    return np.floor(np.linalg.eigvals(a))


def as_number(a: Any) -> Any:
    return float(np.linalg.eigvals(a)[0])


@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize("function", [written_into_real_numbers, rounded_down, as_number])
def test_where_real_numbers_are_needed_complex_ones_end_the_program(function: Any) -> None:
    a = MATRICES["real"]
    with distspmd.compile(distspmd.lower(numpy_program(function, a)), MPI.COMM_SELF) as program:
        np.testing.assert_allclose(program(a=a), function(a))
        with pytest.raises(ProgramTypeError, match=r"a\.astype\(complex\)") as error:
            program(a=MATRICES["complex"])
    (line,) = re.findall(r"line (\d+)", str(error.value))
    lines, first = inspect.getsourcelines(function)
    assert first < int(line) < first + len(lines)


def test_what_has_no_meaning_without_the_type_is_refused() -> None:
    def assigned(a: Any) -> Any:
        values = np.linalg.eigvals(a)
        values[0] = 1j
        return values

    with pytest.raises(UnsupportedProgram, match="complex numbers are assigned"):
        numpy_program(assigned, np.ones((3, 3)))
    with pytest.raises(UnsupportedProgram, match="the attribute 'dtype'"):
        numpy_program(lambda a: np.zeros(3, np.linalg.eigvals(a).dtype), np.ones((3, 3)))


@pytest.mark.usefixtures("unoptimised")
def test_matrices_that_are_not_finite_end_the_program() -> None:
    lowered = distspmd.lower(numpy_program(lambda a: np.linalg.eigvals(a), np.eye(3)))
    with (
        distspmd.compile(lowered, MPI.COMM_SELF) as program,
        pytest.raises(np.linalg.LinAlgError, match="must not contain infs or NaNs"),
    ):
        program(a=np.full((3, 3), np.nan))
