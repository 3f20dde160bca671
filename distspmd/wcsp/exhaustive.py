"""Tries all assignments, in order: for tiny problems, and as the reference of other solvers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distspmd.wcsp.problem import Choices, Costs, Problem
from distspmd.wcsp.run import Run

_MOST_DIGITS = 4.2
"""Decimal digits of the number of assignments above which others are asked."""


@dataclass(frozen=True, slots=True)
class Exhaustive:
    """All assignments at once, as arrays of costs and loads."""

    name: str = "exhaustive"

    def refusal(self, problem: Problem) -> str:
        """Why the problem is not for this solver; empty if it is."""
        digits = float(np.log10(problem.sizes).sum())
        return f"there are 10**{digits:.1f} assignments" if digits > _MOST_DIGITS else ""

    def solve(self, run: Run) -> None:
        """Find the first of the cheapest assignments."""
        problem = run.problem
        everything = np.indices(tuple(problem.sizes.tolist())).reshape(problem.variables, -1)
        costs = _costs(problem, everything)
        best = int(np.argmin(costs))
        run.offer(everything[:, best])
        run.prove(float(costs[best]))


def _costs(problem: Problem, everything: Choices) -> Costs:
    """What each column costs; infinite where it is not allowed."""
    costs = np.zeros(everything.shape[1])
    for own, chosen in zip(problem.unary, everything, strict=True):
        costs += own[chosen]
    for pair in problem.pairs:
        costs += pair.costs[everything[pair.first], everything[pair.second]]
    for loads in problem.loads:
        for time in range(len(loads.times)):
            taken = np.zeros(len(costs))
            live = np.flatnonzero((loads.begins <= time) & (time < loads.ends))
            for usage in live:
                taken += loads.amounts[usage][everything[loads.variables[usage]]]
            costs[taken > loads.limit.capacity] = np.inf
    return costs
