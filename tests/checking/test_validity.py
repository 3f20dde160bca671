"""Sets of boxes, and what ranks hold, beside arrays of truth values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from distspmd.checking.validity import Boxes, Validity, common, united, without
from distspmd.layouts.intervals import Box, slices

EXTENTS = (5, 4)
INTERVALS = [st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted) for n in EXTENTS]
BOXES: st.SearchStrategy[Box] = st.tuples(*(each.map(tuple) for each in INTERVALS))


def painted(boxes: Boxes) -> np.ndarray:
    found = np.zeros(EXTENTS, int)
    for box in boxes:
        found[slices(box)] += 1
    assert found.max() <= 1, "boxes overlap"
    return found.astype(bool)


def of(boxes: list[Box]) -> Boxes:
    found: Boxes = ()
    for box in boxes:
        found = united(found, box)
    return found


@given(st.lists(BOXES, max_size=4), st.lists(BOXES, max_size=4))
def test_sets_of_boxes_are_sets_of_elements(some: list[Box], others: list[Box]) -> None:
    mine, theirs = of(some), of(others)
    assert (painted(without(mine, others)) == painted(mine) & ~painted(theirs)).all()
    assert (painted(common(mine, theirs)) == painted(mine) & painted(theirs)).all()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "arrive", "change"]),
        st.sampled_from(["home", "copy"]),
        st.tuples(BOXES, BOXES),
    ),
    max_size=6,
)


@given(STEPS)
def test_what_ranks_hold_is_as_new_as_the_last_write(
    steps: list[tuple[str, str, tuple[Box, Box]]],
) -> None:
    """Each element has a number, which a write raises; a rank holds it if it has the last one."""
    validity, newest = Validity(2), np.zeros(EXTENTS, int)
    held = {(store, rank): np.full(EXTENTS, -1) for store in ("home", "copy") for rank in (0, 1)}
    for kind, store, boxes in steps:
        if kind == "arrive":
            validity.arrive(store, "x", boxes)
        else:
            validity.write(store, "x", boxes, exact=kind == "write")
            written = np.zeros(EXTENTS, bool)
            for box in boxes:
                written[slices(box)] = True
            old = {key: tile == newest for key, tile in held.items()}
            newest = newest + written
        for rank, box in enumerate(boxes):
            tile, part = held[store, rank], slices(box)
            if kind != "change":
                tile[part] = newest[part]
            else:  # what it held, it holds after the change
                tile[part] = np.where(old[store, rank][part], newest[part], tile[part])
    for (store, rank), tile in held.items():
        assert (painted(validity.holds(store, rank, "x")) == (tile == newest)).all()


def test_a_join_holds_what_both_ways_hold() -> None:
    one, other = Validity(1), Validity(1)
    for validity, lo in ((one, 0), (other, 1)):
        validity.write("home", "x", [((0, 4),)], exact=True)
        validity.write("copy", "x", [((lo, 3),)], exact=True)
    joined = one.join(other)
    assert joined.holds("copy", 0, "x") == (((1, 3),),)
    assert joined.holds_all_of(joined)
    assert not joined.holds_all_of(one)


def test_what_one_way_has_not_written_is_held_as_the_other_way_has_it() -> None:
    one, other = Validity(1), Validity(1)
    one.write("home", "x", [((0, 4),)], exact=True)
    other.write("home", "x", [((0, 1),)], exact=True)
    assert one.join(other).lacking("home", 0, "x", ((0, 4),)) is None
    assert other.join(one).lacking("home", 0, "x", ((0, 4),)) is None
    other.write("copy", "x", [((2, 3),)], exact=True)
    assert one.join(other).lacking("home", 0, "x", ((0, 4),)) == ((2, 3),)
