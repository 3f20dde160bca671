"""Homes: where a container lives, what that makes necessary, and that it is the least."""

from dataclasses import replace
from typing import Any

import dace
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import tiling_on_grid

import distspmd
from distspmd.analysis.constraints import uses
from distspmd.analysis.iteration_spaces import spaces_of
from distspmd.analysis.uses import Read, Use, Write
from distspmd.frontend import numpy_program
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout, Partial
from distspmd.layouts.mesh import Mesh
from distspmd.lowering import Lowering
from distspmd.placement.homes import (
    MOST_USED,
    Home,
    choose,
    most_used,
    moves,
    plan_fetch,
    stores,
    works_in_place,
)

FLOAT = np.dtype("float64")


@dace.program
def doubled(x: dace.float64[12], y: dace.float64[12]):
    for i in dace.map[0:12]:
        y[i] = 2 * x[i]


@dace.program
def inner_doubled(x: dace.float64[12], y: dace.float64[12]):
    for i in dace.map[2:10]:
        y[i] = 2 * x[i]


@dace.program
def guarded(x: dace.float64[12], y: dace.float64[12]):
    for i in dace.map[0:12]:
        if x[i] > 0:
            y[i] = 2 * x[i]


@dace.program
def stencil(x: dace.float64[12], y: dace.float64[12]):
    for i in dace.map[1:11]:
        y[i] = x[i - 1] + x[i + 1]


@dace.program
def summed(x: dace.float64[12], y: dace.float64[1]):
    for i in dace.map[0:12]:
        y[0] += x[i]


@dace.program
def steps(x: dace.float64[12], y: dace.float64[12]):
    for _t in range(10):
        for i in dace.map[1:11]:
            y[i] = x[i - 1] + x[i + 1]
        for i in dace.map[1:11]:
            x[i] = y[i - 1] + y[i + 1]


@dace.program
def five_points(x: dace.float64[10, 12], y: dace.float64[10, 12]):
    for _t in range(3):
        for i, j in dace.map[1:9, 1:11]:
            y[i, j] = x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]
        for i, j in dace.map[1:9, 1:11]:
            x[i, j] = y[i, j] + y[i - 1, j] + y[i + 1, j] + y[i, j - 1] + y[i, j + 1]


@dace.program
def elimination(x: dace.float64[12, 12]):
    for k in range(11):
        for i, j in dace.map[0:12, 0:12]:
            x[i, j] = x[i, j] - x[i, k] * x[k, j]


@dace.program
def rows_in_turn(x: dace.float64[9], y: dace.float64[12]):
    for k in range(9):
        for i in dace.map[0:12]:
            y[i] = y[i] + x[k]


@dace.program
def chain(x: dace.float64[12]):
    a = x + 1
    b = a * 2
    return np.sin(b)


@dace.program
def reduced_then_used(x: dace.float64[8, 12]):
    s = np.sum(x, axis=0)
    return s * 2 + 1


def use(program: Any, data: str, parts: int, *, write: bool, steps: tuple[int, ...] = ()) -> Use:
    sdfg = program.to_sdfg()
    space = spaces_of(sdfg)[0]
    tiling = tiling_on_grid(space.parameters, space.ranges, steps or (parts,))
    (found,) = (u for u in uses(space, tiling) if u.data == data and isinstance(u, Read) != write)
    return found


def home(*found: Use, argument: bool = True, result: bool = False) -> Home:
    return choose(
        found[0].data,
        FLOAT,
        found,
        caller=Layout.root(found[0].layout.extents) if argument else None,
        result=result,
    )


def in_place(use: Use, layout: Layout) -> bool:
    """Whether a use of a home moves nothing."""
    home = Home("x", layout, layout, (layout,), (use,), None, False, False, False)
    return works_in_place(use, layout) and not stores(use, home, FLOAT)


def moved(lowering: Lowering) -> list[str]:
    return [f"{memlet.data}: {memlet.layouts}" for memlet in lowering.memlets]


def test_an_argument_that_is_read_lives_where_it_is_read_and_is_loaded():
    found = home(use(doubled, "x", 4, write=False))
    assert str(found.layout) == "[3{i}12]"
    assert (found.at_caller, found.load, found.store) == (False, True, False)


def test_an_argument_that_is_overwritten_is_stored_and_not_loaded():
    found = home(use(doubled, "y", 4, write=True))
    assert str(found.layout) == "[3{i}12]"
    assert (found.load, found.store) == (False, True)


def test_an_argument_that_may_keep_values_is_loaded_and_stored():
    found = home(use(guarded, "y", 4, write=True))
    assert (found.load, found.store) == (True, True)


def test_a_result_is_never_loaded():
    found = home(use(guarded, "y", 4, write=True), result=True)
    assert not found.load


def test_a_part_that_is_written_lives_alone_and_what_is_around_it_stays_with_the_caller():
    found = home(use(inner_doubled, "y", 4, write=True))
    assert (found.load, found.store) == (False, True)
    assert [found.layout.box(rank) for rank in range(4)] == [
        ((2, 4),),
        ((4, 6),),
        ((6, 8),),
        ((8, 10),),
    ]


def test_one_rank_works_at_the_root_with_the_arrays_of_the_caller():
    for data, write in (("x", False), ("y", True)):
        found = home(use(doubled, data, 1, write=write))
        assert found.at_caller
        assert not found.load
        assert not found.store


def test_what_is_reduced_for_the_caller_is_accumulated_at_the_root():
    writing = use(summed, "y", 4, write=True)
    found = home(writing)
    assert found.at_caller
    (store,) = stores(writing, found, FLOAT)
    assert store.accumulate
    assert str(store.source) == "[1] + partial(sum){i}"


def test_what_operands_are_added_to_is_loaded():
    boxes = [((0, 0),), ((1, 6),)]
    operands = Layout.of_boxes(Mesh(i=2), (8,), boxes, Partial("sum", ("i",)))
    there = Layout.of_boxes(Mesh(i=2), (8,), boxes)
    found = home(
        Write(None, "y", operands, (), accumulates=True),  # type: ignore[arg-type]
        Read(None, "y", there, (), times=9),  # type: ignore[arg-type]
    )
    assert str(found.layout) == "boxes[8]{1: 1:6}"
    assert found.load


def test_operands_that_are_added_up_in_a_loop_are_reduced_once_when_they_are_read():
    written = replace(use(summed, "y", 4, write=True), times=5)
    read = replace(use(doubled, "x", 4, write=False), data="y")
    alone = replace(read, layout=Layout.of_boxes(Mesh(i=4), (1,), [((0, 1),)] * 4), times=1)
    found = home(written, alone, argument=False)
    assert str(found.layout) == "[1] + partial(sum){i}"
    assert stores(written, found, FLOAT) == []
    assert [found.entrance.volume(rank) for rank in range(4)] == [1, 0, 0, 0]
    often = home(replace(written, times=1), replace(alone, times=2), argument=False)
    assert str(often.layout) == "[1]"


def test_operands_live_apart_only_if_every_other_write_replaces_them_all():
    written = replace(use(summed, "y", 4, write=True), times=5)
    value = Layout.of_boxes(Mesh(i=4), (1,), [((0, 1),)] + [((0, 0),)] * 3)
    start = Write(None, "y", value, ())  # type: ignore[arg-type]
    assert home(start, written, argument=False).layout.partial
    assert not home(replace(start, exact=False), written, argument=False).layout.partial
    other = Partial("max", ("i",))
    greatest = replace(written, layout=replace(written.layout, partial=other))
    assert not home(start, written, greatest, argument=False).layout.partial


def test_readers_of_different_layouts_share_the_one_of_least_traffic():
    wide, narrow = (use(stencil, "x", 4, write=False), use(doubled, "x", 4, write=False))
    found = home(wide, narrow, argument=False)
    reads = [in_place(u, found.layout) for u in (wide, narrow)]
    assert True in reads


@pytest.mark.parametrize("gathered", [False, True])
def test_readers_of_equal_tiles_on_grids_written_otherwise_get_the_copy_that_is_planned(gathered):
    read = use(doubled, "x", 3, write=False)
    mesh = Mesh.of((*read.layout.mesh.axes, ("__other", 1)))
    other = replace(read, layout=replace(read.layout, mesh=mesh))
    assert other.layout != read.layout
    root = Layout.root(read.layout.extents)
    for found in ((read, other), (other, read)):
        lives = replace(choose("x", FLOAT, found, caller=root, given=root), is_gathered=gathered)
        planned = [move for _, move in moves(lives, FLOAT)]
        assert [plan_fetch(each, lives, FLOAT) for each in found] == [planned[0]] * 2


def test_a_transient_lives_where_it_is_written_if_it_is_read_there():
    lowering = distspmd.lower(chain.to_sdfg(), {"a": (4,)}, fuse=False)
    assert {h.data: str(h.layout) for h in lowering.homes} == dict.fromkeys(
        ("x", "a", "b", "__return"), "[3{__i0}12]"
    )
    assert moved(lowering) == [
        "x: root [12] -> [3{__i0}12]",
        "__return: [3{__i0}12] -> root [12]",
    ]


def test_a_time_loop_exchanges_the_mismatch_and_nothing_else():
    lowering = distspmd.lower(steps.to_sdfg(), {"y": (4,), "x": (4,)})
    inside = [m for m in lowering.memlets if not m.from_caller and not m.to_caller]
    assert inside
    for memlet in inside:
        for rank in range(4):  # two neighbours, an element each
            assert memlet.solution.plan.received(rank) <= 2 * 8
    assert {m.data for m in lowering.memlets if m.from_caller} == {"x", "y"}


def test_a_stencil_of_five_points_exchanges_its_halo_without_corners_in_place():
    sdfg = five_points.to_sdfg()
    lowering = distspmd.lower(sdfg, {"x": (2, 2), "y": (2, 2)})
    inside = [m for m in lowering.memlets if not m.from_caller and not m.to_caller]
    assert {m.solution.plan.redistribution.in_place for m in inside} == {True}
    for data in "xy":
        received = [
            sum(m.solution.plan.received(rank) for m in inside if m.data == data)
            for rank in range(4)
        ]
        assert received == [8 * (a + b) for a, b in ((5, 4), (5, 4), (5, 4), (5, 4))]
    for memlet in inside:
        assert not any(step.traffic.copied.any() for step in memlet.solution.plan.steps)
    assert not [name for name in lowering.sdfg.arrays if "copy" in name or "part" in name]


def test_a_stencil_follows_its_neighbour_over_the_inside_of_an_array():
    lowering = distspmd.lower(five_points.to_sdfg(), {"y": (4, 1)})
    assert {space.name: space.parts for space in lowering.spaces} == {"x": (4, 1), "y": (4, 1)}
    inside = [m for m in lowering.memlets if not m.from_caller and not m.to_caller]
    for memlet in inside:
        for rank in range(4):
            assert memlet.solution.plan.received(rank) <= 2 * 12 * 8


def test_what_a_loop_chooses_is_asked_for_and_no_more():
    lowering = distspmd.lower(elimination.to_sdfg(), {"x": (4, 1)})
    (fetch,) = lowering.fetches
    assert fetch.data == "x"
    assert fetch.inspection == "k"
    assert not [m for m in lowering.memlets if not m.from_caller and not m.to_caller]


def test_what_a_loop_chooses_of_what_nobody_writes_is_copied_once():
    lowering = distspmd.lower(rows_in_turn.to_sdfg(), {"y": (4,)})
    assert not lowering.fetches
    assert {m.times for m in lowering.memlets} == {1}


def test_operands_are_reduced_before_they_are_used():
    lowering = distspmd.lower(reduced_then_used.to_sdfg(), {"s": (3, 2)})
    assert any("partial(sum)" in line for line in moved(lowering))
    partial = next(m for m in lowering.memlets if "partial" in m.layouts)
    assert not partial.to_caller


# --- in place ---


def layout(text: str, **mesh: int) -> Layout:
    return Layout.parse(text, Mesh(**mesh))


def made(use_layout: Layout, *, write: bool) -> Use:
    kind = Write if write else Read
    return kind(None, "x", use_layout, ())  # type: ignore[arg-type]


def test_reads_are_in_place_where_each_rank_holds_its_box():
    tiles, halos = (
        layout("[3{i}12]", i=4),
        layout("boxes[12]{0: 0:4; 1: 2:7; 2: 5:10; 3: 8:12}", i=4),
    )
    assert in_place(made(tiles, write=False), halos)
    assert not in_place(made(halos, write=False), tiles)
    assert in_place(made(tiles, write=False), layout("[12]", i=4))
    assert not in_place(made(tiles, write=False), Layout.root((12,)))


def test_writes_are_in_place_where_no_other_rank_holds_what_is_written():
    tiles, halos = (
        layout("[3{i}12]", i=4),
        layout("boxes[12]{0: 0:4; 1: 2:7; 2: 5:10; 3: 8:12}", i=4),
    )
    assert in_place(made(tiles, write=True), tiles)
    assert not in_place(made(tiles, write=True), halos)
    assert not in_place(made(tiles, write=True), layout("[12]", i=4))
    assert in_place(made(layout("[12]", i=4), write=True), layout("[12]", i=4))


def test_a_write_by_one_rank_of_what_two_hold_is_not_in_place():
    one = layout("boxes[12]{0: 0:12}", i=2)
    assert not in_place(made(one, write=True), layout("[12]", i=2))
    assert in_place(made(one, write=True), one)


def test_operands_are_never_in_place():
    partial = Layout(Mesh(i=2), (4,), layout("[4]", i=2).splits, partial=Partial("sum", ("i",)))
    assert not in_place(made(partial, write=True), layout("[4]", i=2))


@given(
    boxes=st.lists(
        st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=3),
        min_size=2,
        max_size=2,
    )
)
def test_in_place_leaves_no_stale_replica(boxes):
    written, held = (
        Layout.of_boxes(Mesh(i=3), (6,), [((min(b), max(b)),) for b in sides]) for sides in boxes
    )
    if not in_place(made(written, write=True), held):
        return
    for element in range(6):
        at = ((element, element + 1),)
        writers = {r for r in range(3) if intervals.contains(written.box(r), at)}
        holders = {r for r in range(3) if intervals.contains(held.box(r), at)}
        assert not writers or writers == holders


@pytest.mark.parametrize("parts", [(1, 1), (2, 1), (1, 2), (2, 2), (3, 2)])
def test_the_home_moves_no_more_than_any_other_candidate(parts):
    """What the chosen homes of a chain move is at most what they would move through the root."""
    sdfg = dace.SDFG("pair")
    for name in "xyz":
        sdfg.add_array(name, [6, 4], dace.float64, transient=name == "y")
    first, second = sdfg.add_state("first"), sdfg.add_state("second")
    sdfg.add_edge(first, second, dace.InterstateEdge())
    for state, source, target in ((first, "x", "y"), (second, "y", "z")):
        state.add_mapped_tasklet(
            f"to_{target}",
            {"i": "0:6", "j": "0:4"},
            {"_in": dace.Memlet(f"{source}[i, j]")},
            "_out = _in + 1",
            {"_out": dace.Memlet(f"{target}[i, j]")},
            external_edges=True,
        )
    lowering = distspmd.lower(sdfg, {"y": parts, "z": (2, 2)})
    inside = [m for m in lowering.memlets if m.data == "y"]
    received = sum(m.solution.plan.received(rank) for m in inside for rank in range(6))
    assert received <= 6 * 4 * 8
    assert bool(inside) == (parts != (2, 2))


def parts_in_turn(x: Any, y: Any) -> None:
    """Each iteration has another part of two arrays, and is a space of its own."""
    for i, name in enumerate("ab" * 40):
        if name == "a":
            y[i + 1 : -1] += x[: -i - 2]
        else:
            x[i + 1 :] *= 1.5


def test_of_many_parts_of_an_array_those_that_are_used_most_may_be_its_home():
    weights = {name: number % 50 for number, name in enumerate(map(str, range(100)))}
    kept = most_used(weights)
    assert len(kept) == MOST_USED
    assert kept == sorted(kept, key=int)
    assert min(weights[name] for name in kept) == 50 - MOST_USED // 2
    assert most_used({"a": 1.0, "b": 2.0}) == ["a", "b"]
    n = 1 << 20
    program = numpy_program(parts_in_turn, np.ones(n), np.ones(n), host="refuse")
    lowering = distspmd.lower(program, ranks=3)
    assert len(lowering.spaces) >= 80
    assert all(len(home.over) <= 2 * (MOST_USED + 1) for home in lowering.homes)
    homes = {home.data: home.layout for home in lowering.homes}
    assert max(homes[name].volume(rank) for name in "xy" for rank in range(3)) < n / 2
