"""Indices that are values of the run, in maps: where they are compared, and what then moves."""

from __future__ import annotations

import types
from typing import Any

import dace
import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.codegen.openmp import keep_apart, keep_on_stack, share_maps
from distspmd.errors import ArgumentError, ProgramIndexError
from distspmd.frontend import numpy_program


def product(row, column, value, x):
    y = np.zeros(len(row) - 1)
    for i in distspmd.map[0 : len(row) - 1]:
        for j in distspmd.map[row[i] : row[i + 1]]:
            y[i] += value[j] * x[column[j]]
    return y


def rows_by_index(near, g, w):
    y = np.zeros((4, 3))
    for i in distspmd.map[0:4]:
        for b in distspmd.map[0:2]:
            if i - b >= 0:
                one = near[i, b]
                for m in distspmd.map[0:3]:
                    y[i, m] += g[i - b, one, m] * w[one]
    return y


def binned(x, w):
    total, count = np.zeros(7), np.zeros(7, dtype=np.int64)
    for i in distspmd.map[0 : len(x)]:
        place = min(int(7 * x[i]), 6)
        total[place] += w[i]
        count[place] += 1
    return total, count


ROW, COLUMN = np.array([0, 2, 2, 5, 7]), np.array([0, 3, -1, 4, 2, 1, 1])


def of_product(rng: Any) -> tuple[Any, ...]:
    return ROW, COLUMN, rng.random(7), rng.random(5)


def of_rows(rng: Any) -> tuple[Any, ...]:
    return rng.integers(-5, 5, (4, 2)), rng.random((4, 5, 3)), rng.random(5)


@pytest.mark.parametrize(("program", "make"), [(product, of_product), (rows_by_index, of_rows)])
def test_maps_in_maps_have_the_indices_of_python(program: Any, make: Any) -> None:
    arguments = make(np.random.default_rng(0))
    compiled = distspmd.compile(distspmd.lower(numpy_program(program, *arguments)), MPI.COMM_SELF)
    np.testing.assert_allclose(compiled(*arguments), program(*arguments), rtol=1e-14)


N, M, K, L = (dace.symbol(name) for name in "NMKL")


def product_of_any_size(
    row: dace.int32[N + 1], column: dace.int32[K], value: dace.float64[K], b: dace.float64[M, L]
):
    y = np.zeros((N, L), dtype=np.float64)
    for i, j in distspmd.map[0:N, 0:L]:
        for k in distspmd.map[row[i] : row[i + 1]]:
            y[i, j] += value[k] * b[column[k], j]
    return y


def assembled(e):
    stiffness, element = np.zeros((5, 5)), np.array([[1.0, -1], [-1, 1]])
    for n in range(4):
        ends = [n, n + 1]
        stiffness[np.ix_(ends, ends)] += e * element * (n + 1)
    return stiffness


def of_any_size(rng: Any) -> tuple[Any, ...]:
    row, column, value, _ = of_product(rng)
    return row.astype(np.int32), column.astype(np.int32), value, rng.random((5, 3))


@pytest.mark.parametrize(
    ("program", "make"), [(product_of_any_size, of_any_size), (assembled, lambda rng: (2.5,))]
)
def test_code_of_places_has_the_symbols_that_it_names(program: Any, make: Any) -> None:
    arguments = make(np.random.default_rng(0))
    examples = arguments if program is assembled else ()
    compiled = distspmd.compile(distspmd.lower(numpy_program(program, *examples)), MPI.COMM_SELF)
    numbers = program.__globals__ | {"N": 4, "L": 3}
    wanted = types.FunctionType(program.__code__, numbers)(*arguments)
    np.testing.assert_allclose(compiled(*arguments), wanted, rtol=1e-14)


def test_examples_decide_the_sizes_of_all_extents_that_are_annotated() -> None:
    examples = of_any_size(np.random.default_rng(0))
    sdfg = numpy_program(product_of_any_size, *examples)
    assert not sdfg.free_symbols
    assert tuple(sdfg.arrays["__return"].shape) == (4, 3)
    row = examples[0]
    with pytest.raises(ArgumentError, match="N is 4, but the example"):
        numpy_program(row_and_more, row, np.zeros(5))
    assert tuple(numpy_program(row_and_more, row, np.zeros(4)).arrays["more"].shape) == (4,)


def row_and_more(row: dace.int32[N + 1], more: dace.float64[N]):
    return row[:N] + more


def test_only_what_indices_in_inner_maps_name_is_fetched() -> None:
    lowering = distspmd.lower(
        numpy_program(product, *of_product(np.random.default_rng(0))), {"__return.2": (2,)}
    )
    text = str(lowering)
    assert "fetch column[j], j = row[i]..row[i + 1] - 1" in text
    assert "fetch j, j = row[i]..row[i + 1] - 1" in text
    assert "is not known before the run" not in text


@pytest.mark.parametrize("beyond", ["column", "row"])
def test_an_index_of_an_inner_map_ends_the_program(beyond: str) -> None:
    row, column, value, x = (a.copy() for a in of_product(np.random.default_rng(0)))
    compiled = distspmd.compile(
        distspmd.lower(numpy_program(product, row, column, value, x)), MPI.COMM_SELF
    )
    if beyond == "column":
        column[3] = 5
    else:
        row[-1] = 8
    wanted = "index 5 is out of bounds" if beyond == "column" else "index 7 is out of bounds"
    with pytest.raises(ProgramIndexError, match=wanted):
        compiled(row, column, value, x)


def test_an_index_that_says_where_to_add_has_no_container() -> None:
    sdfg = numpy_program(binned, np.zeros(20), np.zeros(20))
    assert not [name for name in sdfg.arrays if name.startswith("indices")]
    arguments = np.random.default_rng(1).random((2, 20))
    compiled = distspmd.compile(distspmd.lower(sdfg), MPI.COMM_SELF)
    for got, wanted in zip(compiled(*arguments), binned(*arguments), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-14)


@dace.program
def of_own_rows(a: dace.float64[9000, 3], y: dace.float64[9000], z: dace.float64[3]):
    for i in dace.map[0:9000]:
        for j in dace.map[0:3]:
            y[i] += a[i, j]
            z[j] += a[i, j]


def test_threads_that_write_rows_of_their_own_need_no_atomic_operation() -> None:
    sdfg = numpy_program(of_own_rows, frontend="dace")
    share_maps(sdfg)
    keep_apart(sdfg)
    alone = {
        edge.data.data: edge.data.wcr_nonatomic
        for inner in sdfg.all_sdfgs_recursive()
        for state in inner.states()
        for edge in state.edges()
        if edge.data.wcr is not None and isinstance(edge.src, dace.nodes.CodeNode)
    }
    assert alone == {"y": True, "z": False}


def test_small_containers_of_iterations_stand_on_the_stack() -> None:
    def steps(x: dace.float64[20]) -> None:
        for i in distspmd.map[0:20]:
            own = np.zeros(3)
            for k in range(3):
                own[k] = x[i] * k
            large = np.zeros(5000)
            large[i] = own[1]
            x[i] = large[i] + own[2]

    sdfg = numpy_program(steps)
    keep_on_stack(sdfg)
    found = {
        name: container.storage
        for inner in sdfg.all_sdfgs_recursive()
        for name, container in inner.arrays.items()
        if container.transient
    }
    assert found["own"] is dace.StorageType.Register
    assert found["large"] is dace.StorageType.Default
