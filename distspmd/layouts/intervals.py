"""Boxes: products of half-open integer intervals, the only shape in which data moves."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Interval = tuple[int, int]
"""Half-open ``(lo, hi)``; empty where ``hi <= lo``."""

Box = tuple[Interval, ...]
"""One interval per dimension of an array, in global indices."""

Numbers = NDArray[np.int64]
"""Bounds, ranks or counts of many at once."""


def bounds(box: Box) -> Iterator[int]:
    """Both ends of each interval, one after the other."""
    return (end for interval in box for end in interval)


def is_empty(box: Box) -> bool:
    """Whether the box holds no element."""
    return any(hi <= lo for lo, hi in box)


def shape(box: Box) -> tuple[int, ...]:
    """Extent of the box in each dimension, never negative."""
    return tuple(max(0, hi - lo) for lo, hi in box)


def volume(box: Box) -> int:
    """Number of elements in the box."""
    return math.prod(shape(box))


def whole(extents: Sequence[int]) -> Box:
    """Box of a whole array."""
    return tuple((0, extent) for extent in extents)


def empty(ndim: int) -> Box:
    """Box of no elements."""
    return ((0, 0),) * ndim


def intersect(a: Box, b: Box) -> Box:
    """Elements in both boxes; the canonical empty box where there is none."""
    common = tuple(
        (max(a_lo, b_lo), min(a_hi, b_hi)) for (a_lo, a_hi), (b_lo, b_hi) in zip(a, b, strict=True)
    )
    return empty(len(common)) if is_empty(common) else common


def hull(a: Box, b: Box) -> Box:
    """The smallest box with the elements of both."""
    if is_empty(a) or is_empty(b):
        return b if is_empty(a) else a
    return tuple(
        (min(a_lo, b_lo), max(a_hi, b_hi)) for (a_lo, a_hi), (b_lo, b_hi) in zip(a, b, strict=True)
    )


def contains(outer: Box, inner: Box) -> bool:
    """Whether each element of ``inner`` is in ``outer``; the empty box is in every box."""
    return is_empty(inner) or all(
        o_lo <= i_lo and i_hi <= o_hi
        for (o_lo, o_hi), (i_lo, i_hi) in zip(outer, inner, strict=True)
    )


def subtract(a: Box, b: Box) -> tuple[Box, ...]:
    """Elements of ``a`` outside ``b``, as disjoint boxes (at most two for each dimension)."""
    common = intersect(a, b)
    if is_empty(a):
        return ()
    if is_empty(common):
        return (a,)
    pieces: list[Box] = []
    rest = list(a)
    for dimension, (lo, hi) in enumerate(common):
        a_lo, a_hi = rest[dimension]
        pieces += [
            (*rest[:dimension], piece, *rest[dimension + 1 :])
            for piece in ((a_lo, lo), (hi, a_hi))
            if piece[0] < piece[1]
        ]
        rest[dimension] = (lo, hi)
    return tuple(pieces)


def subtract_all(box: Box, others: Sequence[Box]) -> tuple[Box, ...]:
    """Elements of ``box`` in none of ``others``, as disjoint boxes."""
    left: tuple[Box, ...] = () if is_empty(box) else (box,)
    for other in others:
        left = tuple(itertools.chain.from_iterable(subtract(piece, other) for piece in left))
    return left


def union_volume(boxes: Sequence[Box]) -> int:
    """Number of elements in at least one of the boxes."""
    held = [*dict.fromkeys(box for box in boxes if not is_empty(box))]
    if not held:
        return 0
    cuts = [np.unique(np.array([box[d] for box in held])) for d in range(len(held[0]))]
    if math.prod(map(len, cuts)) > 64 * len(held) + 1_000_000:  # too many cells to paint
        seen: list[Box] = []
        for box in held:
            seen += subtract_all(box, seen)
        return sum(map(volume, seen))
    painted = np.zeros([len(cut) - 1 for cut in cuts], dtype=bool)
    for box in held:
        ends = (np.searchsorted(cut, side) for cut, side in zip(cuts, box, strict=True))
        painted[tuple(slice(lo, hi) for lo, hi in ends)] = True
    sizes = functools.reduce(np.multiply.outer, map(np.diff, cuts))
    return int(sizes[painted].sum())


def shift(box: Box, origin: Sequence[int]) -> Box:
    """The box in the indices of a tile whose first element has the global index ``origin``."""
    return tuple((lo - at, hi - at) for (lo, hi), at in zip(box, origin, strict=True))


def slices(box: Box) -> tuple[slice, ...]:
    """The box as a NumPy index."""
    return tuple(slice(lo, hi) for lo, hi in box)


def cut_box(box: Box, limit: int) -> Iterator[Box]:
    """Cut a box into boxes of at most ``limit`` elements, in row-major order.

    Cuts run along the leading dimensions, so that each piece stays as contiguous as the box.
    """
    if volume(box) <= limit:
        yield box
        return
    dimension = next(d for d, extent in enumerate(shape(box)) if extent > 1)
    row = volume(box) // (box[dimension][1] - box[dimension][0])
    step = max(1, limit // row)
    lo, hi = box[dimension]
    for start in range(lo, hi, step):
        piece = (*box[:dimension], (start, min(hi, start + step)), *box[dimension + 1 :])
        yield from cut_box(piece, limit)


def box_text(box: Box) -> str:
    """The box as written in messages: ``0:5, 3:8``."""
    return ", ".join(f"{lo}:{hi}" for lo, hi in box)
