"""The choice of a plan: all solvers are asked, and the cheapest plan on the machine model wins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from distspmd.errors import NoSolver, PlanError
from distspmd.plans.cost import Cost, cost
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.machine import Machine
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.rewrites.chunk import chunk
from distspmd.plans.rewrites.drop_operands import ask
from distspmd.plans.rewrites.rank_order import order_by_rank
from distspmd.plans.solver import Refusal, Solver


@dataclass(frozen=True, slots=True)
class Solution:
    """The plan that was chosen, what it costs, and what became of the other solvers."""

    plan: Plan
    cost: Cost
    losers: tuple[tuple[Plan, Cost], ...]
    refusals: tuple[Refusal, ...]


def select_plan(
    redistribution: Redistribution,
    solvers: Sequence[Solver],
    machine: Machine | None = None,
    max_memory: int | None = None,
    in_order: bool = False,
) -> Solution:
    """Ask the solvers, in order; of equally cheap plans the first wins.

    Args:
        redistribution: what to plan.
        solvers: whom to ask.
        machine: what messages and bytes cost.
        max_memory: most bytes that may live on a rank at once; calls are cut into rounds for it.
        in_order: whether operands of reductions shall be combined in the order of ranks.

    Raises:
        NoSolver: all refuse; says why.
    """
    costed: list[tuple[Plan, Cost]] = []
    refusals: list[Refusal] = []
    for solver in solvers:
        if machine and hasattr(solver, "on"):
            solver = solver.on(machine)
        asked = redistribution.with_operands
        hopeless = _hopeless(solver, asked, costed, machine or Machine())
        answer: Plan | Refusal = hopeless or ask(solver, redistribution)
        if isinstance(answer, Plan) and in_order:
            answer = order_by_rank(answer)
        if isinstance(answer, Plan) and max_memory is not None:
            answer = bound_rounds(answer, int(max_memory))
        if isinstance(answer, Plan):
            costed.append((answer, cost(answer, machine or Machine())))
        else:
            refusals.append(answer)
    if not costed:
        raise NoSolver(f"no solver moves {redistribution}: " + "; ".join(map(str, refusals)) + ".")
    costed.sort(key=lambda item: item[1].seconds)
    return Solution(*costed[0], losers=tuple(costed[1:]), refusals=tuple(refusals))


def _hopeless(
    solver: Solver,
    redistribution: Redistribution,
    costed: Sequence[tuple[Plan, Cost]],
    machine: Machine,
) -> Refusal | None:
    """A refusal for a solver whose messages would take seconds to list, where a plan is there.

    Of some messages for each rank only where these alone cost more than that plan.
    """
    calls = solver.calls(redistribution) if hasattr(solver, "calls") else 0
    best = min((cost.seconds for _, cost in costed), default=math.inf)
    if costed and calls * redistribution.ranks > HEURISTICS.most_messages:
        return Refusal(solver.name, f"{calls * redistribution.ranks} messages, and there is a plan")
    if calls < HEURISTICS.judged_messages or calls * machine.alpha <= best:
        return None
    return Refusal(
        solver.name, f"{calls} messages to a rank cost more than the {best:.1e} s of another plan"
    )


def bound_rounds(plan: Plan, max_memory: int) -> Plan | Refusal:
    """The plan in rounds that keep every rank within a number of bytes, or why there are none."""
    if plan.peaks.max(initial=0) <= max_memory:
        return plan
    held = max(int(plan.resident(n).max(initial=0)) for n in range(max(1, len(plan.steps))))
    room = max_memory // plan.itemsize - held
    least = f"its tiles and scratch are {held * plan.itemsize} bytes on a rank"
    if room < 2:
        return Refusal(plan.solver, f"{least}, and max_memory is {max_memory}")
    try:
        return chunk(plan, room // 2)
    except PlanError as error:
        return Refusal(plan.solver, f"{least}, and {error}")
