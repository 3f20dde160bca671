import pytest
from hypothesis import given
from strategies import meshes

from distspmd.errors import MeshError
from distspmd.layouts.mesh import Mesh


@given(meshes())
def test_the_text_of_a_mesh_reads_back(mesh):
    assert Mesh.parse(str(mesh)) == mesh


@given(meshes())
def test_coordinates_and_ranks_are_inverse(mesh):
    assert [mesh.rank(mesh.coordinates(rank)) for rank in mesh] == list(range(mesh.size))


def test_the_first_axis_is_major():
    mesh = Mesh(x=4, y=6)
    assert mesh.coordinates(13) == {"x": 2, "y": 1}
    assert (mesh.size, mesh.shape, mesh.names) == (24, (4, 6), ("x", "y"))


def test_a_mesh_without_axes_has_one_rank():
    assert list(Mesh()) == [0]
    assert Mesh().coordinates(0) == {}


def test_axes_of_the_same_names_and_sizes_in_another_order_are_another_mesh():
    assert Mesh(x=2, y=3) != Mesh(y=3, x=2)


@pytest.mark.parametrize("size", [0, -1, 1.5, "2", True])
def test_a_size_that_is_no_positive_integer_is_refused(size):
    with pytest.raises(MeshError, match="a size is an integer of at least 1"):
        Mesh(x=size)


def test_a_name_that_is_no_identifier_is_refused():
    with pytest.raises(MeshError, match="not an identifier"):
        Mesh.of({"2x": 3})


@pytest.mark.parametrize("text", ["x", "x=", "x=two", "x=-1", "x=²"])
def test_text_without_a_size_is_refused(text):
    with pytest.raises(MeshError, match="is not name=size"):
        Mesh.parse(text)


def test_text_that_names_an_axis_twice_is_refused():
    with pytest.raises(MeshError, match="'x' twice"):
        Mesh.parse("x=2,x=3")


def test_an_unknown_axis_is_refused_with_those_there_are():
    with pytest.raises(MeshError, match="no axis 'z' in the mesh x=2,y=3; it has x, y"):
        Mesh(x=2, y=3)["z"]


@pytest.mark.parametrize("rank", [-1, 6])
def test_a_rank_outside_the_mesh_has_no_coordinates(rank):
    with pytest.raises(MeshError, match=f"no rank {rank} in the mesh x=2,y=3, which has 6"):
        Mesh(x=2, y=3).coordinates(rank)
