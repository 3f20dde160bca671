"""Indices out of range: the errors of NumPy, on all ranks, for values of the run too."""

from __future__ import annotations

import inspect
import sys
import types
from typing import Any

import dace
import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ProgramIndexError, UnsupportedProgram
from distspmd.frontend import numpy_program


def gathered(x, idx):
    return x[idx]


def scattered(x, idx):
    y = np.zeros(5)
    y[idx] = x[0]
    return y


def added(x, idx):
    y = np.zeros(5)
    np.add.at(y, idx, 1.0)
    return y


def one_number(x, idx):
    return x[idx[0]] + x[idx[2] + 1]


def in_a_loop(x, idx):
    total = 0.0
    for i in range(3):
        total += x[idx[i]]
    return total


def in_a_map(x, idx):
    y = np.zeros(3)
    for i in distspmd.map[0:3]:
        y[i] = x[idx[i]]
    return y


def in_a_loop_of_a_map(x, idx):
    y = np.zeros(2)
    for i in distspmd.map[0:2]:
        total = 0.0
        for j in range(i, i + 2):
            total += x[idx[j]]
        y[i] = total
    return y


def written_in_a_loop(x, idx):
    y = np.zeros(5)
    for i in range(3):
        y[idx[i]] += x[i]
    return y


def by_condition(x, idx):
    total = 0.0
    for i in range(len(x)):
        if i + 1 < len(x):
            total += x[i + 1]
    return total + np.sum(np.where(idx < 5, x[np.minimum(idx, 4)], 0))


def computed(x, idx):
    k = int(np.sum(idx))
    return x[k - 1]


EVERY = [
    *(gathered, scattered, added, one_number, in_a_loop, in_a_map, written_in_a_loop),
    *(in_a_loop_of_a_map, by_condition, computed),
]


@pytest.mark.parametrize("function", EVERY, ids=lambda f: f.__name__)
def test_an_index_is_taken_or_refused_as_by_numpy(function: Any) -> None:
    x = np.arange(5.0) + 1
    lowering = distspmd.lower(numpy_program(function, x, np.zeros(3, np.int64)))
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        for given in ([0, 1, 3], [-5, 2, -1], [5, 0, 0], [1, -6, 2], [1, 1, 4], [2, 2, 0]):
            idx = np.array(given)
            try:
                wanted = function(x.copy(), idx)
            except IndexError:
                with pytest.raises(ProgramIndexError, match="out of bounds for a dimension of 5"):
                    program(x, idx)
            else:
                np.testing.assert_array_equal(program(x, idx), wanted)


def one_too_far(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i + 1]
    return total


def test_an_index_of_a_loop_ends_the_program_with_its_line() -> None:
    lowering = distspmd.lower(numpy_program(one_too_far, np.zeros(4)))
    with (
        distspmd.compile(lowering, MPI.COMM_SELF) as program,
        pytest.raises(ProgramIndexError, match=r"test_index_errors.py:\d+: IndexError") as error,
    ):
        program(np.zeros(4))
    assert "total += x[i + 1]" in str(error.value)


def test_indices_that_are_known_to_fit_have_no_check() -> None:
    def program(x: Any) -> Any:
        for i in range(1, len(x) - 1):
            x[i] = x[i - 1] + x[i + 1]
        return x[-1]

    sdfg = numpy_program(program, np.zeros(6))
    assert not [n for n, _ in sdfg.all_nodes_recursive() if "IndexError" in str(vars(n))]


# -- parallel maps --------------------------------------------------------------------------------

N, M = dace.symbol("N"), dace.symbol("M")


def checks(sdfg: Any) -> int:
    """How many errors of indices a program may end with."""
    return sum("IndexError" in str(vars(node)) for node, _ in sdfg.all_nodes_recursive())


def neighbours(x: dace.float64[N], y: dace.float64[M]):
    for i in distspmd.map[1:N]:
        y[i] = x[i - 1] + x[i]


def steps_and_two(x: dace.float64[N], y: dace.float64[M]):
    for i, j in distspmd.map[0:M:3, 1:3]:
        y[i] += x[i - j]


def of_triangles(x: dace.float64[N, M], y: dace.float64[N]):
    for i in distspmd.map[0:N]:
        for j in distspmd.map[0:i]:
            y[i] += x[i, j]


def with_rows(x: dace.float64[N, M], y: dace.float64[N]):
    for i in distspmd.map[0:N]:
        row = x[i] * 2
        for k in range(2):
            row += k
        y[i] = row[0] + x[i + 1 - 1, N - 2]


PAIRS = [(1, 1), (2, 1), (3, 3), (4, 2), (3, 5), (7, 4), (2, 9), (4, 3)]


def outcome(function: Any, shapes: Any) -> Any:
    """What the loops of Python do, or the kind of their error.

    Where a size that a call has leaves no index in range, the program is refused with the same
    sentence before anything runs.
    """
    x, y = (np.arange(1.0, np.prod(shape) + 1).reshape(shape) for shape in shapes)
    try:
        function(x, y)
    except IndexError:
        return IndexError
    except UnsupportedProgram as refused:
        if "out of bounds for a dimension of" not in str(refused):
            raise
        return IndexError
    return y


@pytest.mark.usefixtures("unoptimised")
def test_affine_indices_of_a_map_are_checked_before_it() -> None:
    found = {}
    for function in (neighbours, steps_and_two, of_triangles, with_rows):
        two = "x: dace.float64[N, M]" in inspect.getsource(function)
        program = distspmd.program(function)
        for n, m in PAIRS:
            shapes = ((n, m), (n,)) if two else ((n,), (m,))
            bound = {**vars(sys.modules[__name__]), "N": n, "M": m}
            plain = types.FunctionType(function.__code__, bound)
            wanted = outcome(plain, shapes)
            got = outcome(program, shapes)
            found[function.__name__, wanted is IndexError] = True
            if wanted is IndexError:
                assert got is IndexError, (function.__name__, n, m)
            else:
                np.testing.assert_array_equal(got, wanted)
    assert len(found) >= 7


def test_indices_of_maps_that_are_known_to_fit_cost_nothing() -> None:
    def inner(x: dace.float64[N], y: dace.float64[N]) -> None:
        for i in distspmd.map[1 : N - 1]:
            y[i] = x[i - 1] + x[i + 1]

    def in_branches(x: dace.float64[N], y: dace.float64[N]) -> None:
        for i in distspmd.map[0:N]:
            if i + 1 < N:
                y[i] = x[i + 1]

    assert checks(numpy_program(inner)) == checks(numpy_program(in_branches)) == 0
    assert checks(numpy_program(of_triangles)) == 1


def test_an_index_of_a_map_that_is_never_in_range_is_refused() -> None:
    def too_far(x: Any) -> None:
        for i in distspmd.map[0:6]:
            x[i] = x[i + 1]

    with pytest.raises(UnsupportedProgram, match=r"i \+ 1 is out of bounds for a dimension of 6"):
        numpy_program(too_far, np.zeros(6))
