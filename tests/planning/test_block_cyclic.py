import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import meshes, splits_over

import distspmd
from distspmd.errors import LayoutError
from distspmd.layouts.layout import Layout, Partial, Split
from distspmd.layouts.mesh import Mesh
from distspmd.planning.block_cyclic import cover, plan_block_cyclic
from distspmd.plans.simulator import simulate

MESH = Mesh(x=2, y=3)


def indices(layout, rank):
    """What a rank holds of each dimension, in the order in which it keeps them."""
    at = layout.mesh.coordinates(rank)
    for split in layout.splits:
        part, parts = split.index(layout.mesh, at), split.parts(layout.mesh)
        block = split.block or split.tile(layout.mesh) or 1
        yield [i for i in range(split.extent) if i // block % parts == part]


def cut(layout, array):
    return [array[np.ix_(*indices(layout, rank))] for rank in range(layout.ranks)]


@st.composite
def dealt_layouts(draw, extents, blocks):
    """Splits of which some are dealt."""
    mesh = draw(meshes())
    splits = [
        Split(split.extent, split.axes, block=draw(st.sampled_from([0, *of])))
        for split, of in zip(draw(splits_over(mesh.names, extents)), blocks, strict=True)
    ]
    return Layout(mesh, tuple(extents), splits=tuple(splits))


@given(st.data())
def test_the_text_of_a_dealt_layout_parses_to_it(data):
    extents = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=3))
    layout = data.draw(dealt_layouts(extents, [[1, 2, 3, 5, 64]] * len(extents)))
    assert Layout.parse(str(layout), layout.mesh) == layout
    for rank in layout.mesh:
        assert layout.shape(rank) == tuple(map(len, indices(layout, rank)))
        assert layout.volume(rank) == np.prod(layout.shape(rank))


def test_a_block_is_written_behind_the_extent():
    layout = Layout.parse("[6{x}10/3, 4/2]", MESH)
    assert layout.splits == (Split(10, ("x",), block=3), Split(4, block=2))
    assert [layout.shape(rank) for rank in (0, 3)] == [(6, 4), (4, 4)]


@given(st.lists(st.integers(2, 4), max_size=3), st.integers(0, 60), st.integers(0, 60))
def test_boxes_of_digits_cover_a_run_of_indices_once(radices, lo, hi):
    weights = [*itertools.accumulate([1, *radices], lambda a, b: a * b)][::-1]
    found = [
        sum(digit * weight for digit, weight in zip(digits, weights, strict=True))
        for box in cover(lo, hi, weights)
        for digits in itertools.product(*(range(*side) for side in box))
    ]
    assert sorted(found) == [*range(lo, hi)]


@given(st.data())
def test_what_is_dealt_goes_anywhere_and_back(data):
    """The proof holds, and each element comes to its place in memory, by its storage."""
    extents = data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=2))
    blocks = [data.draw(st.sampled_from([[1], [2], [3], [5]])) for _ in extents]
    source, target = (data.draw(dealt_layouts(extents, blocks)) for _ in range(2))
    try:
        plan = plan_block_cyclic(source, target, "int64")
    except LayoutError as error:
        assert "neither is a multiple of the other" in str(error)  # noqa: PT017
        return
    distspmd.verify(plan.proof)
    array = np.arange(np.prod(extents)).reshape(extents)
    tiles, wanted = cut(source, array), cut(target, array)
    for message in plan.merged.steps[0].messages:
        payload = _taken(plan, 0, message.sender, tiles[message.sender], message.box)
        held = _taken(plan, 1, message.receiver, wanted[message.receiver], message.box)
        assert payload == held
    for rank, tile in enumerate(wanted):
        mine = [m for m in plan.merged.steps[0].messages if m.receiver == rank]
        assert sum(np.prod([hi - lo for lo, hi in m.box]) for m in mine) == tile.size


def _taken(plan, side, rank, tile, box):
    """The elements of a box of the folded array, in a rank's tile."""
    strides = [stride // tile.itemsize for stride in tile.strides]
    storage = plan.storage(side, rank, strides)
    return [
        int(
            tile.ravel()[
                np.dot(np.subtract(digits, storage.origin), storage.strides) - storage.first
            ]
        )
        for digits in itertools.product(*(range(*interval) for interval in box))
    ]


def test_a_rank_keeps_what_it_has_in_another_piece():
    source = Layout.parse("[24/2]", Mesh(x=2))
    plan = plan_block_cyclic(source, Layout.parse("[12{x}24/2]", Mesh(x=2)), "float32")
    assert plan.received(0) == plan.received(1) == 0


def test_operands_of_a_sum_may_be_dealt():
    mesh = Mesh(x=2, y=2)
    source = Layout(
        mesh, (10,), splits=(Split(10, ("x",), block=3),), partial=Partial("sum", ("y",))
    )
    plan = plan_block_cyclic(source, Layout.parse("[5{y}10]", mesh), "int64")
    distspmd.verify(plan.proof)
    tiles = [np.ones([hi - lo for lo, hi in box]) for box in plan.proof.redistribution.source.boxes]
    for rank, tile in enumerate(simulate(plan.proof, tiles)):
        assert (tile == 2).all(), rank


def test_what_has_no_fold_and_no_boxes_is_refused():
    with pytest.raises(LayoutError, match="6 and of 4 elements, of which neither is a multiple"):
        plan_block_cyclic(
            Layout.parse("[12{x}24/2]", MESH), Layout.parse("[8{y}24/2]", MESH), "float32"
        )
    with pytest.raises(LayoutError, match="different arrays"):
        plan_block_cyclic(Layout.parse("[4/2]", MESH), Layout.parse("[5]", MESH), "float32")
    with pytest.raises(LayoutError, match=r"tiles are not boxes\. Use distspmd\.redistribute"):
        Layout.parse("[12{x}24/2]", MESH).box(0)
    with pytest.raises(LayoutError, match="no halo"):
        Split(4, halo=1, block=2)
    for text in ("[12{x}24/0]", "[12{x}24/2~1]"):
        with pytest.raises(LayoutError, match="is not tile"):
            Layout.parse(text, MESH)
    with pytest.raises(LayoutError, match=r"the tile of '5{x}10/3' is 5, .* gives 6"):
        Layout.parse("[5{x}10/3]", MESH)
