"""Shifted arrays that readers take in: how many maps and arrays are left, and what stays."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dace import SDFG
from dace.sdfg import nodes
from hypothesis import given, settings
from hypothesis import strategies as st
from lowering.on_paper import problems

import distspmd
from distspmd.frontend import numpy_program
from distspmd.passes.normalize.compose_maps import compose_maps
from distspmd.plans import Machine

GRID = np.zeros((12, 10))


def composed(function: Callable[..., Any], *arrays: Any, named: tuple[str, ...] = ()) -> SDFG:
    sdfg = copy.deepcopy(numpy_program(function, *arrays, host="refuse"))
    compose_maps(sdfg, named)
    sdfg.validate()
    return sdfg


def maps_of(sdfg: SDFG) -> list[str]:
    """What the maps write, in program order."""
    return [
        edge.dst.data
        for state in sdfg.states()
        for node in state.nodes()
        if isinstance(node, nodes.MapEntry)
        for edge in state.out_edges(state.exit_node(node))
    ]


def passes_over_memory(sdfg: SDFG) -> int:
    """How often a map reads or writes an array of its own size."""
    return sum(
        len({e.src.data for e in state.in_edges(node)})
        + len({e.dst.data for e in state.out_edges(state.exit_node(node))})
        for state in sdfg.states()
        for node in state.nodes()
        if isinstance(node, nodes.MapEntry)
    )


def shallow_water(h, u, v):
    for _ in range(4):
        hx = (np.roll(h, -1, 0) - np.roll(h, 1, 0)) / 2
        hy = (np.roll(h, -1, 1) - np.roll(h, 1, 1)) / 2
        u -= 0.1 * hx
        v -= 0.1 * hy
        along = (np.roll(u, -1, 0) - np.roll(u, 1, 0)) / 2
        h -= 0.1 * (along + (np.roll(v, -1, 1) - np.roll(v, 1, 1)) / 2)


def test_a_step_of_shallow_water_is_three_maps_that_pass_over_memory_ten_times() -> None:
    before = numpy_program(shallow_water, GRID, GRID, GRID, host="refuse")
    assert passes_over_memory(before) == 36
    sdfg = composed(shallow_water, GRID, GRID, GRID)
    assert maps_of(sdfg) == ["u", "v", "h"]
    assert passes_over_memory(sdfg) == 10
    assert not [name for name, container in sdfg.arrays.items() if container.transient]


def test_rolls_along_both_axes_are_read_where_they_come_from() -> None:
    def corners(x, y):
        y[:] = np.roll(np.roll(x, 1, 0), -1, 1) + np.roll(x, (1, 1), axis=(0, 1))

    assert maps_of(composed(corners, GRID, GRID)) == ["y"]


def test_rolls_of_rolls_along_one_axis_are_one_shift() -> None:
    def twice(x, y):
        y[:] = x - np.roll(np.roll(x, 3, 1), 9, 1)

    sdfg = composed(twice, GRID, GRID)
    assert maps_of(sdfg) == ["y"]
    read = [str(edge.data) for state in sdfg.states() for edge in state.edges() if edge.dst_conn]
    assert not any(text.count("Mod") > 1 for text in read)


def test_what_a_map_changes_itself_is_shifted_in_memory_before() -> None:
    def smoothed(x):
        x += np.roll(x, 1, 0)

    assert len(maps_of(composed(smoothed, GRID))) == 2


def test_what_is_changed_between_stays() -> None:
    def late(x, y):
        before = np.roll(x, 1, 0) - x
        x *= 2
        y[:] = before

    assert "before" in maps_of(composed(late, GRID, GRID))


def test_a_temporary_of_the_last_iteration_stays() -> None:
    def lagging(x, y):
        last = np.zeros_like(x)
        for _ in range(3):
            y += last
            last = np.roll(x, 1, 0) - y

    assert "last" in " ".join(maps_of(composed(lagging, GRID, GRID)))


def test_a_temporary_that_a_branch_reads_stays() -> None:
    def perhaps(x, y):
        shifted = np.roll(x, 1, 0) - x
        if x[0, 0] > 0:
            y[:] = shifted

    assert "shifted" in maps_of(composed(perhaps, GRID, GRID))


def test_what_is_cheap_is_computed_for_each_reader_and_other_things_once() -> None:
    def cheap(x, y, z):
        d = np.roll(x, 1, 0) - x
        y[:] = d * 2
        z[:] = d * 3

    def dear(x, y, z):
        d = np.exp(np.roll(x, 1, 0))
        y[:] = d * 2
        z[:] = d * 3

    assert maps_of(composed(cheap, GRID, GRID, GRID)) == ["y", "z"]
    assert len(maps_of(composed(dear, GRID, GRID, GRID))) == 3


def test_a_temporary_that_neighbours_read_is_no_copy_and_stays() -> None:
    def curvature(x, y):
        d = np.exp(np.roll(x, 1, 0))
        y[:] = np.roll(d, -1, 1) - d

    assert len(maps_of(composed(curvature, GRID, GRID))) == 2


def test_spaces_that_a_schedule_names_stay() -> None:
    assert "hx" in maps_of(composed(shallow_water, GRID, GRID, GRID, named=("hx",)))
    program = numpy_program(shallow_water, GRID, GRID, GRID, host="refuse")
    assert "hx" in [s.name for s in distspmd.lower(program, {"hx": (2, 1)}).spaces]
    assert "hx" not in [s.name for s in distspmd.lower(program, {"u": (2, 1)}).spaces]
    assert "hx" in [s.name for s in distspmd.lower(program, {"u": (2, 1)}, fuse=False).spaces]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_step_of_shallow_water_moves_no_more_than_the_rims(ranks: int) -> None:
    """Reads of the far end are copies of their own: the first row does not fetch all rows."""
    n = 60
    program = numpy_program(shallow_water, *[np.zeros((n, n))] * 3, host="refuse")
    lowering = distspmd.lower(program, {"u": (ranks, 1), "v": (ranks, 1), "h": (ranks, 1)})
    steps = [m for m in lowering.memlets if m.times == 4]
    moved = sum(m.solution.plan.received(rank) for m in steps for rank in range(ranks))
    assert moved <= 2 * 2 * ranks * n * 8  # rims of h and u, from two neighbours


@settings(max_examples=8, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    shifts=st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 1)), min_size=1, max_size=4),
    ranks=st.integers(1, 4),
)
def test_rolls_by_any_shifts_are_planned_right(shape, shifts, ranks) -> None:
    def moved(u, w):
        for by, axis in shifts:
            t = np.roll(u, by, axis) - 0.5 * w
            w += np.roll(np.roll(t, by, 1 - axis), -by, axis)
        return u + np.roll(w, (1, -1), axis=(0, 1))

    program = numpy_program(moved, np.zeros(shape), np.zeros(shape), host="refuse")
    cheap = Machine(alpha=1e-12, beta=1e-16, launch=0)
    assert list(problems(distspmd.lower(program, ranks=ranks, machine=cheap))) == []
