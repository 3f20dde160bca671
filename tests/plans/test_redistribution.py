import numpy as np
import pytest
from hypothesis import given
from strategies import redistributions

from distspmd.errors import LayoutError
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.redistribution import Redistribution

MESH = Mesh(x=2, y=3)


@given(redistributions())
def test_the_bound_is_what_brute_force_over_elements_says(move):
    for rank in range(move.ranks):
        missing = sum(
            _must_receive(move, rank, element) for element in _elements(move.target.box(rank))
        )
        assert move.bound.received(rank) == missing * move.dtype.itemsize


def _must_receive(move, rank, element):
    """Whether an operand of the element (the value is the only one) is on other ranks alone."""
    here, there = set(), set()
    for holder, box in enumerate(move.source.boxes):
        if all(lo <= i < hi for i, (lo, hi) in zip(element, box, strict=True)):
            (here if holder == rank else there).add(move.source.operand(holder))
    return bool(there - here)


def _elements(box):
    lows = [lo for lo, _ in box]
    return (tuple(np.add(lows, at)) for at in np.ndindex(intervals.shape(box)))


def test_memory_is_that_of_the_larger_tile():
    rows, every = Layout.parse("[4{x}8]", MESH), Layout.parse("[8]", MESH)
    assert Redistribution(rows, every, "float64").bound.memory(0) == 64
    assert Redistribution(every, rows, "float64").bound.memory(0) == 64


def test_a_redistribution_prints_both_sides():
    source = Layout.parse("[4{x}8] + partial(sum){y}", MESH)
    move = Redistribution(source, Layout.root((8,)), "float32", accumulate=True)
    assert str(move) == "[4{x}8] + partial(sum){y} +> [8] of float32"
    assert (move.ranks, move.reduction) == (6, "sum")


def test_layouts_of_different_arrays_are_refused():
    with pytest.raises(LayoutError, match=r"different arrays: \(8,\) and \(9,\)"):
        Redistribution(Layout.root((8,)), Layout.root((9,)), "int8")


def test_operands_are_not_added_to_what_was_there():
    partial = Layout.parse("[8] + partial(sum)", MESH)
    with pytest.raises(LayoutError, match="operands are not added to what was there"):
        Redistribution(partial, partial, "int8", accumulate=True)


def test_an_order_of_complex_numbers_is_refused():
    source = Layout.parse("[8] + partial(max)", MESH)
    with pytest.raises(LayoutError, match="no max of complex64 values"):
        Redistribution(source, Layout.root((8,)), "complex64")


def test_values_do_not_accumulate():
    with pytest.raises(LayoutError, match="only operands of a reduction accumulate"):
        Redistribution(Layout.root((8,)), Layout.root((8,)), "int8", accumulate=True)
