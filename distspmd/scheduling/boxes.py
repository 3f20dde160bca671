"""Boxes of all ranks under many candidates at once: arrays of bounds, and what readers lack.

A stack has the shape (candidates, ranks, dimensions, 2); the box of a rank that holds nothing has
zeros for all its bounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Stack = NDArray[np.int64]
"""Bounds: (candidates, ranks, dimensions, 2)."""
Counts = NDArray[np.int64]

_AT_ONCE = 1 << 16
"""Intervals that are intersected in one call of NumPy."""


def emptied(bounds: Stack) -> Stack:
    """The stack with zeros for the bounds of boxes that hold nothing, in place."""
    bounds[(bounds[..., 1] <= bounds[..., 0]).any(axis=-1)] = 0
    return bounds


def volumes(bounds: Stack) -> Counts:
    """Elements of each box."""
    found: Counts = (bounds[..., 1] - bounds[..., 0]).prod(axis=-1)
    return found


def hull(a: Stack, b: Stack) -> Stack:
    """The smallest boxes with the elements of both."""
    low = np.minimum(a[..., 0], b[..., 0])
    high = np.maximum(a[..., 1], b[..., 1])
    both = np.stack([low, high], axis=-1)
    nothing_in_a, nothing_in_b = volumes(a) == 0, volumes(b) == 0
    both[nothing_in_a] = b[nothing_in_a]
    both[nothing_in_b] = a[nothing_in_b]
    return both


def hull_of_ranks(bounds: Stack) -> Stack:
    """The smallest box with those of all ranks, of each candidate: (candidates, dimensions, 2)."""
    held = (volumes(bounds) > 0)[..., None]
    low = np.where(held, bounds[..., 0], np.iinfo(np.int64).max).min(axis=1)
    high = np.where(held, bounds[..., 1], 0).max(axis=1)
    return np.stack([np.minimum(low, high), high], axis=-1)


def common(a: Stack, b: Stack) -> Counts:
    """Elements in both boxes of each pair of candidates and rank: (in a, in b, ranks)."""
    rows, ranks = len(a), a.shape[1]
    found = np.ones((rows, len(b), ranks), np.int64)
    step = max(1, _AT_ONCE // max(1, len(b) * ranks))
    mine, theirs = (np.ascontiguousarray(np.moveaxis(each, (2, 3), (0, 1))) for each in (a, b))
    for begin in range(0, rows, step):
        product = found[begin : begin + step]
        high, low = np.empty_like(product), np.empty_like(product)
        for (first, past), (their_first, their_past) in zip(mine, theirs, strict=True):
            np.minimum(past[begin : begin + step, None], their_past[None], out=high)
            np.maximum(first[begin : begin + step, None], their_first[None], out=low)
            high -= low
            product *= np.maximum(high, 0, out=high)
    return found


def apart(a: Stack, b: Stack) -> NDArray[np.bool_]:
    """Whether boxes with something in them do not even touch the others: (candidates, ranks)."""
    gap = np.maximum(a[..., 0] - b[..., 1], b[..., 0] - a[..., 1]) > 0
    found: NDArray[np.bool_] = gap.any(axis=-1) & (volumes(a) > 0)
    return found


def common_with_one(bounds: Stack, boxes: Stack) -> Counts:
    """Elements that each box has in common with one box: (boxes, candidates, ranks)."""
    different, of = distinct(boxes)
    shape = (len(different), bounds.shape[1], *boxes.shape[1:])
    return common(np.broadcast_to(different[:, None], shape), bounds)[of]


def distinct(stack: Stack) -> tuple[Stack, NDArray[np.int64]]:
    """The different candidates of a stack, and the number of each one among them."""
    keys: dict[bytes, int] = {}
    of = np.array([keys.setdefault(each.tobytes(), len(keys)) for each in stack], np.int64)
    first = [int(np.flatnonzero(of == number)[0]) for number in range(len(keys))]
    return stack[first], of


def different_tiles(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """The tiles of one candidate that are not empty, each once."""
    held = bounds[volumes(bounds) > 0]
    if not len(held):
        return held
    rows = np.ascontiguousarray(held.reshape(len(held), -1))
    packed = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
    _, first = np.unique(packed.reshape(-1), return_index=True)
    return held[np.sort(first)]
