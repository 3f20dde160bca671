"""Objects that say by ``__array__`` which array they are, as NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.outcomes import check_same


class Grid:
    """Says which array it is, and leaves the rest to NumPy."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)

    def __mul__(self, other):
        return Grid(self.values * other)

    def __radd__(self, other):
        return Grid(self.values - other)


class First(Grid):
    """Comes before arrays in operators."""

    __array_priority__ = 1000.0


def of_objects(a, b, v):
    grid, first = Grid(a), First(b)
    sums = np.sum(grid), np.hstack([grid, grid * 2]), np.asarray(grid), np.linalg.norm(first)
    rows = np.array(Grid(v), dtype=np.float32), a.dot(Grid(v))
    b = b.copy()
    b += grid
    b[0] = Grid(v)
    return sums, rows, b, b + grid, (b + first).values, (2.0 * v[0] + first).values


A = np.random.default_rng(4).random((3, 4))


def doubled(a, b, v):
    return np.asarray(Grid(a) * 2) + a


@pytest.mark.parametrize("function", [of_objects, doubled], ids=lambda f: f.__name__)
def test_python_asks_objects_which_array_they_are(function: Any) -> None:
    given = A, A + 1.0, A[0].copy()
    program = distspmd.program(function, comm=MPI.COMM_SELF, host="allow")
    check_same(program(*given), function(*given))


def test_objects_are_no_arrays_of_a_program_that_python_may_not_run() -> None:
    with pytest.raises(UnsupportedProgram, match="Grid"):
        numpy_program(of_objects, A, A, A[0], host="refuse")


class Plain:
    """Is no array to NumPy."""

    def __radd__(self, other):
        return other * 2


def test_arrays_of_objects_are_refused_that_numpy_would_make() -> None:
    def program(a: Any) -> Any:
        return a + Plain()

    with pytest.raises(UnsupportedProgram, match=r"array of objects.*__array_ufunc__ = None"):
        numpy_program(program, A)
    assert program(A).dtype == object
