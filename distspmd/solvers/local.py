"""Redistributions in which each rank already holds everything that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from distspmd.layouts import intervals
from distspmd.plans.collectives import StepKind
from distspmd.plans.plan import Message, Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.solver import Refusal


@dataclass(frozen=True)
class Nothing:
    """Equal layouts: each rank keeps its tile.  ``[3{x}12] -> [3{x}12]``."""

    name: ClassVar[str] = "nothing"

    def plan(self, redistribution: Redistribution) -> Plan | Refusal:
        """Plan a copy of each tile, or refuse."""
        if not redistribution.source.same_tiles(redistribution.target):
            return Refusal(self.name, "the layouts differ")
        return _copies(redistribution, self.name)


@dataclass(frozen=True)
class LocalSlice:
    """Each rank holds what it wants, and more.  ``[12] -> [3{x}12]``."""

    name: ClassVar[str] = "local-slice"

    def plan(self, redistribution: Redistribution) -> Plan | Refusal:
        """Plan a copy out of each tile, or refuse."""
        source, target = redistribution.source, redistribution.target
        if source.partial:
            return Refusal(self.name, f"{source} is partial")
        for rank in range(target.ranks):
            if not intervals.contains(source.box(rank), target.box(rank)):
                return Refusal(
                    self.name,
                    f"rank {rank} wants [{intervals.box_text(target.box(rank))}] and has "
                    f"[{intervals.box_text(source.box(rank))}]",
                )
        return _copies(redistribution, self.name)


def _copies(redistribution: Redistribution, solver: str) -> Plan:
    if redistribution.in_place:
        return Plan(redistribution, solver, ())
    messages = tuple(
        Message(rank, rank, box)
        for rank, box in enumerate(redistribution.target.boxes)
        if not intervals.is_empty(box)
    )
    return Plan(redistribution, solver, (Step(StepKind.COPY, 0, 1, (), messages),))
