import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import extents_of_arrays, meshes, splits_over

from distspmd.errors import LayoutError
from distspmd.layouts import notations
from distspmd.layouts.enumerate import layouts
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh

MESH = Mesh(x=2, y=3, z=2)


@given(st.data(), extents_of_arrays(), meshes())
def test_mesh_axes_and_specs_read_back(data, extents, mesh):
    layout = Layout(mesh, extents, splits=data.draw(splits_over(mesh.names, extents)))
    assert notations.from_mesh_axes(notations.mesh_axes(layout), extents, mesh) == layout
    assert notations.from_mesh_axes(str(notations.mesh_axes(layout)), extents, mesh) == layout
    assert notations.from_spec(notations.spec(layout), extents, mesh) == layout


def test_placements_read_back_where_the_axes_are_in_the_order_of_the_mesh():
    found = 0
    for layout in layouts((12, 12), MESH, several=True):
        try:
            text = notations.placements(layout)
        except LayoutError:
            continue
        assert notations.from_placements(text, (12, 12), MESH) == layout
        found += 1
    assert found == 3**3


def test_major_axes_come_first_in_the_notations_of_others():
    layout = Layout.parse("[6{x}12, 2{z,y}12]", MESH)
    assert notations.mesh_axes(layout) == [[0], [1, 2]]
    assert notations.spec(layout) == ("x", ("y", "z"))
    assert notations.placements(layout) == ("S(0)", "S(1)", "S(1)")


def test_dimensions_that_are_left_out_are_not_split():
    assert notations.from_mesh_axes("[[1]]", (6, 4), MESH) == Layout.parse("[2{y}6, 4]", MESH)
    assert notations.from_spec(("y",), (6, 4), MESH) == Layout.parse("[2{y}6, 4]", MESH)


def test_partial_placements_read_and_write():
    layout = notations.from_placements(["P(max)", "Shard(dim=-1)", "Replicate()"], (6, 6), MESH)
    assert layout == Layout.parse("[6, 2{y}6] + partial(max){x}", MESH)
    assert notations.placements(layout) == ("P(max)", "S(1)", "R")
    assert notations.from_placements(["Partial(sum)", "R", "R"], (6,), MESH).partial.axes == ("x",)


@pytest.mark.parametrize(
    ("read", "given", "message"),
    [
        (notations.from_mesh_axes, "[[3]]", "there is no axis 3"),
        (notations.from_mesh_axes, "[0", r"write a list for each dimension, \[\[0\], \[1, 2\]\]"),
        (notations.from_mesh_axes, "[[], [], [0]]", "3 dimensions, but the array has 2"),
        (notations.from_mesh_axes, "[[0], [0]]", "axis 'x' is used twice"),
        (notations.from_spec, ("a",), "no axis 'a'"),
        (notations.from_placements, ("R",), "1 placements for the 3 axes"),
        (notations.from_placements, ("S(2)", "R", "R"), "the array has 2 dimensions"),
        (notations.from_placements, ("X", "R", "R"), r"write S\(0\), R or P\(sum\)"),
        (notations.from_placements, ("P(sum)", "P(max)", "R"), "partial with two reductions"),
        (notations.from_placements, ("S(0)", "S(0)", "R"), "axis by axis, into other tiles"),
    ],
)
def test_what_is_not_of_a_notation_is_refused(read, given, message):
    with pytest.raises(LayoutError, match=message):
        read(given, (7, 6), MESH)


def test_a_layout_that_a_notation_lacks_is_refused():
    for text in ("boxes[6]{0: 0:4; 1: 4:6}", "[6] + partial(sum){x}"):
        with pytest.raises(LayoutError):
            notations.spec(Layout.parse(text, MESH))
    with pytest.raises(LayoutError, match="only the axis order of the mesh"):
        notations.placements(Layout.parse("[2{y,z}12]", Mesh(y=3, z=2)))
