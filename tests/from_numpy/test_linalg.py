"""``np.linalg`` beside NumPy, on ranks and on paper, and what is refused of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.codegen.build import load_unlowered
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.harness import on_paper
from from_numpy.linear_algebra import CASES
from from_numpy.outcomes import RIGHT


@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_programs_of_linear_algebra_compute_what_numpy_does(first: int, launch: Any) -> None:
    names = [case.name for case in CASES[first::2]]
    program = Path(__file__).parent / "run_here.py"
    done = launch(program, "from_numpy.linear_algebra", *names, ranks=3)
    assert done.stdout.split("\n")[-2] == f"{len(names)} of {len(names)} right", done.stdout


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_columns_and_last_dimensions_can_be_split(case: Any) -> None:
    found = on_paper(case, ranks=3, dimension=9)
    assert (found.kind, found.reason) == (RIGHT, "")


def test_dimensions_of_a_stack_are_parameters_and_those_of_a_matrix_are_not() -> None:
    def program(a: Any, b: Any) -> Any:
        return np.linalg.inv(a), np.linalg.solve(a, b)

    sdfg = numpy_program(program, np.zeros((6, 3, 3)), np.zeros((6, 3, 2)))
    spaces = {s.name: s for s in distspmd.iteration_spaces(sdfg)}
    assert [str(r) for r in spaces["__return_0"].ranges] == ["0:6"]
    assert [str(r) for r in spaces["__return_1"].ranges] == ["0:6", "0:2"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: np.linalg.solve(a[:2], a), "must be square"),
        (lambda a: np.linalg.solve(a, a[:2]), "right-hand sides of 2 rows"),
        (lambda a: np.linalg.inv(a[0]), "must be at least two-dimensional"),
        (lambda a: np.linalg.svd(a, hermitian=True), "leave it out"),
        (lambda a: np.linalg.qr(a, mode="raw"), "the modes are"),
        (lambda a: np.linalg.norm(a, 3), "Invalid norm order 3 for matrices"),
        (lambda a: np.linalg.norm(a[0], "fro"), "Invalid norm order 'fro' for vectors"),
        (lambda a: np.linalg.matrix_power(a, int(a[0, 0])), "exponent that is not known"),
    ],
)
def test_what_is_not_covered_is_refused_with_the_line(call: Any, message: str) -> None:
    def program(a: Any) -> Any:
        return call(a)

    with pytest.raises(UnsupportedProgram, match=message) as refused:
        numpy_program(program, np.zeros((4, 4)))
    assert "test_linalg.py:" in str(refused.value)


def test_least_squares_and_ranks_of_matrices_whose_shapes_are_symbols() -> None:
    rows, columns = dace.symbol("rows"), dace.symbol("columns")

    def program(a: dace.float64[rows, columns], y: dace.float64[rows], k: dace.int32[rows]):
        solved, *_ = np.linalg.lstsq(a, y, rcond=None)
        rank, inverse = np.linalg.matrix_rank(a), np.linalg.pinv(a)
        return solved, rank, inverse, np.polyfit(y, y * y, 2), np.gcd(k[:, None], k)

    rng = np.random.default_rng(3)
    k = rng.integers(1, 60, 9).astype(np.int32)
    for deficient in (False, True):
        a, y = rng.random((9, 4)), rng.random(9)
        if deficient:
            a[:, 1] = a[:, 0]
        compiled = load_unlowered(numpy_program(program))
        found = compiled(a=a, y=y, k=k, rows=9, columns=4)
        for one, wanted in zip(found, program(a, y, k), strict=True):
            np.testing.assert_allclose(np.reshape(one, np.shape(wanted)), wanted, atol=1e-12)
            assert one.dtype == np.asarray(wanted).dtype


@pytest.mark.usefixtures("unoptimised")
def test_residuals_that_nobody_reads_end_no_program() -> None:
    """NumPy gives none of a matrix without full rank, which matters where they are read only."""

    def unread(a: Any, y: Any) -> Any:
        x, _residuals, rank, values = np.linalg.lstsq(a, y)
        fit = np.polyfit(y, y * y, 2)
        while fit[0] > 9:
            fit = fit / 2
        return x, rank, values, fit

    def read(a: Any, y: Any) -> Any:
        x, residuals, *_ = np.linalg.lstsq(a, y)
        return x, residuals

    rng = np.random.default_rng(5)
    a, y = rng.random((6, 3)), rng.random(6)
    a[:, 1] = a[:, 0]
    lowering = distspmd.lower(numpy_program(unread, a, y))
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        for one, wanted in zip(program(a=a, y=y), unread(a, y), strict=True):
            np.testing.assert_allclose(one, wanted, atol=1e-12)
    with distspmd.compile(distspmd.lower(numpy_program(read, a, y)), MPI.COMM_SELF) as program:
        with pytest.raises(np.linalg.LinAlgError, match="gives no residuals"):
            program(a=a, y=y)
        whole = rng.random((6, 3))
        np.testing.assert_allclose(program(a=whole, y=y)[1], read(whole, y)[1], rtol=1e-9)
