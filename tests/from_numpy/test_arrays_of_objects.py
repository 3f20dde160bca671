"""Objects that say by ``__array__`` which array they are, as NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.collections_of_cases import Case
from from_numpy.harness import on_paper


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


def test_objects_are_the_arrays_that_they_say() -> None:
    case = Case("of_objects", of_objects, "numpy", "", lambda _: (A, A.T[::-1].T, A[0]), ())
    outcome = on_paper(case)
    assert outcome.kind == "right", str(outcome)


def test_a_class_that_takes_the_name_of_matrices_is_that_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(np, "matrix", Grid)

    def program(a: Any, b: Any, v: Any) -> Any:
        return np.asarray(np.matrix(a) * 2) + a

    outcome = on_paper(Case("named_so", program, "numpy", "matrices", lambda _: (A, A, A[0]), ()))
    assert outcome.kind == "right", str(outcome)


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
