"""The part of an iteration space that each rank runs, in global indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distspmd.analysis.iteration_spaces import ParameterRange
from distspmd.layouts.intervals import Box
from distspmd.layouts.mesh import Mesh


def ends_of_tiles(
    extent: ParameterRange, index: NDArray[np.int64], parts: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """First and last value of tiles of a range of numbers, and which of them have any.

    Args:
        extent: the range.
        index: the numbers of the tiles.
        parts: how many tiles there are.
    """
    begin, step, iterations = int(extent.begin), int(extent.step), extent.iterations
    tile = -(-extent.divisible // parts)
    if extent.frame is None:
        low = np.minimum(index * tile, iterations)
        high = np.minimum(low + tile, iterations)
    else:
        first, end = extent.frame
        low, high = first + index * tile, np.minimum(first + (index + 1) * tile, end)
        is_last = (high == end) & (low < end)
        low, high = np.where(index == 0, begin, low), np.where(is_last, int(extent.end), high)
        low = np.clip(-(-(low - begin) // step), 0, iterations)
        high = np.maximum(low, np.clip(-(-(high - begin) // step), 0, iterations))
    return begin + step * low, begin + step * (high - 1), high > low


@dataclass(frozen=True)
class Tiling:
    """The part of an iteration space that each rank of a mesh runs, in global indices.

    The rank at coordinate ``r`` of a dimension with ``n`` iterations in ``p`` parts runs the
    iterations ``[r b, min((r + 1) b, n))`` with ``b = ceil(n / p)``; none where that is empty.
    A range with a frame is cut by the blocks of that: each rank runs what lies in its block, and
    the first and the last one also what lies before and behind the frame.
    Ranks that differ only on axes that split no parameter run the same iterations.

    Attributes:
        mesh: the ranks.
        splits: axes that split each parameter, minor first.
        lower: first value of each parameter on each rank, shape (ranks, parameters).
        upper: end of its values, not included; at most ``lower`` where the rank is idle.
        last: last value; meaningless where the rank is idle.
    """

    mesh: Mesh
    splits: tuple[tuple[str, ...], ...]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    last: NDArray[np.int64]

    @classmethod
    def of(
        cls, ranges: Sequence[ParameterRange], mesh: Mesh, splits: Sequence[tuple[str, ...]]
    ) -> Tiling:
        """Tile ranges of numbers."""
        shape = (mesh.size, len(ranges))
        lower, upper, last = (np.zeros(shape, np.int64) for _ in range(3))
        for d, (extent, split) in enumerate(zip(ranges, splits, strict=True)):
            parts, index = 1, np.zeros(mesh.size, np.int64)
            for axis in reversed(split):
                index = index * mesh[axis] + mesh.grid[axis]
                parts *= mesh[axis]
            lower[:, d], last[:, d], busy = ends_of_tiles(extent, index, parts)
            upper[:, d] = np.where(busy, last[:, d] + 1, lower[:, d])
        return cls(mesh, tuple(splits), lower, upper, last)

    @classmethod
    def of_boxes(
        cls, mesh: Mesh, splits: Sequence[tuple[str, ...]], boxes: Sequence[Box]
    ) -> Tiling:
        """Tiles that are given as the box of each rank, of parameters that step by one."""
        bounds = np.array(boxes, np.int64).reshape(mesh.size, len(splits), 2)
        lower, upper = bounds[..., 0], bounds[..., 1]
        idle = np.any(upper <= lower, axis=1)
        upper = np.where(idle[:, None], lower, upper)
        return cls(mesh, tuple(splits), lower, upper, upper - 1)

    @property
    def boxes(self) -> list[Box]:
        """From the first to the last value of each parameter, by ranks."""
        pairs = zip(self.lower.tolist(), self.upper.tolist(), strict=True)
        return [tuple(zip(low, high, strict=True)) for low, high in pairs]

    def iterations(self, ranges: Sequence[ParameterRange]) -> NDArray[np.float64]:
        """Iterations of each rank."""
        steps = np.array([int(extent.step) for extent in ranges], np.int64)
        lengths = ((self.last - self.lower) // steps + 1).astype(np.float64)
        return np.where(self.idle, 0.0, lengths.prod(axis=1))

    @property
    def parts(self) -> tuple[int, ...]:
        """Number of tiles along each parameter."""
        return tuple(math.prod(self.mesh[axis] for axis in split) for split in self.splits)

    @property
    def idle(self) -> NDArray[np.bool_]:
        """Whether each rank runs no iteration."""
        found: NDArray[np.bool_] = np.any(self.upper <= self.lower, axis=1)
        return found
