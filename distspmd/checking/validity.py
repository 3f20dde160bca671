"""Which elements of its tiles each rank holds as the program has them at that point.

An *array* of the program lies in several *stores*: the caller's own, the tiles of its home, copies
in other layouts. A write of the array on one rank makes its elements old in every other store and
on every other rank; a redistribution makes them valid where it brings them. What no rank has
written yet may be anything, in NumPy too, and is asked of nobody.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box

Boxes = tuple[Box, ...]
"""A set of elements, as disjoint boxes."""


def without(boxes: Boxes, others: Iterable[Box]) -> Boxes:
    """Elements in some of ``boxes`` and in none of ``others``."""
    for other in others:
        if intervals.is_empty(other):
            continue
        boxes = tuple(itertools.chain.from_iterable(intervals.subtract(b, other) for b in boxes))
    return boxes


def united(boxes: Boxes, box: Box) -> Boxes:
    """Elements in some of ``boxes``, and those of ``box``."""
    if any(intervals.contains(held, box) for held in boxes):
        return boxes
    return (*without(boxes, [box]), box)


def common(boxes: Boxes, others: Boxes) -> Boxes:
    """Elements in some of both."""
    found = (intervals.intersect(a, b) for a, b in itertools.product(boxes, others))
    return tuple(box for box in found if not intervals.is_empty(box))


@dataclass
class Validity:
    """What ranks hold at one point of the program.

    Attributes:
        ranks: how many there are.
        written: of each array, what has a value at all.
        valid: of each store, what each rank holds as the program has it.
        array: of which array a store holds elements; copies of several arrays may share memory.
        pending: of each store of operands, what each rank has and no plan has taken yet.
    """

    ranks: int
    written: dict[str, Boxes] = field(default_factory=dict)
    valid: dict[str, tuple[Boxes, ...]] = field(default_factory=dict)
    array: dict[str, str] = field(default_factory=dict)
    pending: dict[str, tuple[Boxes, ...]] = field(default_factory=dict)

    def copy(self) -> Validity:
        """One that changes by itself."""
        return Validity(
            self.ranks, dict(self.written), dict(self.valid), dict(self.array), dict(self.pending)
        )

    def holds(self, store: str, rank: int, array: str) -> Boxes:
        """What a rank holds of an array in a store."""
        if self.array.get(store, array) != array or store not in self.valid:
            return ()
        return self.valid[store][rank]

    def lacking(
        self, store: str, rank: int, array: str, box: Box, target: str | None = None
    ) -> Box | None:
        """Something of a box that has a value, and that a rank does not hold in a store.

        What an array has that is written from there, ``target``, counts as what has a value.
        """
        has_value = dict.fromkeys((array, target or array))
        wanted = [b for name in has_value for b in common((box,), self.written.get(name, ()))]
        left = without(tuple(wanted), self.holds(store, rank, array))
        return left[0] if left else None

    def arrive(self, store: str, array: str, boxes: Sequence[Box]) -> None:
        """Each rank gets its box of an array in a store; nothing else changes."""
        before: tuple[Boxes, ...] = self.valid.get(store, ((),) * self.ranks)
        if self.array.get(store, array) != array:
            before = ((),) * self.ranks
        self.array[store] = array
        self.valid[store] = tuple(
            held if intervals.is_empty(box) else united(held, box)
            for held, box in zip(before, boxes, strict=True)
        )

    def wait(self, store: str, boxes: Sequence[Box]) -> None:
        """Each rank has operands in its box of a store, which are to be added."""
        before: tuple[Boxes, ...] = self.pending.get(store, ((),) * self.ranks)
        self.pending[store] = tuple(
            held if intervals.is_empty(box) else united(held, box)
            for held, box in zip(before, boxes, strict=True)
        )

    def write(self, store: str, array: str, boxes: Sequence[Box], exact: bool) -> None:
        """Each rank writes into its box of an array, into all of it if that is exact."""
        distinct = [*dict.fromkeys(box for box in boxes if not intervals.is_empty(box))]
        for name in [name for name, held in self.array.items() if held == array]:
            if name not in self.valid:
                continue
            own = name == store
            self.valid[name] = tuple(
                self._after(held, distinct, boxes[rank] if own else None, exact)
                for rank, held in enumerate(self.valid[name])
            )
        if not exact:
            return  # what had no value may have none still
        self.arrive(store, array, boxes)
        for box in distinct:
            self.written[array] = united(self.written.get(array, ()), box)

    @staticmethod
    def _after(held: Boxes, written: Sequence[Box], own: Box | None, exact: bool) -> Boxes:
        kept = () if own is None or exact or intervals.is_empty(own) else common(held, (own,))
        left = without(held, written)
        return (*left, *kept)

    def join(self, other: Validity) -> Validity:
        """What holds whichever of two ways the program came."""
        joined = self.copy()
        for name, boxes in other.written.items():
            for box in boxes:
                joined.written[name] = united(joined.written.get(name, ()), box)
        for store in {*self.valid, *other.valid}:
            array = self.array.get(store) or other.array[store]
            joined.valid[store] = tuple(
                self._held_by_both(other, store, rank, array) for rank in range(self.ranks)
            )
            joined.array[store] = array
        for store, tiles in other.pending.items():
            for boxes in itertools.zip_longest(*tiles, fillvalue=intervals.empty(1)):
                joined.wait(store, boxes)
        return joined

    def _held_by_both(self, other: Validity, store: str, rank: int, array: str) -> Boxes:
        """What a rank holds either way; what has no value one way is as it is the other way."""
        mine, theirs = self.holds(store, rank, array), other.holds(store, rank, array)
        found = common(mine, theirs)
        for held, written in ((mine, other.written), (theirs, self.written)):
            for box in without(held, written.get(array, ())):
                found = united(found, box)
        return found

    def holds_all_of(self, other: Validity) -> bool:
        """Whether every rank holds at least what it does in another one, and nothing more waits."""
        return (
            all(
                not without(boxes, self.holds(store, rank, other.array[store]))
                for store, tiles in other.valid.items()
                for rank, boxes in enumerate(tiles)
            )
            and all(
                not without(boxes, other.written.get(name, ()))
                for name, boxes in self.written.items()
            )
            and all(
                not without(boxes, held)
                for store, tiles in self.pending.items()
                for boxes, held in zip(
                    tiles, other.pending.get(store, ((),) * self.ranks), strict=True
                )
            )
        )
