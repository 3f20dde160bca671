"""Copies of what is held in tiles: gathered for each of their uses, in memory that they share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.errors import ScheduleError
from distspmd.frontend import numpy_program
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.layouts.relations import are_disjoint, covers_all, shared_out
from distspmd.lowering import Lowering

N, ROWS, RANKS = 10, 7, 2
WEIGHTS = "abc"


def there_and_back(x: Any, a: Any, b: Any, c: Any) -> Any:
    g = np.maximum(x @ a, 0)
    h = np.maximum(g @ b, 0)
    y = h @ c
    dh = y @ c.T
    dg = dh @ b.T
    dx = dg @ a.T
    a -= 0.01 * (x.T @ dg)
    b -= 0.01 * (g.T @ dh)
    c -= 0.01 * (h.T @ y)
    return dx


def there(x: Any, a: Any, b: Any, c: Any) -> Any:
    return np.maximum(np.maximum(x @ a, 0) @ b, 0) @ c


def twice(x: Any, a: Any) -> Any:
    y = np.maximum(x @ a, 0)
    a += 1
    z = np.maximum(y @ a, 0)
    a += 1
    return z


def parsed(function: Any) -> Any:
    arrays = {"x": np.ones((ROWS, N))}
    weights = [name for name in function.__code__.co_varnames if name in WEIGHTS]
    return numpy_program(function, **arrays, **{name: np.ones((N, N)) for name in weights})


def schedule(sdfg: Any) -> dict[str, Any]:
    """Products by their rows, of inputs or of weights."""
    spaces = distspmd.iteration_spaces(sdfg)
    return {space.name: {space.parameters[0]: RANKS} for space in spaces}


def lowered(function: Any, kind: str) -> tuple[Any, Lowering]:
    sdfg = parsed(function)
    weights = {name: kind for name in sdfg.arrays if name in WEIGHTS}
    lowering = distspmd.lower(sdfg, schedule(sdfg), arguments=weights)
    return lowering.sdfg, lowering


def gathers(lowering: Lowering) -> list[str]:
    return [m.data for m in lowering.memlets if m.data in WEIGHTS and m.solution.cost.nbytes]


def copies(sdfg: Any) -> list[str]:
    return [name for name in sdfg.arrays if name.split("_copy")[0] in WEIGHTS and "_copy" in name]


def test_what_is_gathered_is_freed_between_two_uses_and_gathered_again() -> None:
    sdfg, lowering = lowered(there_and_back, "distributed")
    assert (sorted(gathers(lowering)), len(copies(sdfg))) == (["a", "b", "c"], 3)
    sdfg, lowering = lowered(there_and_back, "gathered")
    assert sorted(gathers(lowering)) == ["a", "a", "b", "b", "c"]  # nothing is gathered between
    assert len(copies(sdfg)) == 1
    assert {m.solution.cost.nbytes for m in lowering.memlets if m.data in WEIGHTS} == {
        8 * N * N * (RANKS - 1)
    }


def test_what_nobody_writes_is_shared_out_and_gathered_where_it_is_read() -> None:
    sdfg, lowering = lowered(there, "distributed")
    assert gathers(lowering) == []  # each rank holds all
    sdfg, lowering = lowered(there, "gathered")
    assert (gathers(lowering), len(copies(sdfg))) == (["a", "b", "c"], 1)
    for name in WEIGHTS:
        tiles = lowering.argument_layouts[name]
        assert covers_all(tiles)
        assert are_disjoint(tiles.bounds)


def test_ranks_with_one_tile_share_it_out() -> None:
    mesh = Mesh(x=2, y=3)
    shared = shared_out(Layout.parse("[5{x}10, 7]", mesh))
    assert [box[1] for box in shared.boxes] == [(0, 3), (3, 6), (6, 7)] * 2
    assert [box[0] for box in shared.boxes] == [(0, 5)] * 3 + [(5, 10)] * 3
    even = shared_out(Layout.parse("[6, 7]", Mesh(y=3)))
    assert [box[0] for box in even.boxes] == [(0, 2), (2, 4), (4, 6)]
    assert shared_out(even) is even
    few = shared_out(Layout.parse("[2]", Mesh(y=3)))
    assert few.volumes.tolist() == [1, 1, 0]


def test_an_unknown_way_to_hold_is_refused_with_all_that_there_are() -> None:
    with pytest.raises(ScheduleError, match="'distributed', 'gathered'"):
        lowered(there, "freed")


@pytest.mark.parametrize("function", [there_and_back, there, twice])
def test_gathered_copies_have_the_values_of_their_time(function: Any) -> None:
    sdfg = parsed(function)
    weights = {name: "gathered" for name in sdfg.arrays if name in WEIGHTS}
    distspmd.check(sdfg, schedule(sdfg), RANKS, arguments=weights, reference=function)
