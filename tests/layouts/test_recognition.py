import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import extents_of_arrays, meshes, splits_over

from distspmd.layouts import recognition
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.layouts.recognition import recognise


@given(st.data(), extents_of_arrays(), meshes())
def test_boxes_are_recognised_if_and_only_if_they_are_those_of_the_splits(data, extents, mesh):
    splits = data.draw(splits_over(mesh.names, extents))
    bounds = Layout(mesh, extents, splits=splits).bounds.copy()
    rank = data.draw(st.integers(0, mesh.size - 1))
    dimension = data.draw(st.integers(0, len(extents) - 1))
    low = data.draw(st.integers(0, extents[dimension]))
    bounds[rank, dimension] = low, data.draw(st.integers(low, extents[dimension]))
    found = recognise(mesh, extents, bounds, frozenset())
    if found is not None:
        assert Layout(mesh, extents, splits=found).same_tiles(
            Layout(
                mesh,
                extents,
                explicit=tuple(tuple((lo, hi) for lo, hi in box) for box in bounds.tolist()),
            )
        )


def test_many_axes_take_no_longer_to_recognise_than_few():
    mesh = Mesh(**{f"a{k}": 2 for k in range(10)})
    layout = Layout.parse("[1{a9,a8,a7}8, 2{a2,a1,a0}13]", mesh)
    assert str(Layout.of_bounds(mesh, layout.extents, layout.bounds)) == str(layout)
    bounds = np.zeros((mesh.size, 1, 2), np.int64)
    bounds[0] = 0, 1  # all axes split one element, in some order
    assert Layout.of_bounds(mesh, (1,), bounds).holders() == {((0, 1),): (0,)}


@pytest.mark.parametrize("extents", [(1, 1, 1), (3, 5, 7)])
def test_what_one_rank_holds_is_not_looked_at_in_all_orders_of_axes(monkeypatch, extents):
    tried = []
    known = recognition._Held._intervals
    monkeypatch.setattr(
        recognition._Held, "_intervals", lambda *given: tried.append(given) or known(*given)
    )
    mesh = Mesh(**{f"a{k}": 2 for k in range(8)})
    bounds = np.zeros((mesh.size, 3, 2), np.int64)
    bounds[0, :, 1] = extents
    splits = recognise(mesh, extents, bounds, frozenset())
    assert (splits is not None) == (extents == (1, 1, 1))
    assert len(tried) < 10


def test_equal_boxes_are_one_layout():
    boxes = [((0, 3),), ((2, 5),)]
    one, other = (Layout.of_boxes(Mesh(x=2), (5,), boxes) for _ in range(2))
    assert one is other


def test_layouts_that_travel_are_found_in_tables_of_another_process():
    layout = Layout.parse("[3{x}5, 2]", Mesh(x=2))
    hash(layout)
    program = (
        "import pickle, sys; from distspmd.layouts.layout import Layout; "
        "from distspmd.layouts.mesh import Mesh; "
        "came = pickle.loads(sys.stdin.buffer.read()); "
        "assert came in {Layout.parse('[3{x}5, 2]', Mesh(x=2))}"
    )
    subprocess.run([sys.executable, "-c", program], input=pickle.dumps(layout), check=True)
