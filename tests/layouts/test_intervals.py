from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distspmd.layouts import intervals

EXTENT = 6


def boxes(ndim=2):
    side = st.tuples(st.integers(-1, EXTENT), st.integers(-1, EXTENT))
    return st.tuples(*[side] * ndim)


def painted(*some):
    found = np.zeros((EXTENT + 2,) * 2, int)
    for box in some:
        if not intervals.is_empty(box):
            found[intervals.slices(tuple((lo + 1, hi + 1) for lo, hi in box))] += 1
    return found


@given(boxes())
def test_volume_counts_the_elements(box):
    assert intervals.volume(box) == painted(box).sum()
    assert (intervals.volume(box) == 0) == intervals.is_empty(box)


@given(boxes(), boxes())
def test_intersect_has_the_elements_of_both(a, b):
    assert (painted(intervals.intersect(a, b)) == painted(a) * painted(b)).all()


@given(boxes(), boxes())
def test_subtract_cuts_disjoint_boxes_out_of_the_first(a, b):
    pieces = intervals.subtract(a, b)
    assert (painted(*pieces) == painted(a) * (1 - painted(b))).all()
    assert not any(map(intervals.is_empty, pieces))
    assert len(pieces) <= 2 * len(a)


@given(boxes(), st.lists(boxes(), max_size=4))
def test_subtract_all_leaves_what_no_other_has(box, others):
    left = intervals.subtract_all(box, others)
    assert (painted(*left) == painted(box) * (painted(*others) == 0)).all()


@given(boxes(), boxes())
def test_contains_agrees_with_painting(outer, inner):
    assert intervals.contains(outer, inner) == (painted(inner) <= painted(outer)).all()


@given(st.lists(boxes(), max_size=6))
def test_union_volume_counts_each_element_once(some):
    assert intervals.union_volume(some) == (painted(*some) > 0).sum()


def test_union_volume_needs_no_memory_for_scattered_boxes():
    some = [((i, i + 1),) * 4 for i in range(100)]
    assert intervals.union_volume(some) == 100


@given(boxes(), st.integers(1, 40))
def test_cut_gives_the_box_in_small_pieces_in_row_major_order(box, limit):
    pieces = list(intervals.cut_box(box, limit))
    assert all(intervals.volume(piece) <= limit for piece in pieces)
    assert (painted(*pieces) == painted(box)).all()
    held = [[lo for lo, _ in piece] for piece in pieces]
    assert held == sorted(held)


def test_cut_leaves_a_small_box_alone():
    assert list(intervals.cut_box(((2, 4), (0, 8)), 16)) == [((2, 4), (0, 8))]


def test_cut_cuts_rows_before_it_cuts_within_a_row():
    assert list(intervals.cut_box(((0, 2), (0, 8)), 8)) == [((0, 1), (0, 8)), ((1, 2), (0, 8))]


def test_shifted_boxes_index_a_tile():
    assert intervals.shift(((3, 5), (7, 9)), (3, 4)) == ((0, 2), (3, 5))


def test_boxes_of_different_dimensions_are_refused():
    with pytest.raises(ValueError, match="zip"):
        intervals.intersect(((0, 1),), ((0, 1), (0, 1)))


def test_text_writes_half_open_intervals():
    assert intervals.box_text(((0, 5), (3, 8))) == "0:5, 3:8"


def test_pieces_of_a_subtraction_are_disjoint():
    pieces = intervals.subtract(((0, 6), (0, 6)), ((2, 4), (2, 4)))
    assert len(pieces) == 4
    assert all(intervals.volume(intervals.intersect(a, b)) == 0 for a, b in combinations(pieces, 2))
