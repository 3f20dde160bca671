"""What the tile of an iteration space computes, and how long that takes."""

from __future__ import annotations

from dataclasses import dataclass

from distspmd.plans.machine import Kind, Machine


@dataclass(frozen=True)
class TileWork:
    """What the largest tile of a space computes, as estimated.

    Attributes:
        operations: of floating point.
        nbytes: that it reads and writes.
        kind: the code that runs.
        times: how often the space runs, as far as loops around it tell.
        working: ranks that run a tile.
    """

    operations: float = 0.0
    nbytes: float = 0.0
    kind: Kind = Kind.LOOP
    times: int = 1
    working: int = 1

    def seconds(self, machine: Machine) -> float:
        """Predicted seconds of a run."""
        each = machine.computing(self.operations, self.nbytes, self.kind, self.working)
        return self.times * float(each)
