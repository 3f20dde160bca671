"""Ranges that loops choose: what is tiled, and maps that run over the indices that they write."""

import dace
import numpy as np
import pytest

import distspmd
from distspmd.errors import UnsupportedProgram


@dace.program
def triangle(x: dace.float64[9, 7]):
    for t in range(1, 6):
        for i in dace.map[t - 1 : 2 * t]:
            x[i, t] = x[i, t] + 1


@dace.program
def corner(x: dace.float64[9, 9]):
    for t in range(2, 9):
        for i, j in dace.map[0 : 9 - t, 0 : 9 - t]:
            x[i + t, j + t] = x[i + t, j + t] * 2


@dace.program
def panels(a: dace.float64[16, 16], y: dace.float64[16]):
    for t in range(2, 9):
        for i in dace.map[t:16]:
            a[i, t] = 2 * a[i, t]
        for j in dace.map[0:t]:
            y[j] = y[j] + 1


@dace.program
def sums(a: dace.float64[7, 9], y: dace.float64[9]):
    for t in range(9):
        y[t] = np.sum(a[:, t:])


@dace.program
def until_a_value(x: dace.float64[9], n: dace.int64[1]):
    m = n[0]
    for i in dace.map[0:m]:
        x[i] = x[i] + 1


def test_the_hull_of_all_ranges_is_tiled() -> None:
    lowering = distspmd.lower(triangle.to_sdfg(), {"x": (3,)})
    assert dict(lowering.spaces[-1].iterates) == {"i": "0:10"}


def test_a_map_runs_over_what_it_writes() -> None:
    lowering = distspmd.lower(corner.to_sdfg(), {"x": (2, 2)})
    assert dict(lowering.spaces[-1].iterates) == {"i": "2:9", "j": "2:9"}


def test_a_hull_of_nearly_all_of_a_dimension_is_cut_where_the_array_is() -> None:
    lowering = distspmd.lower(panels.to_sdfg(), {"a": (4,), "y": (2,)})
    ranges = {space.name: dict(space.iterates) for space in lowering.spaces}
    assert ranges["a"] == {"i": "0:16"}  # of 2:16
    assert ranges["y"] == {"j": "0:8"}  # what is half of it stays, or one rank had all of it
    (home,) = [home for home in lowering.homes if home.data == "a"]
    assert [box[0] for box in home.layout.boxes] == [(0, 4), (4, 8), (8, 12), (12, 16)]


def test_a_temporary_is_as_large_as_it_becomes() -> None:
    sdfg = sums.to_sdfg()
    sdfg = distspmd.lower(sdfg, {"y": (1,)}).sdfg
    shapes = {tuple(map(str, array.shape)) for array in sdfg.arrays.values()}
    assert ("7", "9") in shapes
    assert not any(array.free_symbols & {"t"} for array in sdfg.arrays.values())


@dace.program
def counted_until_a_value(x: dace.float64[9], y: dace.float64[1], n: dace.int64[1]):
    m = n[0]
    for i in dace.map[0:m]:
        y[0] += 1
        if i < 9:
            x[i] = x[i] + 1


def test_a_range_that_data_end_is_cut_where_the_array_is() -> None:
    lowering = distspmd.lower(until_a_value.to_sdfg(), {"x": (3,)})
    assert dict(lowering.spaces[-1].iterates) == {"i": "0:9"}
    assert all(memlet.times == 1 for memlet in lowering.memlets)


def test_a_range_that_data_end_beyond_what_it_writes_is_refused() -> None:
    sdfg = counted_until_a_value.to_sdfg()
    (space,) = distspmd.iteration_spaces(sdfg)
    with pytest.raises(UnsupportedProgram, match="not known before the run"):
        distspmd.lower(sdfg, {space.name: (3,)})
