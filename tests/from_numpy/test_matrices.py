"""``np.matrix``, and objects that say by ``__array__`` which array they are, as NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.runtime.calls.form import call_form_of, fill
from from_numpy.collections_of_cases import Case
from from_numpy.harness import on_paper


def products(a, b, v):
    m, n = np.matrix(a), np.asmatrix(b)
    square = m * n.T
    powers = square**2, square.I, m.I, np.linalg.inv(square)
    return m * v[:, None], v[:3] * m, [1.0, 2.0, 0.5] * m, m @ v, np.dot(m, v), 2 * m, m / 3, powers


def element_by_element(a, b, v):
    m, n = np.matrix(a), np.asmatrix(b)
    return m + b, v - m, np.multiply(m, n), -m, m > n, abs(m).max(), np.sqrt(m), m.T.H


def parts(a, b, v):
    m = np.matrix(a)
    row, column = m[0], m[:, 1]
    m[:, 0] = m[:, 1]
    m[:, 2] += column
    m[1] = row * 2
    m[2, 3] = m[0, 0]
    m[1, :] *= 2.0
    m *= 2
    m -= b
    return row, column, m, m[1, 2], m[np.array([0, 2])], m[m > 1].A1.sum(), len(m), m.shape


def chosen_by_matrices(a, b, v):
    m, below = np.matrix(a), np.zeros((3, 1))
    below[m[:, 0] <= 0.5] = -1.0
    errors = np.asmatrix(np.ones((3, 1)))
    errors[below == m[:, 1].round()] = 0
    return below, errors, a[m > 0.5], errors[2, 0]


def reduced(a, b, v):
    m = np.matrix(a)
    lines = m.sum(0), m.sum(axis=1), m.mean(1), m.max(axis=0), m.ravel(), m.flatten(), m.A1
    return lines, m.sum(), m.trace(), m.diagonal(), m.A, np.asarray(m), np.linalg.norm(m)


def one_memory(a, b, v):
    a = a.copy()
    m = np.asmatrix(a)
    m[0, 0] = 7.0
    m[1] = m[0]
    m.A[2, 2] = 5.0
    return a, m


def of_texts_and_blocks(a, b, v):
    m = np.matrix("1 2; 3 4")
    return m.I, m * m, np.bmat([[m, m + 1], [m, m.T]]), np.hstack([m, m]), np.vstack((m, m))


def of_one_line(a, b, v):
    m = np.matrix(v)
    return m, m.T, m * m.T, (m.T * m).sum(), [row * 2 for row in m.T]


def in_a_loop(a, b, v):
    m, x = np.matrix(a[:, :3]), np.matrix(np.ones((3, 1)))
    for _ in range(50):
        y = m * x
        size = float(np.sqrt((y.T * y)[0, 0]))
        y = y / size
        if np.linalg.norm(y - x) < 1e-6:
            break
        x = y
    return x, size


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


RIGHT = [
    *(products, element_by_element, parts, reduced, one_memory, of_texts_and_blocks, of_one_line),
    *(in_a_loop, of_objects, chosen_by_matrices),
]
A = np.random.default_rng(4).random((3, 4))


@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_matrices_are_what_numpy_makes_of_them(function: Any) -> None:
    outcome = on_paper(
        Case(function.__name__, function, "numpy", "matrices", lambda _: (A, A.T[::-1].T, A[0]), ())
    )
    assert outcome.kind == "right", str(outcome)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_results_are_matrices_where_numpy_gives_matrices() -> None:
    def program(a: Any) -> Any:
        m = np.matrix(a)
        return m * m.T, m.A, m.sum(0)

    kinds = [type(each).__name__ for each in program(A)]
    form = call_form_of(numpy_program(program, A)).returned
    found = fill(form, lambda _: np.ones((2, 2)))
    assert [type(each).__name__ for each in found] == kinds == ["matrix", "ndarray", "matrix"]


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
