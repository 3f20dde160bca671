"""Block-cyclic layouts: plans in a folded array, in which every tile is a few boxes.

A block-cyclic tile is not a box of the array. In the array folded to ``(rounds, parts, block)`` it
is one box, and a second one if the last round is not full; a run of elements is at most three
boxes. The blocks and rounds of both sides are the digits of the fold, each a multiple of the next.
In the fold, the place of an element in the memory of a tile is affine, so nothing is padded or
copied: the messages of an exchange between all pieces are those between the tiles.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from numpy.typing import DTypeLike

from distspmd.errors import LayoutError
from distspmd.layouts import intervals
from distspmd.layouts.dimension import Split
from distspmd.layouts.intervals import Box
from distspmd.layouts.layout import Layout, Partial
from distspmd.layouts.mesh import Mesh
from distspmd.plans.collectives import StepKind
from distspmd.plans.encoding import Storage
from distspmd.plans.messages import Message
from distspmd.plans.plan import Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.rewrites.drop_operands import ask
from distspmd.solvers.exchange import Exchange

Weights = tuple[int, ...]
"""Of the digits of an index, the highest first: each a multiple of the next, the last is 1."""


@dataclass(frozen=True)
class BlockCyclicPlan:
    """An exchange between layouts of which one deals blocks.

    Attributes:
        proof: the exchange with a rank for each piece of a tile, ``pieces`` of them to a rank; what
            ``verify`` and ``simulate`` take.
        merged: the same messages between ranks, on the hulls of their pieces; what runs.
        pieces: most boxes of a tile.
        weights: how each dimension is folded.
    """

    source: Layout
    target: Layout
    proof: Plan
    merged: Plan
    pieces: int
    weights: tuple[Weights, ...]

    def received(self, rank: int) -> int:
        """Bytes that a rank receives from others."""
        return self.merged.received(rank)

    def storage(self, side: int, rank: int, strides: Sequence[int]) -> Storage:
        """Where a rank's tile lies in the folded array; its strides are in elements."""
        layout = (self.source, self.target)[side]
        if rank >= layout.ranks or 0 in layout.shape(rank):
            return Storage.of(intervals.empty(sum(map(len, self.weights))))
        begin: list[int] = []
        found: list[int] = []
        for d, weights in enumerate(self.weights):
            split = layout.splits[d] if layout.splits else None
            if split is not None and split.block:
                part = split.index(layout.mesh, layout.mesh.coordinates(rank))
                begin += _digits(part * split.block, weights)
                found += [
                    strides[d] * n for n in _block_cyclic_strides(split, layout.mesh, weights)
                ]
            else:
                begin += _digits(_interval(layout, rank, d)[0], weights)
                found += [strides[d] * weight for weight in weights]
        origin = [lo for lo, _ in self.merged.buffers[side].box(rank)]
        first = sum(
            (at - low) * stride for at, low, stride in zip(begin, origin, found, strict=True)
        )
        return Storage(tuple(origin), tuple(found), layout.shape(rank), first)


def plan_block_cyclic(source: Layout, target: Layout, dtype: DTypeLike) -> BlockCyclicPlan:
    """An exchange of exactly the missing elements, between layouts of which any may deal blocks.

    Raises:
        LayoutError: layouts of different arrays, or blocks that have no common fold.
    """
    if source.extents != target.extents:
        raise LayoutError(f"{source} and {target} are layouts of different arrays.")
    weights = tuple(_weights(source, target, d) for d in range(len(source.extents)))
    held = [[_pieces(side, r, weights) for r in range(side.ranks)] for side in (source, target)]
    most = max(1, *(len(pieces) for side in held for pieces in side))
    sides = [
        _apart(side, of, most, weights) for side, of in zip((source, target), held, strict=True)
    ]
    move = Redistribution(sides[0], sides[1], dtype)  # type: ignore[arg-type]  # it makes the type
    proof = ask(Exchange(), move)
    assert isinstance(proof, Plan)
    if not source.partial and not target.partial:
        proof = _from_own(proof, held[0], most)
    return BlockCyclicPlan(
        source, target, proof, _merged(proof, (source, target), held, most), most, weights
    )


# --- folds ---


def _weights(source: Layout, target: Layout, dimension: int) -> Weights:
    """The digits of a dimension: where a block or a round of either side ends."""
    cuts = {1}
    for layout in (source, target):
        split = layout.splits[dimension] if layout.splits else Split(0)
        if split.block:
            cuts |= {split.block, split.block * split.parts(layout.mesh)}
    found = tuple(sorted(cuts, reverse=True))
    for more, fewer in itertools.pairwise(found):
        if more % fewer:
            raise LayoutError(
                f"from {source} to {target}: dimension {dimension} is dealt in blocks or rounds of "
                f"{more} and of {fewer} elements, of which neither is a multiple of the other. Go "
                "there in two steps, by a layout of blocks that are not dealt."
            )
    return found


def _folded_extents(extent: int, weights: Weights) -> tuple[int, ...]:
    return (-(-extent // weights[0]), *(a // b for a, b in itertools.pairwise(weights)))


def _digits(index: int, weights: Weights) -> list[int]:
    found = []
    for weight in weights:
        digit, index = divmod(index, weight)
        found.append(digit)
    return found


def cover(lo: int, hi: int, weights: Sequence[int]) -> list[Box]:
    """The boxes of digits that are the indices ``lo:hi``, the highest digits first."""
    if hi <= lo:
        return []
    if not weights:
        return [()]
    weight, *lower = weights
    if not lower:
        return [((lo // weight, hi // weight),)]
    found: list[Box] = []
    for begin, end in (
        (lo, min(hi, -(-lo // weight) * weight)),
        (max(lo, hi // weight * weight), hi),
    ):
        unit = begin // weight
        part = cover(begin - unit * weight, end - unit * weight, lower)
        new = [((unit, unit + 1), *box) for box in part]
        found += [box for box in new if box not in found]
    first, last = -(-lo // weight), hi // weight
    if first < last:
        inside = [(0, a // b) for a, b in itertools.pairwise([weight, *lower])]
        found.append(((first, last), *inside))
    return found


# --- pieces of tiles ---


def _interval(layout: Layout, rank: int, dimension: int) -> intervals.Interval:
    """What a rank holds of a dimension that is not dealt."""
    if layout.splits is None:
        return layout.box(rank)[dimension]
    return layout.splits[dimension].interval(layout.mesh, layout.mesh.coordinates(rank))


def _pieces(layout: Layout, rank: int, weights: Sequence[Weights]) -> list[Box]:
    """The boxes of a rank's tile in the folded array."""
    if 0 in layout.shape(rank):
        return []
    sides = []
    for d, digits in enumerate(weights):
        split = layout.splits[d] if layout.splits else None
        if split is not None and split.block:
            part = split.index(layout.mesh, layout.mesh.coordinates(rank))
            sides.append([*_block_cyclic_pieces(split, split.parts(layout.mesh), part, digits)])
        else:
            sides.append(cover(*_interval(layout, rank, d), digits))
    return [tuple(itertools.chain(*boxes)) for boxes in itertools.product(*sides)]


def _block_cyclic_pieces(split: Split, parts: int, part: int, weights: Weights) -> Iterator[Box]:
    """Full rounds of a part, and what it has of the last one."""
    period = parts * split.block
    rounds, rest = divmod(split.extent, period)
    above = [weight // period for weight in weights if weight >= period]
    below = [weight for weight in weights if weight < split.block]
    between = [
        (digit, digit + 1)
        for digit, weight in zip(_digits(part * split.block, weights), weights, strict=True)
        if split.block <= weight < period
    ]
    for first, last, length in (
        (0, rounds, split.block),
        (rounds, rounds + 1, min(max(rest - part * split.block, 0), split.block)),
    ):
        for high in cover(first, last, above):
            for low in cover(0, length, below):
                yield (*high, *between, *low)


def _block_cyclic_strides(split: Split, mesh: Mesh, weights: Weights) -> Iterator[int]:
    """Elements of a tile from one value of each digit to the next."""
    parts = split.parts(mesh)
    for weight in weights:
        if weight >= parts * split.block:
            yield weight // parts
        else:
            yield weight if weight < split.block else 1  # a part has one value of these


# --- the exchange ---


def _apart(
    layout: Layout, held: Sequence[Sequence[Box]], most: int, weights: Sequence[Weights]
) -> Layout:
    """The layout with a rank for each piece."""
    extents = tuple(
        itertools.chain(*map(_folded_extents, layout.extents, weights)),
    )
    name = "piece"
    while name in layout.mesh.names:
        name += "_"
    mesh = Mesh(**{axis: layout.mesh[axis] for axis in layout.mesh.names}, **{name: most})
    nothing = intervals.empty(len(extents))
    boxes = [box for of in held for box in [*of, *[nothing] * (most - len(of))]]
    partial = layout.partial
    if partial and partial.axes is None:
        partial = Partial(partial.reduction, layout.mesh.names)
    return Layout(mesh, extents, explicit=tuple(boxes), partial=partial)


def _from_own(plan: Plan, held: Sequence[Sequence[Box]], most: int) -> Plan:
    """The plan in which a rank that has a box in another of its pieces gets it from nobody."""

    def own(message: Message) -> Message:
        rank = message.receiver // most
        for at, piece in enumerate(held[rank] if rank < len(held) else ()):
            if intervals.contains(piece, message.box):
                return replace(message, sender=rank * most + at)
        return message

    (step,) = plan.steps
    messages = [own(message) for message in step.messages]
    ends = sorted(
        {end for m in messages if m.sender != m.receiver for end in (m.sender, m.receiver)}
    )
    kind = StepKind.EXCHANGE if ends else StepKind.COPY
    return replace(
        plan,
        steps=(replace(step, kind=kind, messages=messages, groups=(tuple(ends),) if ends else ()),),
    )


def _merged(
    plan: Plan, layouts: Sequence[Layout], held: Sequence[Sequence[Sequence[Box]]], most: int
) -> Plan:
    """The messages between the ranks that have the pieces."""
    hulls = []
    extents = plan.redistribution.source.extents
    for layout, of in zip(layouts, held, strict=True):
        boxes = [reduce(intervals.hull, pieces, intervals.empty(len(extents))) for pieces in of]
        hulls.append(Layout(layout.mesh, extents, explicit=tuple(boxes), partial=layout.partial))
    (step,) = plan.steps
    messages = [Message(m.sender // most, m.receiver // most, m.box) for m in step.messages]
    ends = sorted(
        {end for m in messages if m.sender != m.receiver for end in (m.sender, m.receiver)}
    )
    merged = Step(
        StepKind.EXCHANGE if ends else StepKind.COPY,
        0,
        1,
        (tuple(ends),) if ends else (),
        messages,
        step.reduction,
    )
    move = Redistribution(hulls[0], hulls[1], plan.redistribution.dtype)
    return Plan(move, plan.solver, (merged,))
