"""What it takes to bring arrays from some layouts to others: bytes and seconds of all pairs.

The bytes are those that ranks lack, which a plan of one exchange moves; the seconds are those of
:mod:`distspmd.plans.cost`, for the call that such a pair of layouts would get.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from distspmd.plans.machine import Machine
from distspmd.scheduling import boxes
from distspmd.scheduling.boxes import Counts, Sides, Stack
from distspmd.scheduling.nodes import Nodes, combining, entering

Seconds = NDArray[np.float64]
PERMUTATION = 2
"""Messages of a rank that hands its tile to another one, and gets one."""


@dataclass(frozen=True, eq=False)
class Layouts:
    """Layouts of one container on all ranks.

    Attributes:
        bounds: their boxes.
        sides: shared by all layouts whose tiles are compared.
    """

    bounds: Stack
    sides: Sides
    _last: dict[int, tuple[Layouts, Counts]] = field(default_factory=dict, repr=False)
    _nodes: dict[int, Nodes] = field(default_factory=dict, repr=False)

    def common(self, other: Layouts) -> Counts:
        """Elements that tiles have in common, for each pair and rank; the last answer is kept."""
        known = self._last.get(0)
        if known is None or known[0] is not other:
            known = other, boxes.common(self.bounds, other.bounds)
            self._last[0] = known
        return known[1]

    def forget(self) -> None:
        """Free what is kept."""
        self._last.clear()

    def __len__(self) -> int:
        return len(self.bounds)

    @cached_property
    def volumes(self) -> Counts:
        """Elements of each rank's tile: (layouts, ranks)."""
        return boxes.volumes(self.bounds)

    @cached_property
    def whole(self) -> Stack:
        """The hull of all tiles of each layout: (layouts, dimensions, 2)."""
        return boxes.hull_of_ranks(self.bounds)

    @cached_property
    def numbers(self) -> list[tuple[int, ...]]:
        """The intervals of each dimension, by number."""
        return [self.sides.of(bounds) for bounds in self.bounds]

    @cached_property
    def holders(self) -> Counts:
        """Ranks that hold anything, of each layout."""
        found: Counts = (self.volumes > 0).sum(axis=1)
        return found

    @cached_property
    def different(self) -> Counts:
        """Elements of the different tiles of each layout together."""
        return self._different[0]

    @cached_property
    def tiles(self) -> Counts:
        """Different tiles of each layout."""
        return self._different[1]

    @cached_property
    def _different(self) -> tuple[Counts, Counts]:
        found = [self.sides.different(bounds) for bounds in self.bounds]
        numbers = np.array(found, np.int64).reshape(-1, 2)
        return numbers[:, 0], numbers[:, 1]

    @cached_property
    def copies(self) -> NDArray[np.float64]:
        """Ranks that hold each tile, on the average."""
        return self.holders / np.maximum(self.tiles, 1)

    def on_nodes(self, size: int) -> Nodes:
        """As nodes of so many ranks see them."""
        if size not in self._nodes:
            self._nodes[size] = Nodes(self.bounds, size)
        return self._nodes[size]

    def select(self, which: NDArray[np.int64]) -> Layouts:
        """Some of them."""
        return Layouts(self.bounds[which], self.sides)


@dataclass(frozen=True, eq=False)
class Moved:
    """Costs of all pairs: a source in each row, a target in each column.

    Attributes:
        nbytes: that all ranks receive.
        seconds: predicted.
        copied: that all ranks copy from their own tiles.
        in_place: predicted where both are one storage, so that nothing is copied; ranks exchange
            messages then, for no collective writes into tiles that overlap.
    """

    nbytes: Counts
    seconds: Seconds
    copied: Counts
    in_place: Seconds


@dataclass
class _Moving:
    """Calls and elements of the busiest rank, and elements of the busiest node, of all pairs."""

    calls: Seconds
    elements: Seconds | Counts
    far: Seconds | None = None

    def seconds(self, itemsize: int, machine: Machine) -> Seconds:
        """Of messages and bytes; where any of them go to other nodes, all calls may wait for it."""
        latency = machine.alpha * self.calls
        moving = itemsize * machine.beta * self.elements
        if self.far is not None:
            latency = np.where(self.far > 0, machine.far_alpha * self.calls, latency)
            moving = np.maximum(moving, itemsize * machine.far_beta * self.far)
        found: Seconds = latency + moving
        return found


def within(inner: Layouts, outer: Layouts) -> NDArray[np.bool_]:
    """Whether each rank holds its box of one layout in its box of another: (outer, inner)."""
    shared = outer.common(inner)
    found: NDArray[np.bool_] = (shared == inner.volumes[None]).all(axis=2)
    return found


def move(source: Layouts, target: Layouts, itemsize: int, machine: Machine) -> Moved:
    """Bring values from each source to each target.

    Args:
        source: layouts that hold the values.
        target: layouts that want what their tiles and the source have in common.
        itemsize: bytes of an element.
        machine: what bytes and messages cost.
    """
    kept = source.common(target)
    wanted = boxes.common_with_one(target.bounds, source.whole)
    lacking = wanted - kept
    most, received = lacking.max(axis=2), lacking.sum(axis=2)
    own = ((kept > 0) | (wanted == 0) | (source.volumes[:, None] == 0)).all(axis=2)
    meets, serves = _meeting(source, target)
    alone = source.holders == 1
    sent = np.where(
        alone[:, None], target.different[None] - kept.max(axis=2), 0
    )  # else no rank sends more than the busiest receives
    exchange, calls = _calls(source, target, meets, serves, own)
    busiest = np.maximum(most, np.maximum(sent, 0))
    direct = np.maximum(busiest, np.where(alone[:, None], received, 0))  # all from one rank
    spread = alone[:, None] & (target.copies > 1)[None] & (target.tiles > 1)[None]
    busiest = busiest + np.where(spread, most, 0)  # scattered, and told to those who share a tile
    moving = _Moving(np.where(received > 0, calls, 0).astype(np.float64), busiest)
    if machine.has_nodes:
        near, far = source.on_nodes(machine.node_ranks), target.on_nodes(machine.node_ranks)
        moving.far = entering(near, far, wanted, alone)
    seconds = moving.seconds(itemsize, machine) + itemsize * machine.copy * kept.max(axis=2)
    lean = replace(moving, calls=np.where(received > 0, exchange, 0.0), elements=direct)
    return Moved(
        received * itemsize,
        seconds,
        kept.sum(axis=2) * itemsize,
        lean.seconds(itemsize, machine),
    )


def _meeting(source: Layouts, target: Layouts) -> tuple[Counts, Counts]:
    """Most source tiles that one target tile meets, and the reverse."""
    sides, shape = source.sides, (len(source), len(target))
    meets, serves = np.ones(shape, np.int64), np.ones(shape, np.int64)
    mine, theirs = np.array(source.numbers), np.array(target.numbers)
    for d in range(mine.shape[1]):
        ours, at = np.unique(mine[:, d], return_inverse=True)
        others, to = np.unique(theirs[:, d], return_inverse=True)
        there = [[sides.meeting(a, b) for b in others.tolist()] for a in ours.tolist()]
        back = [[sides.meeting(b, a) for b in others.tolist()] for a in ours.tolist()]
        meets *= np.array(there, np.int64)[np.ix_(at.reshape(-1), to.reshape(-1))]
        serves *= np.array(back, np.int64)[np.ix_(at.reshape(-1), to.reshape(-1))]
    return meets, serves


def _calls(
    source: Layouts,
    target: Layouts,
    meets: Counts,
    serves: Counts,
    own: NDArray[np.bool_],
) -> tuple[Seconds, Seconds]:
    """Messages of the busiest rank: of an exchange, and of a tree where all want the same.

    Args:
        source, target: layouts, of each pair.
        meets: most source tiles that one target tile meets.
        serves: the reverse.
        own: whether each rank that holds anything has some of what it wants; where not, tiles go
            to other ranks before or behind a tree.
    """
    gathers = serves == 1  # each source tile goes to one target tile, and all who share that
    meets, copies = np.maximum(meets - own, 0), np.maximum(source.copies, 1)[:, None]
    lacking = np.maximum(serves * target.copies[None] - own * copies, 0)
    exchange = meets + np.ceil(lacking / copies)  # ranks that hold one tile take turns
    shares = np.maximum(1.0, np.ceil(target.copies[None] / copies))
    takers = np.maximum(meets + own, shares)
    tree = np.ceil(np.log2(np.maximum(takers, 2))) + np.where(own, 0, PERMUTATION)
    scattered = (source.holders == 1)[:, None] & (target.tiles > 1)[None]
    scatter = target.tiles[None] - 1 + np.ceil(np.log2(np.maximum(target.copies, 1)))[None]
    told = (source.holders == 1)[:, None] & (target.tiles <= 1)[None]
    found = np.where(gathers, np.minimum(exchange, tree), exchange)
    found = np.where(scattered, scatter, found)
    ranks = np.ceil(np.log2(np.maximum(target.holders, 2)))[None]
    calls: Seconds = np.where(told, ranks, found).astype(np.float64)
    return np.maximum(exchange, 1.0), np.maximum(calls, 1.0)


def reduce(
    source: Layouts, operands: Counts, target: Layouts, itemsize: int, machine: Machine
) -> Moved:
    """Combine operands that ranks hold of each tile, and bring the values to each target.

    Each rank combines a piece of its tile, and gets what else it wants of the values; or it gets
    all operands of what it wants, where that is less.

    Args:
        source: layouts of the operands.
        operands: how many there are of each tile of each source; 1 where it holds values.
        target, itemsize, machine: as of :func:`move`.
    """
    values = move(source, target, itemsize, machine)
    p = operands[:, None, None].astype(np.float64)
    held = source.volumes[:, None, :].astype(np.float64)
    wanted = boxes.common_with_one(target.bounds, source.whole).astype(np.float64)
    common = source.common(target)
    here = np.minimum(common, held / p)  # of what a rank wants, in the piece that it combines
    pieces = (p - 1) / p * held + np.maximum(wanted - here, 0)
    alone = (p - 1) * wanted + np.maximum(wanted - common, 0)
    lacking = np.where(held > 0, np.minimum(pieces, alone), wanted)
    received = lacking.sum(axis=2)
    steps = 1 + (wanted.max(axis=2) > (held / p).max(axis=2))
    apart = ((held > 0) & (here < np.minimum(wanted, held / p))).any(axis=2)
    calls = np.ceil(np.log2(np.maximum(operands, 2)))[:, None] * steps + PERMUTATION * apart
    calls = np.broadcast_to(calls, steps.shape).astype(np.float64)
    moving = _Moving(calls, lacking.max(axis=2))
    if machine.has_nodes:
        nodes = source.on_nodes(machine.node_ranks)
        moving.far = combining(nodes)[:, None] * steps
    kept = np.minimum(wanted, held / p).max(axis=2)
    seconds = moving.seconds(itemsize, machine) + itemsize * machine.copy * kept
    combined = (operands > 1)[:, None]
    nbytes = np.where(combined, np.ceil(received) * itemsize, values.nbytes).astype(np.int64)
    found = np.where(combined, seconds, values.seconds)
    return Moved(nbytes, found, np.where(combined, 0, values.copied), found)
