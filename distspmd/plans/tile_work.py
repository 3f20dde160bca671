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
        lines: numbers of bytes: those of all lines of a sweep across rows, which the nearest cache
            holds or not, and those that it gets again where it does not.
    """

    operations: float = 0.0
    nbytes: float = 0.0
    kind: Kind = Kind.LOOP
    times: int = 1
    working: int = 1
    lines: tuple[tuple[float, float], ...] = ()

    def seconds(self, machine: Machine) -> float:
        """Predicted seconds of a run."""
        again = sum(nbytes for sweep, nbytes in self.lines if sweep > machine.near > 0)
        each = machine.computing(self.operations, self.nbytes, self.kind, self.working, again)
        return self.times * float(each)
