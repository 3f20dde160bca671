from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import extents_of_arrays, layouts, meshes, partial_layouts, splits_over

from distspmd.errors import LayoutError, MeshError
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout, Partial, Split
from distspmd.layouts.mesh import Mesh

MESH = Mesh(x=2, y=3)


@given(extents_of_arrays().flatmap(layouts))
def test_the_text_of_a_layout_reads_back(layout):
    again = Layout.parse(str(layout), layout.mesh)
    assert str(again) == str(layout)
    assert again.same_tiles(layout)
    if layout.splits is not None:
        assert again == layout


@given(extents_of_arrays().flatmap(lambda extents: partial_layouts(extents, "max")))
def test_the_text_of_a_partial_layout_reads_back(layout):
    again = Layout.parse(str(layout), layout.mesh)
    assert again.partial == layout.partial
    assert again.holders() == layout.holders()


@given(st.data(), extents_of_arrays(), meshes())
def test_the_tiles_of_a_product_of_blocks_cover_the_array_once_for_each_replica(
    data, extents, mesh
):
    splits = data.draw(splits_over(mesh.names, extents))
    layout = Layout(mesh, extents, splits=splits)
    counts = np.zeros(extents, int)
    for rank in mesh:
        counts[intervals.slices(layout.box(rank))] += 1
    parts = np.prod([split.parts(mesh) for split in splits], dtype=int)
    assert (counts == mesh.size // parts).all()


@given(st.data(), extents_of_arrays(), meshes())
def test_boxes_that_are_a_product_of_blocks_are_recognised(data, extents, mesh):
    layout = Layout(mesh, extents, splits=data.draw(splits_over(mesh.names, extents)))
    found = Layout.of_boxes(mesh, extents, layout.boxes)
    assert found.splits is not None
    assert found.same_tiles(layout)


def test_the_last_tiles_of_an_uneven_split_are_smaller_or_empty():
    layout = Layout.parse("[2{x}5]", Mesh(x=4))
    assert layout.boxes == (((0, 2),), ((2, 4),), ((4, 5),), ((5, 5),))


def test_axes_are_written_minor_to_major():
    layout = Layout.parse("[1{x,y}6]", MESH)
    order = [layout.box(MESH.rank({"x": x, "y": y}))[0][0] for y in range(3) for x in range(2)]
    assert order == list(range(6))


def test_ranks_outside_the_mesh_hold_nothing():
    layout = Layout.root((4, 4))
    assert layout.box(0) == ((0, 4), (0, 4))
    assert intervals.is_empty(layout.box(1))
    assert layout.volume(7) == 0
    assert layout.nbytes(0, 8) == 128


def test_a_layout_prints_splits_replicas_and_partial_axes():
    layout = Layout(MESH, (5, 8), (Split(5, ("x",)), Split(8)), partial=Partial("sum", ("y",)))
    assert str(layout) == "[3{x}5, 8] + partial(sum){y}"
    assert str(replace(layout, partial=Partial("min"))) == "[3{x}5, 8] + partial(min)"


def test_boxes_print_and_ranks_that_are_not_named_hold_nothing():
    layout = Layout.parse("boxes[10]{0: 0:4; 1: 3:10}", Mesh(x=3))
    assert layout.boxes == (((0, 4),), ((3, 10),), ((0, 0),))
    assert str(layout) == "boxes[10]{0: 0:4; 1: 3:10}"


def test_ranks_that_agree_on_the_partial_axes_hold_the_same_operand():
    layout = Layout.parse("[8] + partial(sum){y}", MESH)
    assert [layout.operand(rank) for rank in MESH] == [0, 1, 2, 0, 1, 2]
    every = Layout.parse("[8] + partial(sum)", MESH)
    assert [every.operand(rank) for rank in MESH] == list(range(6))


def test_holders_group_the_ranks_of_equal_boxes():
    layout = Layout.parse("[4{x}8]", MESH)
    assert layout.holders() == {((0, 4),): (0, 1, 2), ((4, 8),): (3, 4, 5)}


def test_same_tiles_looks_at_boxes_and_not_at_axes():
    assert Layout.parse("[4{x}8]", Mesh(x=2)).same_tiles(Layout.parse("[4{a}8]", Mesh(a=2)))
    assert not Layout.parse("[4{x}8]", Mesh(x=2)).same_tiles(Layout.parse("[8]", Mesh(x=2)))


def test_operands_are_never_the_same_tiles_as_values():
    partial = Layout.parse("[8] + partial(sum)", Mesh(x=2))
    assert not partial.same_tiles(replace(partial, partial=None))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3{x}12", r"write \[tile\{axes\}extent"),
        ("[x12]", "'x12' is not tile"),
        ("[2{x}12]", "the tile of '2{x}12' is 2, but 12 over 2 parts gives 6"),
        ("[6{z}12]", "no axis 'z' in the mesh x=2,y=3: write one of x, y"),
        ("[6{x}12, 4{x}8]", "axis 'x' is used twice"),
        ("[6{x}12] + partial(sum){x}", "axis 'x' is used twice"),
        ("[12] + partial(mean)", "no reduction 'mean'; there are sum"),
        ("[12] + partial(sum){z}", "no axis 'z'"),
        ("[12,,4]", "nothing between two ','"),
        ("[]", "at least one dimension"),
        ("boxes[10]{9: 0:4}", "ranks below 6"),
        ("boxes[10]{-1: 0:4}", "ranks below 6"),
        ("boxes[10]{0: 0-4}", "write boxes"),
        ("boxes[10]{0: 0:4, 0:4}", r"outside the array \(10,\)"),
        ("boxes[10]{0: 0:14}", r"rank 0 holds \[0:14\], outside the array \(10,\)"),
    ],
)
def test_text_that_is_no_layout_is_refused(text, message):
    with pytest.raises(LayoutError, match=message):
        Layout.parse(text, MESH)


def test_a_layout_has_splits_or_boxes():
    with pytest.raises(LayoutError, match="needs either splits or boxes"):
        Layout(MESH, (4,))


def test_a_negative_extent_is_refused():
    with pytest.raises(LayoutError, match="no negative extent"):
        Layout(MESH, (-1,), splits=(Split(-1),))


def test_a_layout_needs_a_box_for_each_rank():
    with pytest.raises(LayoutError, match="1 boxes are given for 6 ranks"):
        Layout(MESH, (4,), explicit=(((0, 4),),))


def test_a_scalar_needs_a_dimension():
    with pytest.raises(LayoutError, match=r"Give a scalar the extents \(1,\)"):
        Layout.root(())


def test_an_operand_of_a_rank_that_is_not_there_is_refused():
    with pytest.raises(MeshError, match="no rank 6"):
        Layout.parse("[8] + partial(sum){y}", MESH).operand(6)
