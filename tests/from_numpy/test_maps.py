"""Variables that the bodies of parallel maps set: sums over iterations; there is no last one."""

from __future__ import annotations

import copy
from typing import Any

import dace
import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.codegen.build import load_unlowered
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program


def sums(x, y):
    total, count, scale = 0.0, 0, np.float32(1)
    left = 100
    for i in distspmd.map[0:7]:
        if x[i] > 0:
            total += x[i]
            count += 1
        left -= 1
        scale *= np.float32(2)
        own = x[i] * 2
        y[i] = own + own
    return total, count, scale, left


def of_rows(x, y):
    every = 0
    for i in distspmd.map[0:7]:
        row = 0.0
        for j in distspmd.map[0 : i + 1]:
            row += x[j]
        y[i] = row
        every += row
    return every / 7


def in_a_loop(x, y):
    found = np.zeros(3)
    for t in range(3):
        part = 0
        for i in distspmd.map[0:7]:
            if x[i] * 3 > t:
                part += x[i]
        found[t] = part
    return found, y[0]


def last_value(x, y):
    for i in distspmd.map[0:7]:
        own = x[i]
        y[i] = own
    return own


def last_value_of_outer(x, y):
    own = 0.0
    for i in distspmd.map[0:7]:
        own = x[i]
        y[i] = own
    return own


def last_index(x, y):
    i = 3
    for i in distspmd.map[0:7]:
        y[i] = x[i]
    return y[i]


def carried(x, y):
    before = 0.0
    for i in distspmd.map[0:7]:
        y[i] = before
        before = x[i]
    return y[0]


def read_sum(x, y):
    total = 0.0
    for i in distspmd.map[0:7]:
        total += x[i]
        y[i] = total
    return total


def greatest(x, y):
    best = x[0]
    for i in distspmd.map[0:7]:
        best = max(best, x[i])
    return best + y[0]


def _arguments() -> tuple[Any, Any]:
    return np.random.default_rng(3).random(7) - 0.4, np.zeros(7)


def of_quotients(x, y):
    total = 0.0
    for i in distspmd.map[0:7]:
        total += 1.0 / (float(x[i]) + 2.0)
    return total, np.sum(x / (1.0 / float(x[0])))


@pytest.mark.parametrize("program", [sums, of_rows, in_a_loop, of_quotients])
def test_iterations_of_a_map_add_to_a_number_from_before_it(program: Any) -> None:
    x, y = _arguments()
    compiled = load_unlowered(numpy_program(program, x, y))
    wanted_y = y.copy()
    wanted = program(x, wanted_y)
    found = compiled(x=x, y=y)
    for one, other in zip(
        found if isinstance(found, tuple) else (found,),
        wanted if isinstance(wanted, tuple) else (wanted,),
        strict=True,
    ):
        np.testing.assert_allclose(np.squeeze(one), other, rtol=1e-6)
        assert np.asarray(one).dtype == np.asarray(other).dtype
    np.testing.assert_allclose(y, wanted_y)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (last_value, "'own' is set by the iterations of a parallel map"),
        (last_value_of_outer, "'own' is set by the iterations of a parallel map"),
        (last_index, "'i' is set by the iterations of a parallel map"),
        (carried, "'before' goes from each iteration of a parallel map to the next"),
        (read_sum, "'total' goes from each iteration of a parallel map to the next"),
        (greatest, "'best' goes from each iteration of a parallel map to the next"),
    ],
)
def test_what_needs_an_order_of_iterations_is_refused(program: Any, words: str) -> None:
    with pytest.raises(UnsupportedProgram, match=words):
        numpy_program(program, *_arguments())


def medians(x: dace.float64[16, 11]):
    y = x.copy()
    for i, j in dace.map[1:15, 1:10]:
        y[i, j] = np.median(x[i - 1 : i + 2, j - 1 : j + 2])
    return y


def counts(x: dace.float64[16, 11]):
    y = np.zeros((16, 11))
    for i, j in dace.map[1:15, 1:10]:
        number = 0.0
        for k in range(3):
            if x[i + k - 1, j] > 0.5:
                number += 1
        y[i, j] = number
    return y


@pytest.mark.parametrize("program", [medians, counts])
def test_bodies_take_tiles_that_begin_at_the_same_index_on_all_ranks(program: Any) -> None:
    lowering = distspmd.lower(numpy_program(program), {"__return": (3, 1), "__return.2": (3, 1)})
    compiled = copy.deepcopy(lowering.sdfg)
    compiled.replace_dict(lowering.uniform_symbols(3))
    assert {"1"} & {str(-o) for a in compiled.arrays.values() for o in getattr(a, "offset", ())}
    compiled.validate()


def test_bodies_reduce_windows_of_arrays_whose_strides_are_symbols() -> None:
    rows, columns = dace.symbol("rows"), dace.symbol("columns")

    def program(x: dace.float64[rows, columns]):
        y = np.zeros((rows, columns))
        for i, j in dace.map[1 : rows - 1, 1 : columns - 1]:
            window = x[i - 1 : i + 2, j - 1 : j + 2]
            y[i, j] = np.max(window) - np.mean(window)
        return y

    x = np.random.default_rng(4).random((6, 5))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3))
    found = load_unlowered(numpy_program(program))(x=x, rows=6, columns=5)
    wanted = np.max(windows, axis=(2, 3)) - np.mean(windows, axis=(2, 3))
    np.testing.assert_allclose(found[1:-1, 1:-1], wanted)


def test_a_map_in_a_map_has_variables_that_the_outer_one_does_not_declare() -> None:
    def program(near: dace.int64[4, 3], x: dace.float64[4, 5], y: dace.float64[4, 5]):
        for a in dace.map[0:4]:
            for b in dace.map[0:3]:
                place = near[a, b]
                for c in dace.map[0:5]:
                    y[a, c] += x[place, c]

    rng = np.random.default_rng(1)
    near, x, y = rng.integers(0, 4, (4, 3)), rng.random((4, 5)), np.zeros((4, 5))
    load_unlowered(numpy_program(program))(near=near, x=x, y=y)
    np.testing.assert_allclose(y, x[near].sum(1))


def test_an_array_of_ndarray_is_an_empty_one() -> None:
    def program():
        y = np.ndarray((3, 4), np.float32)
        y[:] = 2
        return y

    sdfg = numpy_program(program)
    assert [space.name for space in distspmd.iteration_spaces(sdfg)] == ["__return"]


def reads_in_a_branch(x, y):
    for i in distspmd.map[0:7]:
        if x[i] > 0:
            y[i] = x[i + 1] + x[i - 2]


def reads_in_a_loop(x, y):
    for i in distspmd.map[0:7]:
        total = 0.0
        for j in range(2):
            total += x[i + j]
        y[i] = total


def writes_in_a_branch(x, y):
    for i in distspmd.map[0:7]:
        if x[i] > 0:
            y[i + 1] = x[i]


def adds_in_a_loop(x, y):
    for i in distspmd.map[0:7]:
        for j in range(2):
            if x[i] > 0:
                y[i + j] += x[i]


@pytest.mark.parametrize(
    "program", [reads_in_a_branch, reads_in_a_loop, writes_in_a_branch, adds_in_a_loop]
)
def test_indices_in_branches_and_loops_of_maps_are_checked_where_they_run(program: Any) -> None:
    inside, outside = np.append(np.random.default_rng(2).random(6), -1.0), np.ones(7)
    sdfg = numpy_program(program, *_arguments())
    sdfg = distspmd.lower(sdfg, {}).sdfg
    ready = distspmd.compile(sdfg, MPI.COMM_WORLD)
    with pytest.raises(IndexError, match="index 7 is out of bounds for a dimension of 7"):
        ready(x=outside, y=np.zeros(7))
    if program is not reads_in_a_loop:
        y, wanted = np.zeros(7), np.zeros(7)
        program(inside, wanted)
        ready(x=inside, y=y)
        np.testing.assert_allclose(y, wanted)


def test_ranges_of_a_map_that_data_decide_make_no_sizes_of_the_program() -> None:
    def program(row, column, value, x, y):
        for i in distspmd.map[0:3]:
            for j in distspmd.map[row[i] : row[i + 1]]:
                y[i] += value[j] * x[column[j]]

    row, column = np.array([0, 2, 2, 5]), np.array([1, 0, 2, 2, 1])
    value, x, y = np.arange(1.0, 6), np.array([1.0, 10, 100]), np.zeros(3)
    sdfg = numpy_program(program, row, column, value, x, y)
    assert not sdfg.free_symbols
    load_unlowered(sdfg)(row=row, column=column, value=value, x=x, y=y)
    wanted = np.zeros(3)
    program(row, column, value, x, wanted)
    np.testing.assert_allclose(y, wanted)
