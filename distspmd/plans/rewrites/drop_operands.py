"""Plans whose targets are partial: those of a redistribution with a dimension for the operands.

So no solver knows that targets can be partial. Each rank has one operand at a time, so that its
tile is the same without that dimension.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from distspmd.layouts.layout import Layout, Partial
from distspmd.plans.group_messages import GroupMessages
from distspmd.plans.messages import Messages
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.solver import Refusal, Solver


def ask(solver: Solver, move: Redistribution) -> Plan | Refusal:
    """The answer of a solver to a redistribution, whose target may be partial."""
    answer = solver.plan(move.with_operands)
    if move.target.partial is None or isinstance(answer, Refusal):
        return answer
    for layout in answer.scratch:
        if (layout.bounds[layout.volumes > 0, 0] @ [-1, 1] > 1).any():
            return Refusal(solver.name, f"on the way, ranks hold several operands of {move}")
    return Plan(
        move,
        answer.solver,
        tuple(replace(step, messages=_dropped(step.table)) for step in answer.steps),
        tuple(_dropped_layout(layout, move.target.partial) for layout in answer.scratch),
    )


def _dropped(held: Messages) -> Messages:
    """Messages without their first dimension."""
    if isinstance(held, GroupMessages) and _is_of_one_operand(held):
        have, want = held.have[:, 1:], held.want[:, 1:]
        groups = [group.tolist() for group in held.members]
        return GroupMessages(held.spec, groups, have, want, held.to_self, held.traffic)
    return Messages(lambda: np.delete(held.table, [2, 3], axis=1), held.traffic)


def _is_of_one_operand(held: GroupMessages) -> bool:
    """Whether ranks of a group have and want the same operand, so that nothing else meets then."""
    return all(
        len(np.unique(np.concatenate([held.have[group, 0], held.want[group, 0]]), axis=0)) <= 1
        for group in held.members
    )


def _dropped_layout(layout: Layout, partial: Partial) -> Layout:
    """A layout without its first dimension; the axes that split it are partial."""
    if layout.splits is None:
        return Layout.of_bounds(layout.mesh, layout.extents[1:], layout.bounds[:, 1:])
    operands, *splits = layout.splits
    axes = (*operands.axes[::-1], *((layout.partial and layout.partial.axes) or ()))
    own = Partial(partial.reduction, axes) if axes else None
    return Layout(layout.mesh, layout.extents[1:], splits=tuple(splits), partial=own)
