"""Recognition: the product of blocks that some boxes are, if they are one.

The tile of rank 0 says how large tiles are, and the first tile along each mesh axis how far they
are apart; what is left to try are axes along which all but the first rank hold nothing. Each of
these splits some dimension whose end is reached before; in which order they do means the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts.dimension import Split
from distspmd.layouts.intervals import Numbers
from distspmd.layouts.mesh import Mesh

_MOST_TRIED = 2_000
"""Products of blocks: of more the boxes are written one by one, which means the same."""


def recognise(
    mesh: Mesh, extents: tuple[int, ...], bounds: Numbers, taken: frozenset[str]
) -> tuple[Split, ...] | None:
    """Splits that give these boxes, if any, up to how empty boxes are written.

    Args:
        mesh: of the ranks.
        extents: of the array.
        bounds: the box of each rank: (ranks, dimensions, 2).
        taken: axes that split nothing.
    """
    held: NDArray[np.bool_] = np.all(bounds[:, :, 1] > bounds[:, :, 0], axis=1)
    whole = tuple(Split(extent) for extent in extents)
    if not held.any():
        return whole if 0 in extents else None
    if not held[0] or bounds[0, :, 0].any():
        return None
    free = [name for name in mesh.names if name not in taken and mesh[name] > 1]
    known = _Held(mesh, extents, bounds, held, tuple(free))
    for splits in itertools.islice(known.splits(0, frozenset()), _MOST_TRIED):
        if known.agrees(splits):
            return splits
    return None


class _Held:
    """Boxes of ranks, of which rank 0 holds the first tile."""

    def __init__(
        self,
        mesh: Mesh,
        extents: tuple[int, ...],
        bounds: Numbers,
        held: NDArray[np.bool_],
        free: tuple[str, ...],
    ) -> None:
        self.mesh, self.extents, self.bounds, self.held = mesh, extents, bounds, held
        sizes = [math.prod(mesh.shape[place + 1 :]) for place in range(len(mesh.axes))]
        strides = dict(zip(mesh.names, sizes, strict=True))
        self.next = {name: strides[name] for name in free}
        """Of each axis that may split something the second rank along it."""

    def splits(self, dimension: int, used: frozenset[str]) -> Iterator[tuple[Split, ...]]:
        """Splits of the last dimensions that give each held rank its interval."""
        if dimension == len(self.extents):
            yield ()
            return
        for axes in self._axes(dimension, used):
            split, own = Split(self.extents[dimension], axes), self.bounds[:, dimension]
            if split.tile(self.mesh) != own[0, 1]:
                continue
            low, high = self._intervals(split)
            if ((own[:, 0] == low) & (own[:, 1] == high))[self.held].all():
                for others in self.splits(dimension + 1, used.union(axes)):
                    yield (split, *others)

    def _axes(self, dimension: int, used: frozenset[str]) -> Iterator[tuple[str, ...]]:
        """Axes, minor first, that could split a dimension; the fewest first."""
        tile = int(self.bounds[0, dimension, 1])
        apart: list[tuple[int, str]] = []
        open_axes: list[str] = []
        for name, rank in self.next.items():
            if not self.held[rank]:
                open_axes += [name] * (name not in used)
            elif low := int(self.bounds[rank, dimension, 0]):
                apart.append((low, name))
        stride = 1
        for low, name in sorted(apart):
            if name in used or low != stride * tile:
                return
            stride *= self.mesh[name]
        first = tuple(name for _, name in sorted(apart))
        most = len(open_axes) if stride * tile >= self.extents[dimension] else 0
        is_last = dimension == len(self.extents) - 1
        for count in range(len(open_axes) if is_last else 0, most + 1):
            for last in itertools.combinations(open_axes, count):
                yield first + last

    def _intervals(self, split: Split) -> tuple[Numbers, Numbers]:
        """What each rank has of a dimension."""
        tile, index = split.tile(self.mesh), np.zeros(self.mesh.size, np.int64)
        for axis in reversed(split.axes):
            index = index * self.mesh[axis] + self.mesh.grid[axis]
        low = np.minimum(index * tile, split.extent)
        return low, np.minimum(low + tile, split.extent)

    def agrees(self, splits: Sequence[Split]) -> bool:
        """Whether the same ranks hold something."""
        found = np.ones(self.mesh.size, bool)
        for split in splits:
            low, high = self._intervals(split)
            found &= high > low
        return bool((found == self.held).all())
