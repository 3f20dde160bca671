"""What crosses the borders of nodes when layouts become others, for all pairs at once.

The ranks of a node are numbered one after the other. What any of them holds need not come from
another node, and what several want comes once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distspmd.scheduling import boxes
from distspmd.scheduling.boxes import Stack

Elements = NDArray[np.float64]


class Nodes:
    """Layouts as nodes of so many ranks see them.

    Args:
        bounds: boxes of all ranks: (layouts, ranks, dimensions, 2).
        size: ranks of a node.
    """

    def __init__(self, bounds: Stack, size: int) -> None:
        self.bounds, self.size = bounds, size
        self.ranks = bounds.shape[1]
        self.node = np.arange(self.ranks) // size
        self.count = -(-self.ranks // size)
        self.first = self._first()
        self.once = np.where(self.first, boxes.volumes(bounds), 0)
        """Elements of each rank's tile, of equal ones of a node those of the first alone."""

    def _first(self) -> NDArray[np.bool_]:
        """Whether no rank before it on its node has the same tile: (layouts, ranks)."""
        found = np.ones(self.bounds.shape[:2], bool)
        for back in range(1, min(self.size, self.ranks)):
            same = (self.bounds[:, back:] == self.bounds[:, :-back]).all(axis=(2, 3))
            found[:, back:] &= ~(same & (self.node[back:] == self.node[:-back])[None])
        return found

    def per_node(self, elements: NDArray[np.generic]) -> Elements:
        """Sums over the ranks of each node, along the last dimension."""
        pad = [(0, 0)] * (elements.ndim - 1) + [(0, self.count * self.size - self.ranks)]
        padded = np.pad(elements.astype(np.float64), pad)
        return np.asarray(padded.reshape(*padded.shape[:-1], self.count, self.size).sum(axis=-1))

    def spread(self) -> Elements:
        """On how many nodes there is each tile, on the average: (layouts,)."""
        tiles = [max(1, len(boxes.different_tiles(each))) for each in self.bounds]
        held = (self.first & (boxes.volumes(self.bounds) > 0)).sum(axis=1)
        return np.asarray(np.maximum(1.0, held / np.array(tiles)))


def entering(source: Nodes, target: Nodes, whole: Stack, alone: NDArray[np.bool_]) -> Elements:
    """Elements that enter the busiest node, or leave the only one that has any, for each pair.

    Args:
        source, target: layouts of the same ranks.
        whole: the hull of all tiles of each source.
        alone: whether one rank has all of a source.
    """
    wanted = boxes.common_with_one(target.bounds, whole)
    near = np.zeros(wanted.shape, np.int64)
    for place in range(min(source.size, source.ranks)):
        other = np.minimum(source.node * source.size + place, source.ranks - 1)
        there = (source.node * source.size + place < source.ranks)[None] & source.first[:, other]
        neighbour = source.bounds[:, other] * there[:, :, None, None]
        near += boxes.common(neighbour, target.bounds)
    far = np.maximum(wanted - near, 0) * target.first[None]
    nodes = source.per_node(far)
    found: Elements = np.where(alone[:, None], nodes.sum(axis=2), nodes.max(axis=2))
    return found


def combining(source: Nodes) -> Elements:
    """Elements that enter the busiest node as operands of equal tiles are combined: (sources,)."""
    spread = source.spread()
    busiest = source.per_node(source.once).max(axis=1)
    return np.asarray(busiest * (spread - 1) / spread)
