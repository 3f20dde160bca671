"""Sums with the same bits on any number of ranks: operands are combined in a fixed order.

A library combines the operands of MPI_Reduce in an order of its own, which may change with the
number of ranks, the size and the machine. Here, each receiver gets all operands as messages and
combines them in the order of their ranks, which is the order of the coordinates of the grid.
"""

from __future__ import annotations

from dataclasses import replace

from distspmd.plans.collectives import StepKind
from distspmd.plans.plan import Plan, Step


def order_by_rank(plan: Plan) -> Plan:
    """The plan with every reduction as an exchange, whose messages come in the order of ranks."""
    if not any(step.reduction for step in plan.steps):
        return plan
    return replace(plan, steps=tuple(map(_in_order, plan.steps)))


def _in_order(step: Step) -> Step:
    if step.reduction is None:
        return step
    messages = sorted(step.messages, key=lambda message: message.sender)
    return replace(step, kind=StepKind.EXCHANGE, messages=tuple(messages))
