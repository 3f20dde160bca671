"""What the tile of an iteration space computes, and how long that takes."""

from __future__ import annotations

from dataclasses import dataclass

from distspmd.plans.machine import Machine


@dataclass(frozen=True)
class TileWork:
    """What the largest tile of a space computes, as estimated.

    Attributes:
        operations: of floating point.
        nbytes: that it reads and writes.
        is_product: whether BLAS runs it.
        times: how often the space runs, as far as loops around it tell.
        working: ranks that run a tile.
    """

    operations: float = 0.0
    nbytes: float = 0.0
    is_product: bool = False
    times: int = 1
    working: int = 1

    def seconds(self, machine: Machine) -> float:
        """Predicted seconds of a run."""
        each = machine.computing(self.operations, self.nbytes, self.is_product, self.working)
        return self.times * float(each)
