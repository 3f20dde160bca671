"""Halos, layouts on some of the ranks, other meshes, and reductions of a user."""

import numpy as np
import pytest

import distspmd
from distspmd.errors import LayoutError
from distspmd.layouts import reductions
from distspmd.layouts.layout import Layout, Split
from distspmd.layouts.mesh import Mesh
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.simulator import simulate, tiles_of
from distspmd.plans.solver import Refusal
from distspmd.solvers import SOLVERS

MESH = Mesh(x=4, y=2)


def moved(source, target, array):
    """Simulate the plan, which must be sound, and compare with slices."""
    plan = distspmd.plan(source, target, dtype=array.dtype)
    distspmd.verify(plan)
    found = simulate(plan, tiles_of(source, array))
    for tile, wanted in zip(found, tiles_of(target, array), strict=False):
        assert (tile == wanted).all()
    return plan


def test_a_halo_widens_tiles_as_far_as_the_array_reaches():
    layout = Layout.parse("[3{x}10~2]", MESH)
    boxes = [layout.box(rank) for rank in range(0, 8, 2)]
    assert boxes == [((0, 5),), ((1, 8),), ((4, 10),), ((7, 10),)]
    assert str(layout) == "[3{x}10~2]"
    assert Layout.parse(str(layout), MESH) == layout


def test_an_empty_tile_has_no_halo():
    layout = Layout.parse("[1{x}3~1]", MESH)
    assert layout.box(7) == ((3, 3),)
    split = Split(3, ("x",), 1)
    assert [split.interval(MESH, {"x": x, "y": 0}) for x in range(4)] == [
        layout.box(2 * x)[0] for x in range(4)
    ]


@pytest.mark.parametrize("target", ["[3{x}12, 8]", "[12, 4{y}8~1]"])
def test_halos_are_filled_and_dropped(target):
    array = np.arange(96, dtype="int32").reshape(12, 8)
    one, other = (Layout.parse(text, MESH) for text in ("[3{x}12~1, 8]", target))
    moved(one, other, array)
    moved(other, one, array)


def test_a_halo_is_received_from_the_neighbours_alone():
    array = np.arange(96, dtype="int32").reshape(12, 8)
    plan = moved(Layout.parse("[3{x}12, 8]", MESH), Layout.parse("[3{x}12~1, 8]", MESH), array)
    assert plan.received(0) == 8 * 4
    assert plan.received(2) == 2 * 8 * 4


@pytest.mark.parametrize("array", [np.arange(96.0).reshape(12, 8)])
def test_a_halo_is_filled_in_place_around_the_tile(array):
    source, target = (Layout.parse(text, MESH) for text in ("[3{x}12, 4{y}8]", "[3{x}12~1, 4{y}8]"))
    move = Redistribution(source, target, array.dtype, in_place=True)
    for solver in SOLVERS:
        plan = solver.plan(move)
        if isinstance(plan, Refusal):
            continue
        distspmd.verify(plan)
        found = simulate(plan, tiles_of(source, array))
        assert all((a == b).all() for a, b in zip(found, tiles_of(target, array), strict=True))
        assert not any(step.traffic.copied.any() for step in plan.steps)
        assert plan.received(2) == 2 * 4 * 8
        assert plan.peak(2) == 5 * 4 * 8 + 2 * 2 * 4 * 8  # the tile, and what is on its way
    assert "=>" in str(move)


def test_operands_are_never_turned_into_values_in_place():
    partial = Layout.parse("[12] + partial(sum){x}", MESH)
    with pytest.raises(LayoutError, match="a storage each"):
        Redistribution(partial, Layout.parse("[12]", MESH), "f8", in_place=True)


def test_a_layout_on_some_ranks_and_another_mesh():
    array = np.arange(24, dtype="int32")
    few = Layout.on_ranks(Layout.parse("[12{a}24]", Mesh(a=2)), [1, 5], MESH)
    assert few.box(5) == ((12, 24),)
    assert few.volume(0) == 0
    moved(few, Layout.parse("[4{b}24]", Mesh(b=6)), array)
    moved(Layout.parse("[4{b}24]", Mesh(b=6)), few, array)
    moved(Layout.root((24,)), few, array)


@pytest.mark.parametrize(
    ("ranks", "message"),
    [([1], "needs 2 different ranks"), ([1, 1], "different ranks"), ([1, 9], "has 8 ranks")],
)
def test_ranks_that_a_mesh_lacks_are_refused(ranks, message):
    with pytest.raises(LayoutError, match=message):
        Layout.on_ranks(Layout.parse("[12{a}24]", Mesh(a=2)), ranks, MESH)


def test_a_ufunc_of_a_user_reduces():
    reductions.define("gcd", np.gcd, 0)
    mesh = Mesh(x=3)
    source = Layout.parse("[4] + partial(gcd)", mesh)
    tiles = [np.array([12, 18, 5, 0]) * k for k in (2, 3, 5)]
    for target in ("[4]", "[2{x}4]"):
        plan = distspmd.plan(source, Layout.parse(target, mesh), dtype="int64")
        distspmd.verify(plan)
        found = simulate(plan, tiles)
        whole = np.gcd.reduce(tiles)
        for rank in mesh:
            lo, hi = plan.redistribution.target.box(rank)[0]
            assert (found[rank] == whole[lo:hi]).all()


def test_what_is_no_reduction_is_refused():
    for name, ufunc in (("sum", np.add), ("a b", np.add), ("sin", np.sin), ("hypot2", np.arctan2)):
        with pytest.raises(LayoutError):
            reductions.define(name, ufunc)
