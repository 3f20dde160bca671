"""Relations of layouts, of all ranks at once: what lies within what, and what tiles cover together.

Nothing here compares tiles in pairs: elements are counted in a grid of the borders of all tiles.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Numbers
from distspmd.layouts.layout import Layout

_MOST_CELLS = 1 << 22
"""Of a grid of borders; irregular tiles that have more are taken away one by one."""


def on_ranks(layout: Layout, ranks: int) -> Numbers:
    """Boxes of the first ranks, (ranks, dimensions, 2): zeros where a rank holds nothing."""
    found = np.zeros((ranks, len(layout.extents), 2), np.int64)
    common = min(ranks, layout.ranks)
    found[:common] = layout.bounds[:common]
    found[volumes(found) == 0] = 0
    return found


def volumes(bounds: Numbers) -> Numbers:
    """Elements of each box."""
    found: Numbers = np.maximum(bounds[..., 1] - bounds[..., 0], 0).prod(axis=-1)
    return found


def common(a: Numbers, b: Numbers) -> Numbers:
    """The elements in both of each pair of boxes."""
    low = np.maximum(a[..., 0], b[..., 0])
    return np.stack([low, np.maximum(np.minimum(a[..., 1], b[..., 1]), low)], axis=-1)


def hull(a: Numbers, b: Numbers) -> Numbers:
    """The smallest box with the elements of both, of each pair."""
    low, high = np.minimum(a[..., 0], b[..., 0]), np.maximum(a[..., 1], b[..., 1])
    both: Numbers = np.stack([low, high], axis=-1)
    nothing_in_a, nothing_in_b = volumes(a) == 0, volumes(b) == 0
    both[nothing_in_b] = a[nothing_in_b]
    both[nothing_in_a] = b[nothing_in_a]
    return both


def near_hull(boxes: Iterable[Numbers]) -> Numbers:
    """The hulls of the first boxes and of those near them, of all ranks.

    Others are near whose hulls with them have no more elements than both apart: halos are, and the
    far end of an array, that a rank reads because its boundary is periodic, is not.
    """
    remaining = iter(boxes)
    found = next(remaining)
    for other in remaining:
        both = hull(found, other)
        if int(volumes(both).sum()) <= int(volumes(found).sum() + volumes(other).sum()):
            found = both
    return found


def kept(source: Layout, target: Layout) -> Numbers:
    """Elements that each rank has in both layouts."""
    ranks = min(source.ranks, target.ranks)
    return volumes(common(source.bounds[:ranks], target.bounds[:ranks]))


def lies_within(inner: Layout, outer: Layout) -> bool:
    """Whether each rank holds its box of one layout in another one, too."""
    if inner is outer:
        return True
    mine, other = inner.bounds, on_ranks(outer, inner.ranks)
    inside = (other[..., 0] <= mine[..., 0]) & (mine[..., 1] <= other[..., 1])
    return bool((inside.all(axis=1) | (inner.volumes == 0)).all())


def scattered(operands: Layout) -> Iterator[Layout]:
    """Layouts in which each rank has a part of its tile: that of its operand, as a value.

    One for each dimension of which the tiles have parts for all operands.
    """
    if operands.partial is None or operands.partial.axes is None:
        return
    count = math.prod(operands.mesh[axis] for axis in operands.partial.axes)
    for dimension in range(len(operands.extents) if count > 1 else 0):
        bounds = in_pieces(operands.bounds, dimension, operands.operands, count)
        if bounds is not None:
            yield Layout.of_bounds(operands.mesh, operands.extents, bounds)


def in_pieces(bounds: Numbers, dimension: int, piece: Numbers, count: int) -> Numbers | None:
    """Boxes cut into so many pieces along a dimension, one of each; None if there are not so many.

    Args:
        bounds: of the boxes.
        dimension: that is cut.
        piece: which of its pieces each box becomes.
        count: of pieces.
    """
    low, high = bounds[:, dimension].T
    length = -(-(high - low) // count)
    if (high - low).max(initial=0) < count:
        return None
    found = bounds.copy()
    found[:, dimension, 0] = np.minimum(low + piece * length, high)
    found[:, dimension, 1] = np.minimum(found[:, dimension, 0] + length, high)
    return found


def covers_all(layout: Layout) -> bool:
    """Whether tiles surely leave out no element: blocks cut the array, whatever their halos."""
    return layout.splits is not None and not layout.is_block_cyclic


def covers(layout: Layout, boxes: Numbers) -> bool:
    """Whether each element of some boxes is in a tile of the layout."""
    if covers_all(layout):
        return True
    return bool((covered_by(layout, boxes) == volumes(boxes)).all())


def covered(boxes: Numbers, tiles: Numbers) -> Numbers:
    """How many elements of each box are in at least one of the tiles."""
    tiles = tiles[volumes(tiles) > 0]
    if not len(boxes) or not len(tiles):
        return np.zeros(len(boxes), np.int64)
    cuts = [
        np.unique(np.concatenate([boxes[:, d].ravel(), tiles[:, d].ravel()]))
        for d in range(boxes.shape[1])
    ]
    if math.prod(map(len, cuts)) > _MOST_CELLS:
        return _covered_one_by_one(boxes, tiles)
    sums = _sums_before(_painted(tiles, cuts), cuts)
    return _within_corners(sums, _places(boxes, cuts))


_FEW_PAIRS = 1 << 12
"""Of boxes and tiles, which are compared faster one by one than in a grid of borders."""


def covered_by(layout: Layout, boxes: Numbers) -> Numbers:
    """How many elements of each box are in at least one tile of a layout."""
    tiles = layout.tiles.bounds
    if len(boxes) * len(tiles) <= _FEW_PAIRS and are_tiles_disjoint(layout):
        found: Numbers = volumes(common(boxes[:, None], tiles[None])).sum(axis=1)
        return found
    return covered(boxes, tiles)


def _places(boxes: Numbers, cuts: Sequence[Numbers]) -> Numbers:
    """Numbers of the cuts at which boxes begin and end."""
    ends = [np.searchsorted(cut, boxes[:, d]) for d, cut in enumerate(cuts)]
    return np.stack(ends, axis=1)


def _painted(tiles: Numbers, cuts: Sequence[Numbers]) -> NDArray[np.bool_]:
    """Which cells between cuts some tile has; tiles are not empty."""
    counts = np.zeros([len(cut) for cut in cuts], np.int64)
    places = _places(tiles, cuts)
    for corner in itertools.product((0, 1), repeat=len(cuts)):
        at = tuple(places[:, d, end] for d, end in enumerate(corner))
        np.add.at(counts, at, -1 if sum(corner) % 2 else 1)
    for d in range(len(cuts)):
        np.cumsum(counts, axis=d, out=counts)
    found: NDArray[np.bool_] = counts > 0
    return found


def _sums_before(painted: NDArray[np.bool_], cuts: Sequence[Numbers]) -> Numbers:
    """Of each crossing of cuts the painted elements before it in all dimensions."""
    sums = painted.astype(np.int64)
    for d, cut in enumerate(cuts):
        shape = [1] * len(cuts)
        shape[d] = -1
        sums *= np.diff(cut, append=cut[-1]).reshape(shape)
    for d in range(len(cuts)):
        np.cumsum(sums, axis=d, out=sums)
    return np.pad(sums, [(1, 0)] * len(cuts))[tuple(slice(-1) for _ in cuts)]


def _within_corners(sums: Numbers, places: Numbers) -> Numbers:
    found = np.zeros(len(places), np.int64)
    for corner in itertools.product((0, 1), repeat=places.shape[1]):
        at = tuple(places[:, d, end] for d, end in enumerate(corner))
        sign = -1 if (len(corner) - sum(corner)) % 2 else 1
        found += sign * sums[at]
    found[(places[:, :, 1] <= places[:, :, 0]).any(axis=1)] = 0
    return found


def _covered_one_by_one(boxes: Numbers, tiles: Numbers) -> Numbers:
    """The same of tiles that have no borders in common."""
    found = np.zeros(len(boxes), np.int64)
    for number, box in enumerate(boxes):
        near = tiles[volumes(common(box[None], tiles)) > 0]
        inside = common(box[None], near)
        found[number] = intervals.union_volume(
            [tuple((lo, hi) for lo, hi in each) for each in inside.tolist()]
        )
    return found


def are_disjoint(boxes: Numbers) -> bool:
    """Whether no element is in two of the boxes."""
    held = volumes(boxes)
    boxes, held = boxes[held > 0], held[held > 0]
    if len(boxes) < 2:
        return True
    whole = np.stack([boxes[:, :, 0].min(axis=0), boxes[:, :, 1].max(axis=0)], axis=1)
    return bool(covered(whole[None], boxes)[0] == held.sum())


@functools.lru_cache(maxsize=1 << 14)
def are_tiles_disjoint(layout: Layout) -> bool:
    """Whether no element is in two different tiles."""
    if layout.tiles.sides is not None:
        return all((side[1:, 0] >= side[:-1, 1]).all() for side in layout.tiles.sides)
    return are_disjoint(layout.tiles.bounds)


def joined_exactly(layouts: Sequence[Layout]) -> tuple[Layout, ...]:
    """Fewer layouts for the same elements: two become their hull where that has no others."""
    found: list[Layout] = []
    for layout in dict.fromkeys(layouts):
        for position, other in enumerate(found):
            hulls = hull(other.bounds, layout.bounds)
            both = other.volumes + layout.volumes - kept(other, layout)
            if (volumes(hulls) == both).all():
                found[position] = Layout.of_bounds(layout.mesh, layout.extents, hulls)
                break
        else:
            found.append(layout)
    return tuple(found) if len(found) == len(layouts) else joined_exactly(found)


def stretched(layout: Layout) -> Layout:
    """The layout with its outermost tiles stretched to the edges of the array."""
    held = layout.volumes > 0
    if not held.any():
        return layout
    bounds = layout.bounds.copy()
    for d, extent in enumerate(layout.extents):
        low, high = bounds[:, d, 0], bounds[:, d, 1]
        first, last = low[held].min(), high[held].max()
        low[held & (low == first)] = 0
        high[held & (high == last)] = extent
    return Layout.of_bounds(layout.mesh, layout.extents, bounds)


def shared_out(layout: Layout) -> Layout:
    """Less than the tiles: ranks with the same tile share it out, along its longest dimension.

    One that splits evenly comes first.
    """
    bounds = layout.bounds.copy()
    groups: dict[bytes, list[int]] = {}
    for rank in np.flatnonzero(layout.volumes):
        groups.setdefault(bounds[rank].tobytes(), []).append(int(rank))
    for ranks in groups.values():
        box = bounds[ranks[0]]
        sides = box[:, 1] - box[:, 0]
        if len(ranks) == 1 or not len(sides):
            continue
        d = max(range(len(sides)), key=lambda d: (sides[d] % len(ranks) == 0, sides[d]))
        size = -(-int(sides[d]) // len(ranks))
        low = np.minimum(box[d, 0] + size * np.arange(len(ranks)), box[d, 1])
        bounds[ranks, d, 0], bounds[ranks, d, 1] = low, np.minimum(low + size, box[d, 1])
    return Layout.of_bounds(layout.mesh, layout.extents, bounds)


def leaves_stale(written: Layout, held: Layout) -> bool:
    """Whether another rank holds what a rank writes, and does not write it, too."""
    if written is held:
        return False
    if covers_all(written):
        return not lies_within(held, written)
    ranks = max(written.ranks, held.ranks)
    mine, own = on_ranks(written, ranks), on_ranks(held, ranks)
    both = np.unique(np.concatenate([mine, own], axis=1).reshape(ranks, -1), axis=0)
    both = both.reshape(len(both), -1, 2)
    mine, own = both[:, : both.shape[1] // 2], both[:, both.shape[1] // 2 :]
    # of what each rank holds all that is written anywhere has to be what it writes itself
    anywhere = covered(own, written.tiles.bounds)
    return bool((anywhere != volumes(common(own, mine))).any())
