"""Maps that are joined before code is generated: which are, and which stay apart."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import dace
import numpy as np
import pytest
from dace.sdfg import nodes

import distspmd
from distspmd.codegen.sibling_maps import join_siblings
from distspmd.frontend import numpy_program

GRID = np.zeros((12, 10))


def joined(function: Callable[..., Any], *arrays: Any) -> list[set[str]]:
    """What the maps of a program write, when it is lowered for one rank and its maps are joined."""
    lowering = distspmd.lower(numpy_program(function, *arrays, host="refuse"), {})
    sdfg = copy.deepcopy(lowering.sdfg)
    join_siblings(sdfg)
    sdfg.validate()
    return written(sdfg)


def written(sdfg: dace.SDFG) -> list[set[str]]:
    return [
        {edge.data.data for edge in state.out_edges(state.exit_node(node))}
        for state in sdfg.states()
        for node in state.nodes()
        if isinstance(node, nodes.MapEntry)
    ]


def test_maps_that_read_one_array_are_one_map() -> None:
    def both(h, u, v):
        u[:] = np.exp(h)
        v[:] = h * 2

    assert joined(both, GRID, GRID, GRID) == [{"u", "v"}]


def test_maps_that_share_nothing_stay_apart() -> None:
    def each(a, b, u, v):
        u[:] = a * 2
        v[:] = b * 2

    assert len(joined(each, GRID, GRID, GRID, GRID)) == 2


def test_maps_of_other_ranges_stay_apart() -> None:
    def parts(h, u, v):
        u[:] = h * 2
        v[1:] = h[1:] * 2

    assert len(joined(parts, GRID, GRID, GRID)) == 2


def test_a_map_that_needs_another_one_stays_behind_it() -> None:
    def chain(h, u, v):
        u[:] = np.exp(h)
        v[1:-1] = u[2:] - u[:-2] + h[1:-1]

    sdfg = chain_of_maps()
    join_siblings(sdfg)
    assert len(written(sdfg)) == 2
    assert len(joined(chain, GRID, GRID, GRID)) == 2


def chain_of_maps() -> dace.SDFG:
    """Two maps over one range that both read ``h``; the second one reads what the first wrote."""
    sdfg = dace.SDFG("chain")
    for name in ("h", "u", "v"):
        sdfg.add_array(name, [12], dace.float64)
    state = sdfg.add_state()
    middle = state.add_access("u")
    state.add_mapped_tasklet(
        "first",
        {"i": "0:12"},
        {"a": dace.Memlet("h[i]")},
        "b = a",
        {"b": dace.Memlet("u[i]")},
        external_edges=True,
        output_nodes={"u": middle},
    )
    state.add_mapped_tasklet(
        "second",
        {"i": "0:12"},
        {"a": dace.Memlet("u[11 - i]"), "c": dace.Memlet("h[i]")},
        "b = a + c",
        {"b": dace.Memlet("v[i]")},
        external_edges=True,
        input_nodes={"u": middle},
    )
    return sdfg


@pytest.mark.parametrize("other", ["u[11 - i]", "u[i]"])
def test_a_map_that_changes_what_another_one_reads_stays_apart(other: str) -> None:
    sdfg = dace.SDFG("crossing")
    for name in ("h", "u", "v"):
        sdfg.add_array(name, [12], dace.float64)
    state = sdfg.add_state()
    for label, read, write in (("first", other, "v[i]"), ("second", "h[i]", "u[i]")):
        state.add_mapped_tasklet(
            label,
            {"i": "0:12"},
            {"a": dace.Memlet(read), "c": dace.Memlet("h[i]")},
            "b = a + c",
            {"b": dace.Memlet(write)},
            external_edges=True,
        )
    join_siblings(sdfg)
    assert len(written(sdfg)) == 2


def test_sums_into_one_element_stay_apart() -> None:
    def sums(h):
        return np.sum(h), np.sum(h * 2)

    assert all(len(names) == 1 for names in joined(sums, GRID))


def test_maps_of_many_arrays_are_several() -> None:
    def many(h, a, b, c, d, e, f, g, i, j, k, m, n):
        for each in (a, b, c, d, e, f, g, i, j, k, m, n):
            each[:] = h * 2

    found = joined(many, *[GRID] * 13)
    assert 1 < len(found) < 12
    assert sum(map(len, found)) == 12


@pytest.mark.parametrize("grid", [(3, 1), (2, 2)])
def test_tiles_of_ranks_are_joined_where_they_are_alike(grid: tuple[int, int]) -> None:
    def both(h, u, v):
        u[:] = np.exp(h)
        v[:] = h * 2

    program = numpy_program(both, np.zeros((7, 5)), np.zeros((7, 5)), np.zeros((7, 5)))
    lowering = distspmd.lower(program, {"u": grid, "v": grid})
    sdfg = copy.deepcopy(lowering.sdfg)
    join_siblings(sdfg)
    assert [len(names) for names in written(sdfg)] == [2]
