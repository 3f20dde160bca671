"""Operands are combined where they lie, one piece on each rank; then the values are exchanged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.layouts.layout import Layout
from distspmd.plans.collectives import StepKind
from distspmd.plans.plan import Message, Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.rewrites.split_reductions import split_box
from distspmd.plans.solver import Refusal
from distspmd.solvers.exchange import Exchange


@dataclass(frozen=True)
class ReduceFirst:
    """A reduce-scatter among the ranks that hold operands of a tile, and an exchange of values.

    For operands that some ranks have none of, and for targets that are no product of blocks: there
    each rank would else get all operands of what it wants.
    """

    name: ClassVar[str] = "reduce-first"

    def plan(self, redistribution: Redistribution) -> Plan | Refusal:
        """Plan two calls, or refuse."""
        source, target = redistribution.source, redistribution.target
        if not source.partial:
            return Refusal(self.name, f"{source} is not partial")
        if redistribution.accumulate or redistribution.in_place:
            return Refusal(self.name, "the target holds values before")
        if source.is_blocks and target.is_blocks and source.ranks == target.ranks:
            return Refusal(self.name, "both sides are blocks, which collectives take")
        if not redistribution.disjoint:
            return Refusal(self.name, "tiles overlap and are not equal")
        groups = {box: source.one_of_each_operand(ranks) for box, ranks in source.holders().items()}
        if max(map(len, groups.values()), default=0) < 2:
            return Refusal(self.name, "no two ranks hold operands of one tile")
        return self._plan(redistribution, groups)

    def _plan(self, move: Redistribution, groups: dict[Box, tuple[int, ...]]) -> Plan:
        source = move.source
        pieces = {
            box: tuple(zip(r, split_box(box, len(r)), strict=False)) for box, r in groups.items()
        }
        owned = {owner: piece for each in pieces.values() for owner, piece in each}
        nothing = intervals.empty(len(source.extents))
        boxes = tuple(owned.get(rank, nothing) for rank in range(source.ranks))
        values = Layout(source.mesh, source.extents, explicit=boxes)
        reduce = Step(
            StepKind.REDUCE_SCATTER,
            source=0,
            target=2,
            groups=tuple(ranks for ranks in groups.values() if len(ranks) > 1),
            messages=tuple(
                Message(sender, owner, piece)
                for box, each in pieces.items()
                for owner, piece in each
                for sender in groups[box]
            ),
            reduction=move.reduction,
        )
        onward = Exchange().plan(Redistribution(values, move.target, move.dtype))
        assert isinstance(onward, Plan)
        steps = (reduce, *(replace(step, source=2) for step in onward.steps))
        return Plan(move, self.name, steps, (values,))
