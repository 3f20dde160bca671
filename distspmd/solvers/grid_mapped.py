"""From rank 0 to a process grid and back, with at most two collective calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.layouts.layout import Layout
from distspmd.plans.collectives import StepKind
from distspmd.plans.plan import Message, Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.solver import Refusal

_ROOT = 0


@dataclass(frozen=True)
class GridMapped:
    """Rank 0 <-> the tiles of a grid: Scatterv + Bcast, or Reduce + Gatherv.

    The ranks that share a box form a group. Scatter sends each distinct box once, to the first rank
    of its group, and the group broadcasts it; gather reduces each box to the first rank of its
    group, with the reduction of the array, and collects the results. The thesis matches symbolic
    subsets to ``PARTITION``, ``REPLICATE`` and ``BROADCAST``; grouping by equal boxes covers these,
    uneven tiles, idle ranks, and overlapping reads as well.
    """

    name: ClassVar[str] = "grid-mapped"

    def plan(self, redistribution: Redistribution) -> Plan | Refusal:
        """Plan a scatter or a gather, or refuse."""
        if redistribution.in_place:
            return Refusal(self.name, "the target is filled in place")
        if _is_root(redistribution.source):
            return self._scatter(redistribution)
        if _is_root(redistribution.target):
            return self._gather(redistribution)
        return Refusal(self.name, "neither side is the root layout")

    def _scatter(self, move: Redistribution) -> Plan | Refusal:
        if move.source.partial:
            return Refusal(self.name, "the root holds an operand, not a value")
        groups = {box: _root_first(ranks) for box, ranks in move.target.holders().items()}
        if len(groups) == 1:
            ((box, ranks),) = groups.items()
            group = _root_first({_ROOT, *ranks})
            messages = tuple(Message(_ROOT, rank, box) for rank in ranks)
            kind = StepKind.BROADCAST if len(group) > 1 else StepKind.COPY
            return Plan(
                move, self.name, (Step(kind, 0, 1, (group,) if len(group) > 1 else (), messages),)
            )
        scatter = Step(
            StepKind.SCATTER,
            source=0,
            target=1,
            groups=(_root_first({_ROOT, *(ranks[0] for ranks in groups.values())}),),
            messages=tuple(Message(_ROOT, ranks[0], box) for box, ranks in groups.items()),
        )
        broadcast = Step(
            StepKind.BROADCAST,
            source=1,
            target=1,
            groups=tuple(ranks for ranks in groups.values() if len(ranks) > 1),
            messages=tuple(
                Message(ranks[0], rank, box) for box, ranks in groups.items() for rank in ranks[1:]
            ),
        )
        return Plan(move, self.name, (scatter, broadcast) if broadcast.groups else (scatter,))

    def _gather(self, move: Redistribution) -> Plan | Refusal:
        groups = {
            box: move.source.one_of_each_operand(ranks)
            for box, ranks in move.source.holders().items()
        }
        refusal = self._refuse_gather(move, groups)
        if refusal:
            return refusal
        if move.reduction and len(groups) == 1 and not move.accumulate:
            ((box, ranks),) = groups.items()
            if ranks[0] == _ROOT:
                return Plan(move, self.name, (_reduce(move, {box: ranks}, target=1),))
        source = 0
        steps: tuple[Step, ...] = ()
        scratch: tuple[Layout, ...] = ()
        if move.reduction and any(len(ranks) > 1 for ranks in groups.values()):
            heads = {ranks[0]: box for box, ranks in groups.items()}
            nothing = intervals.empty(len(move.source.extents))
            boxes = tuple(heads.get(rank, nothing) for rank in range(move.source.ranks))
            scratch = (Layout(move.source.mesh, move.source.extents, explicit=boxes),)
            source, steps = 2, (_reduce(move, groups, target=2),)
        gather = Step(
            StepKind.GATHER,
            source=source,
            target=1,
            groups=(_root_first({_ROOT, *(ranks[0] for ranks in groups.values())}),),
            messages=tuple(Message(ranks[0], _ROOT, box) for box, ranks in groups.items()),
            reduction=move.reduction if move.accumulate else None,
            accumulate=move.accumulate,
        )
        return Plan(move, self.name, (*steps, gather), scratch)

    def _refuse_gather(
        self, move: Redistribution, groups: dict[Box, tuple[int, ...]]
    ) -> Refusal | None:
        boxes = list(groups)
        if not boxes:
            return Refusal(self.name, "no rank holds anything")
        if sum(map(intervals.volume, boxes)) != intervals.union_volume(boxes):
            return Refusal(self.name, f"the tiles of {move.source} overlap and are not equal")
        if move.reduction:
            operands = {move.source.operand(r) for box in boxes for r in groups[box]}
            for box, ranks in groups.items():
                if len(ranks) != len(operands):
                    return Refusal(
                        self.name, f"[{intervals.box_text(box)}] lacks an operand of another box"
                    )
        return None


def _is_root(layout: Layout) -> bool:
    return layout.partial is None and layout.holders() == {
        intervals.whole(layout.extents): (_ROOT,)
    }


def _root_first(ranks: set[int] | tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(ranks))


def _reduce(move: Redistribution, groups: dict[Box, tuple[int, ...]], target: int) -> Step:
    return Step(
        StepKind.REDUCE,
        source=0,
        target=target,
        groups=tuple(ranks for ranks in groups.values() if len(ranks) > 1),
        messages=tuple(
            Message(rank, ranks[0], box) for box, ranks in groups.items() for rank in ranks
        ),
        reduction=move.reduction,
    )
