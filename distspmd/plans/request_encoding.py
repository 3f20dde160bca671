"""The table by which a rank tells the C++ runtime which elements it may request from which rank.

One fetch consists, in this order, of (``plan/decode.hpp`` reads it)::

    fetch   bytes of the name, the name (8 bytes a word), itemsize,
            number of dimensions, extents, number of dimensions that data decide, those dimensions,
            source, target, number of sends, sends, number of receives, receives,
            number of ends, ends, number of peers, peers
    source, target   box, origin, strides     the rank's storages, strides in elements
    send    peer, box                         what the peer may request from this rank
    receive peer, box                         what this rank may request from the peer, or SELF
    box     lo, hi                            for each dimension, in global indices
    peer    rank, ends                        of each rank that this rank may send to

The boxes are the messages of a plan that brings everything that could be requested. Each element
therefore comes from one rank, which the verifier proves. By the ends of tiles a program foresees
what each rank touches, where data decide nothing of it; then nobody requests anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import PlanError
from distspmd.layouts import intervals
from distspmd.plans.encoding import SELF, Storage
from distspmd.plans.plan import Plan


@dataclass(frozen=True)
class Fetch:
    """What a rank may be asked for, and may ask for.

    Attributes:
        name: for messages.
        plan: one exchange of all that could be asked for.
        dimensions: those in which data decide what is asked for.
        storages: the rank's storage of its source and of its target.
        ends: values on all ranks of what the program foresees by, each an array with one for each
            of the first ranks, and 0 on further ones; none where ranks request.
    """

    name: str
    plan: Plan
    dimensions: tuple[int, ...]
    storages: tuple[Storage, Storage]
    ends: tuple[Sequence[int], ...] = ()

    def __post_init__(self) -> None:
        if len(self.plan.steps) != 1 or len(self.plan.buffers) != 2:
            raise PlanError(f"{self.name}: a fetch needs a plan of one exchange, not {self.plan}.")
        extents = self.plan.redistribution.target.extents
        if not self.dimensions or not set(self.dimensions) <= set(range(len(extents))):
            raise PlanError(f"{self.name}: no dimensions {self.dimensions} in {list(extents)}.")

    def words(self, rank: int) -> NDArray[np.int64]:
        """The words of a rank."""
        text = self.name.encode()
        padded = np.frombuffer(text + bytes(-len(text) % 8), dtype="<i8")
        move = self.plan.redistribution
        extents = move.target.extents
        found = [len(text), *padded.tolist(), move.dtype.itemsize, len(extents), *extents]
        found += [len(self.dimensions), *self.dimensions]
        for layout, storage in zip(self.plan.buffers, self.storages, strict=True):
            found += [*intervals.bounds(layout.box(rank)), *storage.origin, *storage.strides]
        messages = list(self.plan.steps[0].table.of_rank(rank))
        sends = [(to, box) for sender, to, box in messages if sender == rank != to]
        receives = [
            (SELF if sender == rank else sender, box) for sender, to, box in messages if to == rank
        ]
        for traffic in (sends, receives):
            found.append(len(traffic))
            for peer, box in traffic:
                found += [peer, *intervals.bounds(box)]
        peers = sorted({peer for peer, _ in sends})
        found += [len(self.ends), *self._ends_of(rank), len(peers)]
        for peer in peers:
            found += [peer, *self._ends_of(peer)]
        return np.array(found, dtype=np.int64)

    def _ends_of(self, rank: int) -> list[int]:
        return [values[rank] if rank < len(values) else 0 for values in self.ends]
