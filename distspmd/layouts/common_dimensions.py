"""Layouts of the same elements, in C order, whose dimensions are split in other ways."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from distspmd.layouts.intervals import Box, Interval, empty, is_empty
from distspmd.layouts.layout import Layout


def in_common_dimensions(a: Layout, b: Layout) -> tuple[Layout, Layout] | None:
    """Both layouts in dimensions into which those of both can be split, boxes included.

    ``[4{x}12, 5]`` and ``[1{x}3, 4, 5]`` are both ``[1{x}3, 4, 5]``.

    Returns:
        Layouts of equal extents; None if there are no such dimensions, or if the part of some rank
        is no box in them.
    """
    extents = _common_extents(a.extents, b.extents)
    if extents is None:
        return None
    first, second = _split(a, extents), _split(b, extents)
    return None if first is None or second is None else (first, second)


def _common_extents(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...] | None:
    """The coarsest extents that split both; None if there are none, or no elements."""
    strides = [
        {*itertools.accumulate(reversed(extents), lambda x, y: x * y, initial=1)}
        for extents in (a, b)
    ]
    if 0 in strides[0] | strides[1] or max(strides[0]) != max(strides[1]):
        return None
    steps = sorted(strides[0] | strides[1], reverse=True)
    if any(large % small for large, small in itertools.pairwise(steps)):
        return None
    return tuple(large // small for large, small in itertools.pairwise(steps)) or (1,)


def _split(layout: Layout, extents: tuple[int, ...]) -> Layout | None:
    """A layout in dimensions that split its own; None if a box is none there."""
    boxes = [_split_box(box, layout.extents, extents) for box in layout.boxes]
    found = [box for box in boxes if box is not None]
    if len(found) < len(boxes):
        return None
    return Layout.of_boxes(layout.mesh, extents, found, layout.partial)


def _split_box(box: Box, whole: Sequence[int], extents: Sequence[int]) -> Box | None:
    if is_empty(box):
        return empty(len(extents))
    rest, found = list(extents), list[Interval]()
    for interval, extent in zip(box, whole, strict=True):
        inner = extent
        while inner > 1:
            outer, inner = inner, inner // rest.pop(0)
            pair = _split_interval(interval, outer, inner)
            if pair is None:
                return None
            found.append(pair[0])
            interval = pair[1]
    return tuple(found) or ((0, 1),)


def _split_interval(
    interval: Interval, extent: int, inner: int
) -> tuple[Interval, Interval] | None:
    """The part of a dimension as a product of rows of ``inner`` elements, and of part of a row."""
    lo, hi = interval
    row = lo // inner
    if hi <= (row + 1) * inner:  # in one row
        return (row, row + 1), (lo - row * inner, hi - row * inner)
    if lo % inner or hi % inner:
        return None
    return (row, hi // inner), (0, inner)
