"""Functions of NumPy over arrays: programs that call them give NumPy's results on ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import ndimage, special

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.functions import PROGRAMS
from from_numpy.harness import on_paper
from from_numpy.outcomes import RIGHT
from from_numpy.run_in_numpy import problem
from from_numpy.sweep import sweep


def test_programs_run_in_numpy() -> None:
    assert not [problem(case) for case in PROGRAMS.values() if problem(case)]


@pytest.mark.parametrize(
    ("ranks", "step"), [(3, 6), *(pytest.param(n, 1, marks=pytest.mark.slow) for n in (1, 2, 3))]
)
def test_programs_of_functions_are_right_with_all_spaces_split(ranks: int, step: int) -> None:
    names = list(PROGRAMS)[::step]
    found = sweep(names, which="functions", mode=str(ranks), limit=200)
    assert len(found) == len(names)
    assert not [f"{each.name}: {each.reason}" for each in found if each.kind != RIGHT]


ON_PAPER = (
    *("exponents", "of_matrices", "of_optimisation", "of_polynomials", "of_samples", "of_scipy"),
    *("of_interpolation", "of_signals", "rarer_arguments", "rarer_forms", "taken_parts"),
)
"""Fields of which all programs are compared on paper."""


@pytest.mark.parametrize("name", [n for n, c in PROGRAMS.items() if c.field in ON_PAPER])
def test_values_types_and_shapes_are_those_of_numpy(name: str) -> None:
    found = on_paper(PROGRAMS[name])
    assert found.kind == RIGHT, found
    assert found.uncompared in ("", "Library", "Routine")  # values are compared on ranks


_view, _strided = np.lib.stride_tricks.sliding_window_view, np.lib.stride_tricks.as_strided
REFUSED: list[tuple[str, Callable[..., Any]]] = [
    ("write a loop", lambda x: np.power.accumulate(x)),
    ("in the range", lambda x: np.quantile(x, 1.5)),
    ("no method 'middle'", lambda x: np.percentile(x, 5, method="middle")),
    ("weights=", lambda x: np.quantile(x, 0.5, weights=x, method="inverted_cdf")),
    ("side is 'left' or 'right'", lambda x: np.searchsorted(x[0], x, side="middle")),
    ("'edge_order' greater than 2", lambda x: np.gradient(x[0], edge_order=3)),
    ("the rules are auto, doane", lambda x: np.histogram(x, bins="stone")),
    ("Invalid number of FFT data points", lambda x: np.fft.fft(x, 0)),
    ("norm has to be", lambda x: np.fft.fft(x, norm="unit")),
    ("mode is 'full'", lambda x: np.convolve(x[0], x[1], "half")),
    ("windows that are written to", lambda x: _view(x, 2, axis=1, writeable=True)),
    ("cannot be larger", lambda x: _view(x, 5, axis=0)),
    ("goes to the element 5", lambda x: _strided(x[0], (4, 3), (8, 8))),
    ("go along no dimension", lambda x: _strided(x, (3,), (12,))),
    ("of the type float16", lambda x: np.ldexp(5, x[0].astype(int))),
    ("scipy.ndimage with the mode 'odd'", lambda x: ndimage.gaussian_filter(x, 1, mode="odd")),
    ("exact=True of values", lambda x: special.comb(x, 2, exact=True)),
    ("several polynomials", lambda x: np.polynomial.polynomial.polyval(x, x)),
    ("of which the run decides", lambda x: np.linalg.lstsq(x[:, : int(x[0, 0])], x[:, 0])),
    ("how an array lies in memory", lambda x: x.ravel(order="K")),
    ("about an array in memory", lambda x: x.flags["C_CONTIGUOUS"]),
    ("about an array in memory", lambda x: x[0].base is x),
    ("no attribute 'flip'", lambda x: x.flip()),
    ("by more than all elements", lambda x: np.pad(x, 4, "reflect", reflect_type="odd")),
    ("with the argument 'stat_length'", lambda x: np.pad(x, 1, "edge", stat_length=2)),
    ("all dimensions of more", lambda x: np.fill_diagonal(x[None], 1)),
    ("lists of np.einsum have to be known", lambda x: np.einsum(x, x[0].astype(int))),
    ("have no order", lambda x: np.quantile(x * 1j, 0.5)),
]


@pytest.mark.parametrize(("words", "function"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_what_is_not_covered_is_refused_with_what_to_write(
    words: str, function: Callable[..., Any]
) -> None:
    with pytest.raises(UnsupportedProgram, match=words.replace("(", r"\(")):
        numpy_program(function, np.ones((3, 4)), frontend="numpy")


def _counted(x: Any) -> Any:
    return np.bincount(x, minlength=4)


@pytest.mark.parametrize("wrong", [4, -1])
def test_numbers_that_are_not_below_the_length_of_their_counts_end_the_program(wrong: int) -> None:
    from mpi4py import MPI

    lowered = distspmd.lower(numpy_program(_counted, np.array([1, 3])))
    with distspmd.compile(lowered, MPI.COMM_SELF) as program:
        np.testing.assert_array_equal(program(x=np.array([1, 3])), [0, 1, 0, 1])
        with pytest.raises(ValueError, match="minlength"):
            program(x=np.array([1, wrong]))


def _zeros_of(x: Any) -> Any:
    return np.roots(x)


def test_coefficients_that_numpy_would_leave_out_end_the_program() -> None:
    from mpi4py import MPI

    lowered = distspmd.lower(numpy_program(_zeros_of, np.ones(3)))
    with distspmd.compile(lowered, MPI.COMM_SELF) as program:
        np.testing.assert_allclose(
            program(x=np.array([1.0, 3, 2])), _zeros_of(np.array([1.0, 3, 2]))
        )
        with pytest.raises(ValueError, match="NumPy would leave it out"):
            program(x=np.array([0.0, 3, 2]))
