import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import extents_of_arrays, layouts

from distspmd.layouts import intervals, relations
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh


def two() -> st.SearchStrategy[tuple[Layout, Layout]]:
    """Two layouts of one array, on meshes of their own."""
    return extents_of_arrays().flatmap(lambda e: st.tuples(layouts(e), layouts(e)))


@pytest.fixture(params=["in a grid of borders", "one by one"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "one by one":
        monkeypatch.setattr(relations, "_MOST_CELLS", 0)


@pytest.mark.usefixtures("_way")
def test_elements_that_tiles_cover_are_those_that_painting_finds():
    random = np.random.default_rng(0)
    for _ in range(50):
        extents = random.integers(1, 9, random.integers(1, 4))
        low = random.integers(0, extents, (7, len(extents)))
        high = low + random.integers(0, extents - low + 1)
        boxes = np.stack([low, high], axis=2)
        painted = np.zeros(extents, bool)
        for box in boxes[:4].tolist():
            painted[intervals.slices(box)] = True
        found = relations.covered(boxes, boxes[:4])
        assert found.tolist() == [painted[intervals.slices(b)].sum() for b in boxes.tolist()]


@given(two())
def test_what_lies_within_what_is_found_for_each_rank(pair):
    inner, outer = pair
    wanted = all(intervals.contains(outer.box(rank), box) for rank, box in enumerate(inner.boxes))
    assert relations.lies_within(inner, outer) == wanted


@given(two())
def test_a_layout_covers_what_is_left_of_no_box(pair):
    layout, other = pair
    held = list(layout.holders())
    wanted = not any(intervals.subtract_all(box, held) for box in other.boxes)
    assert relations.covers(layout, other.bounds) == wanted


@given(two())
def test_what_others_hold_is_stale_unless_they_write_it_too(pair):
    written, held = pair
    wanted = not all(
        intervals.contains(written.box(holder), common)
        for box in written.holders()
        for other, ranks in held.holders().items()
        for common in (intervals.intersect(box, other),)
        if not intervals.is_empty(common)
        for holder in ranks
    )
    assert relations.leaves_stale(written, held) == wanted


@given(two())
def test_hulls_of_pairs_are_those_of_boxes(pair):
    a, b = pair
    ranks = min(a.ranks, b.ranks)
    found = relations.hull(a.bounds[:ranks], b.bounds[:ranks])
    wanted = [intervals.hull(a.box(rank), b.box(rank)) for rank in range(ranks)]
    assert [tuple(map(tuple, box)) for box in found.tolist()] == wanted


def test_outermost_tiles_are_stretched_and_idle_ranks_are_not():
    boxes = [((1, 4),), ((4, 9),), ((0, 0),)]
    found = relations.stretched(Layout.of_boxes(Mesh(x=3), (12,), boxes))
    assert found.boxes == (((0, 4),), ((4, 12),), ((0, 0),))
