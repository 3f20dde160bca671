"""Choosing a plan: every solver is asked, and the cheapest plan on the machine model wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from distspmd.cost import Cost, cost
from distspmd.errors import NoSolver
from distspmd.machine import Machine
from distspmd.plans import Plan, Refusal
from distspmd.redistribution import Redistribution


class Solver(Protocol):
    """Turns a redistribution into a plan, or says why not; estimates no time, emits no code."""

    @property
    def name(self) -> str:
        """Name by which a user asks for the solver."""

    def plan(self, redistribution: Redistribution) -> Plan | Refusal:
        """Answer a redistribution."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The plan that was chosen, what it costs, and what became of the other solvers."""

    plan: Plan
    cost: Cost
    losers: tuple[tuple[Plan, Cost], ...]
    refusals: tuple[Refusal, ...]


def solve(
    redistribution: Redistribution,
    solvers: Sequence[Solver],
    machine: Machine | None = None,
) -> Solution:
    """Ask the solvers, in order; of equally cheap plans the first wins.

    Raises:
        NoSolver: all refuse; says why.
    """
    answers = [solver.plan(redistribution) for solver in solvers]
    refusals = tuple(answer for answer in answers if isinstance(answer, Refusal))
    costed = sorted(
        ((plan, cost(plan, machine or Machine())) for plan in answers if isinstance(plan, Plan)),
        key=lambda item: item[1].seconds,
    )
    if not costed:
        raise NoSolver(f"no solver moves {redistribution}: " + "; ".join(map(str, refusals)) + ".")
    return Solution(*costed[0], losers=tuple(costed[1:]), refusals=refusals)
