"""Which tile of a grid each rank holds, independent of the axes that led there.

A collective on weak types becomes one on ranks when it is known which ranks communicate. The ranks
that hold one tile are taken in order, and the ``k``-th holders of neighbouring tiles form a group.
A sequence of collectives can therefore always be executed, starting from either end. Where the two
ends meet, each tile has as many holders as receivers, and a permutation joins them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distspmd.layouts.intervals import Numbers
from distspmd.plans.collectives import StepKind
from distspmd.solvers.collectives.prime_axes import Digit, Placement
from distspmd.solvers.collectives.search import SLICE, Move, WeakType


@dataclass(frozen=True)
class TileMap:
    """Index of the tile that each rank holds along each dimension, and which operand of it."""

    held: WeakType
    index: Numbers
    """(ranks, dimensions)"""
    operand: Numbers
    """(ranks,)"""

    def numbers(self, index: Numbers, operand: Numbers) -> Numbers:
        """One number for each different tile and operand."""
        found = operand
        for dimension, parts in enumerate(self.held.parts):
            found = found * parts + index[:, dimension]
        return found

    def bounds(self, extents: Sequence[int], padded: Sequence[int]) -> Numbers:
        """Boxes of the ranks: tiles of the padded extents, cut at the extents."""
        size = np.array(padded) // np.array(self.held.parts)
        low = np.minimum(self.index * size, extents)
        return np.stack([low, np.minimum((self.index + 1) * size, extents)], axis=2)


def of_placement(placement: Placement, ranks: int) -> TileMap:
    """The tile of each rank by its digits."""
    every = np.arange(ranks)
    columns = [_value(stack, every) for stack in placement.stacks]
    return TileMap(placement.weak, np.stack(columns, axis=1), _value(placement.partial, every))


def _value(stack: Sequence[Digit], ranks: Numbers) -> Numbers:
    found, weight = np.zeros_like(ranks), 1
    for digit in stack:
        found = found + weight * (ranks // digit.stride % digit.base)
        weight *= digit.base
    return found


def groups_of_digits(before: Placement, after: Placement, ranks: int) -> Numbers:
    """A number for each rank, equal where ranks differ only in digits that changed their place."""
    places = [_places(before), _places(after)]
    found = np.arange(ranks)
    for digit in {*places[0], *places[1]}:
        if places[0].get(digit) != places[1].get(digit):
            found = found - found // digit.stride % digit.base * digit.stride
    return found


def _places(placement: Placement) -> dict[Digit, int]:
    found = dict.fromkeys(placement.partial, -1)
    for dimension, stack in enumerate(placement.stacks):
        found.update(dict.fromkeys(stack, dimension))
    return found


def place_among_holders(tiles: Numbers) -> Numbers:
    """For each rank, how many lower ranks hold the same tile."""
    order = np.argsort(tiles, kind="stable")
    ordered = tiles[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    found = np.empty_like(tiles)
    counts = np.diff(np.append(starts, len(tiles)))
    found[order] = np.arange(len(tiles)) - np.repeat(starts, counts)
    return found


def after(move: Move, before: TileMap) -> tuple[TileMap, Numbers]:
    """The tile map that a collective leads to, and the group of each rank."""
    index, operand = before.index.copy(), before.operand
    place = place_among_holders(before.numbers(index, operand))
    factor = move.factor
    brought = operand % factor
    if move.take >= 0:
        brought = index[:, move.take] % factor
        index[:, move.take] //= factor
    elif move.kind is SLICE:
        copies = len(operand) // (before.held.tiles * before.held.operands)
        brought = place // (copies // factor)
    else:
        operand = operand // factor
    group = before.numbers(index, operand) * len(operand) + place
    if move.kind is SLICE:
        group = np.arange(len(operand))
    if move.give >= 0:
        index[:, move.give] = index[:, move.give] * factor + brought
    return TileMap(before.held.after(move), index, operand), group


def inverse(move: Move) -> Move:
    """The collective that leads back; there is none of a reduction."""
    kinds = {SLICE: StepKind.ALL_GATHER, StepKind.ALL_GATHER: SLICE}
    return Move(kinds.get(move.kind, move.kind), move.factor, move.give, move.take)


def permutation(have: TileMap, want: TileMap) -> Numbers:
    """For each rank the rank that has what it wants; itself where it can be."""
    tiles, wanted = (held.numbers(held.index, held.operand) for held in (have, want))
    found = np.arange(len(tiles))
    moving = np.flatnonzero(tiles != wanted)
    giving = moving[np.argsort(tiles[moving], kind="stable")]
    taking = moving[np.argsort(wanted[moving], kind="stable")]
    found[taking] = giving
    return found
