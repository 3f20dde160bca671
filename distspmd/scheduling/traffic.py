"""What it takes to bring arrays from some layouts to others: bytes and seconds of all pairs.

The bytes are those that ranks lack, which a plan of one exchange moves; the seconds are those of
:mod:`distspmd.plans.cost`, for the call that such a pair of layouts would get.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.plans.machine import Machine
from distspmd.scheduling.nodes import Nodes, combining, entering
from distspmd.scheduling.tiles import Classes, Counts, Tiles, tabled

Seconds = NDArray[np.float64]
PERMUTATION = 2
"""Messages of a rank that hands its tile to another one, and gets one."""


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
    packs: NDArray[np.bool_] | bool = False
    far: Seconds | None = None

    def seconds(self, itemsize: int, machine: Machine) -> Seconds:
        """Of messages and bytes; where any of them go to other nodes, all calls may wait for it."""
        latency = machine.alpha * self.calls
        moving = itemsize * machine.arriving(self.packs) * self.elements
        if self.far is not None:
            latency = np.where(self.far > 0, machine.far_alpha * self.calls, latency)
            moving = np.maximum(moving, itemsize * machine.far_beta * self.far)
        found: Seconds = latency + moving
        return found


def within(inner: Tiles, outer: Tiles) -> NDArray[np.bool_]:
    """Whether each rank holds its tile of one layout in its tile of another: (outer, inner)."""
    columns, found = inner.columns, np.ones((len(outer), len(inner)), bool)
    for own, other in zip(inner.numbers.T, outer.numbers.T, strict=True):
        found &= columns.table(columns.inside, own, other).T
    return found


def _exchanged(held: Classes) -> tuple[NDArray[Any], ...]:
    """Elements that the busiest rank lacks, all lack, the busiest and all keep; `own` below."""
    kept, lacking = held.common, held.wanted - held.common
    own = ((kept > 0) | (held.wanted == 0) | (held.mine == 0)).all(axis=1)
    return (
        lacking.max(axis=1),
        (lacking * held.ranks).sum(axis=1),
        kept.max(axis=1),
        (kept * held.ranks).sum(axis=1),
        own,
    )


def lacking(source: Tiles, target: Tiles) -> Counts:
    """Elements that all ranks lack of each target in each source."""
    found: Counts = tabled(source, target, _exchanged)[1]
    return found


def move(
    source: Tiles,
    target: Tiles,
    itemsize: int,
    machine: Machine,
    at_caller: NDArray[np.bool_] | bool = False,
) -> Moved:
    """Bring values from each source to each target.

    Args:
        source: layouts that hold the values.
        target: layouts that want what their tiles and the source have in common.
        itemsize: bytes of an element.
        machine: what bytes and messages cost.
        at_caller: whether each source is the caller's own memory.

    Nobody may change the answer, for whoever asks the same again gets it.
    """
    known = source.columns.known.setdefault("move", {})
    hidden = np.broadcast_to(np.asarray(at_caller, bool), len(source))
    key = source.asked, target.asked, itemsize, machine, hidden.tobytes()
    if key not in known:
        known[key] = _move(source, target, itemsize, machine, hidden)
    found: Moved = known[key]
    return found


def _move(
    source: Tiles, target: Tiles, itemsize: int, machine: Machine, at_caller: NDArray[np.bool_]
) -> Moved:
    most, received, kept, all_kept, own = tabled(source, target, _exchanged)
    meets, serves = _meeting(source, target)
    alone = source.holders == 1
    sent = np.where(
        alone[:, None], target.different[None] - kept, 0
    )  # else no rank sends more than the busiest receives
    exchange, calls = _calls(source, target, meets, serves, own)
    busiest = direct = most  # where ranks share cores, those that want bytes bring them
    if not machine.cores:
        busiest = np.maximum(most, np.maximum(sent, 0))
        direct = np.maximum(busiest, np.where(alone[:, None], received, 0))  # all from one rank
    spread = alone[:, None] & (target.copies > 1)[None] & (target.count > 1)[None]
    busiest = busiest + np.where(spread, most, 0)  # scattered, and told to those who share a tile
    busiest, direct = (machine.busiest(each, received) for each in (busiest, direct))
    copied = machine.busiest(kept, all_kept)
    calls = np.where(received > 0, calls, 0).astype(np.float64)
    moving = _Moving(calls, busiest, at_caller[:, None])
    if machine.has_nodes:
        near, far = (Nodes(each.bounds, machine.node_ranks) for each in (source, target))
        moving.far = entering(near, far, source.whole, alone)
    begun = _Begun.of(source, target, machine)
    seconds = moving.seconds(itemsize, machine) + itemsize * machine.copy * copied
    seconds = seconds + begun.seconds(most + kept, received + all_kept)
    lean = replace(moving, calls=np.where(received > 0, exchange, 0.0), elements=direct, packs=True)
    return Moved(
        received * itemsize,
        seconds,
        all_kept * itemsize,
        lean.seconds(itemsize, machine) + begun.seconds(most, received),
    )


@dataclass(frozen=True, eq=False)
class _Begun:
    """What it takes to begin runs of memory, for all pairs.

    Attributes:
        machine: what one costs.
        length: elements of a run; None where runs cost nothing.
    """

    machine: Machine
    length: Seconds | None

    @classmethod
    def of(cls, source: Tiles, target: Tiles, machine: Machine) -> _Begun:
        """Runs are rows of the pieces into which tiles of the source cut those of the target."""
        if not machine.run:
            return cls(machine, None)
        columns, shape = source.columns, (len(source), len(target))
        length, is_open = np.ones(shape), np.ones(shape, bool)
        mine, theirs = np.array(source.sides), np.array(target.sides)
        for d in reversed(range(mine.shape[1])):
            meets = columns.table(columns.meeting, mine[:, d], theirs[:, d])
            ours, others = (columns.widths(each[:, d]) for each in (mine, theirs))
            piece = np.maximum(others[:, 0] / np.maximum(meets, 1), 1)
            length = np.where(is_open, length * piece, length)
            whole = (ours[:, 0] == ours[:, 1])[:, None] & (others[:, 0] == others[:, 1])
            is_open &= (length <= 1) | whole
        return cls(machine, length)

    def seconds(self, most: Any, all_of_them: Any) -> Any:
        """Seconds, for elements of the busiest rank and of all."""
        if self.length is None:
            return 0.0
        return self.machine.run * self.machine.busiest(most, all_of_them) / self.length


def _meeting(source: Tiles, target: Tiles) -> tuple[Counts, Counts]:
    """Most source tiles that one target tile meets, and the reverse."""
    columns, shape = source.columns, (len(source), len(target))
    meets, serves = np.ones(shape, np.int64), np.ones(shape, np.int64)
    mine, theirs = np.array(source.sides), np.array(target.sides)
    for d in range(mine.shape[1]):
        meets *= columns.table(columns.meeting, mine[:, d], theirs[:, d])
        serves *= columns.table(columns.meeting, theirs[:, d], mine[:, d]).T
    return meets, serves


def _calls(
    source: Tiles,
    target: Tiles,
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
    scattered = (source.holders == 1)[:, None] & (target.count > 1)[None]
    scatter = target.count[None] - 1 + np.ceil(np.log2(np.maximum(target.copies, 1)))[None]
    told = (source.holders == 1)[:, None] & (target.count <= 1)[None]
    found = np.where(gathers, np.minimum(exchange, tree), exchange)
    found = np.where(scattered, scatter, found)
    ranks = np.ceil(np.log2(np.maximum(target.holders, 2)))[None]
    calls: Seconds = np.where(told, ranks, found).astype(np.float64)
    return np.maximum(exchange, 1.0), np.maximum(calls, 1.0)


def reduce(
    source: Tiles, operands: Counts, target: Tiles, itemsize: int, machine: Machine
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

    def combined_of(of: Classes) -> tuple[Any, ...]:
        p = operands[of.first][:, None].astype(np.float64)
        held, wanted = of.mine.astype(np.float64), of.wanted.astype(np.float64)
        here = np.minimum(of.common, held / p)  # of what a rank wants, in its own piece
        pieces = (p - 1) / p * held + np.maximum(wanted - here, 0)
        alone = (p - 1) * wanted + np.maximum(wanted - of.common, 0)
        lacking: Seconds = np.where(held > 0, np.minimum(pieces, alone), wanted)
        return (
            lacking.max(axis=1),
            (lacking * of.ranks).sum(axis=1),
            np.ceil(wanted.max(axis=1) / np.maximum((held / p).max(axis=1), 1)),
            ((held > 0) & (here < np.minimum(wanted, held / p))).any(axis=1),
            np.minimum(wanted, held / p).max(axis=1),
        )

    most, received, pieces_of, apart, kept = tabled(source, target, combined_of)
    gathering = np.ceil(np.log2(np.maximum(pieces_of, 1)))  # of pieces that others combined
    combining_calls = np.ceil(np.log2(np.maximum(operands, 2)))[:, None]
    is_told = (pieces_of <= 1) & (target.copies > 1)[None]  # what is too short to be in pieces
    gathering = np.where(is_told, combining_calls, gathering)
    calls = combining_calls + gathering + PERMUTATION * apart
    moving = _Moving(calls, machine.busiest(most, received))
    if machine.has_nodes:
        steps = 1 + (gathering > 0)
        moving.far = combining(Nodes(source.bounds, machine.node_ranks))[:, None] * steps
    seconds = moving.seconds(itemsize, machine) + itemsize * machine.copy * kept
    seconds = seconds + _Begun.of(source, target, machine).seconds(most + kept, received)
    combined = (operands > 1)[:, None]
    nbytes = np.where(combined, np.ceil(received) * itemsize, values.nbytes).astype(np.int64)
    found = np.where(combined, seconds, values.seconds)
    return Moved(nbytes, found, np.where(combined, 0, values.copied), found)
