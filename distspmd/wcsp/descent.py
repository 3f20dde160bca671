"""Descent: one variable after the other takes its cheapest choice that fits, until none changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distspmd.wcsp.problem import Choices, Problem
from distspmd.wcsp.run import Run
from distspmd.wcsp.state import State

_ROUNDING = 1e-14
"""Differences below this part of the price of what is forbidden are not told apart."""


@dataclass(frozen=True, slots=True)
class Descent:
    """Descents from several assignments, the same ones each time."""

    starts: int = 16
    name: str = "descent"

    def refusal(self, problem: Problem) -> str:
        """It takes every problem."""
        return ""

    def solve(self, run: Run) -> None:
        """Descend from the least usages, from the least costs, and from random assignments."""
        problem = run.problem
        run.prove(least_costs(problem))
        random = np.random.default_rng(0)
        least = least_usages(problem)
        cheapest = np.array([int(np.argmin(costs)) for costs in problem.unary], np.int64)
        state = State(problem, least)
        for start in range(self.starts):
            if run.over:
                return
            if start:
                state.restart(cheapest if start == 1 else random.integers(0, problem.sizes))
            descend(state, run, random.permutation(problem.variables) if start else None)
            run.offer(state.choices)


def descend(state: State, run: Run, order: Choices | None = None) -> None:
    """Change single variables while this is cheaper and no limit is exceeded more."""
    waiting = list(order if order is not None else range(state.problem.variables))
    listed = set(waiting)
    for variable in waiting:
        if run.left == 0.0:
            return
        listed.discard(variable)
        costs = np.where(state.fitting(variable), state.marginal[variable], np.inf)
        choice = int(np.argmin(costs))
        if costs[choice] < costs[state.choices[variable]] - _ROUNDING * state.forbidden:
            concerned = state.change(variable, choice)
            waiting.extend(other for other in concerned if other not in listed)
            listed.update(concerned)


def least_usages(problem: Problem) -> Choices:
    """For each variable the allowed choice that takes least of all limits, in parts of them."""
    taken = [np.where(np.isinf(costs), np.inf, 0.0) for costs in problem.unary]
    for loads in problem.loads:
        for variable, amounts in zip(loads.variables, loads.amounts, strict=True):
            taken[variable] = taken[variable] + amounts / max(loads.limit.capacity, 1.0)
    return np.array([int(np.argmin(amounts)) for amounts in taken], np.int64)


def least_costs(problem: Problem) -> float:
    """The sum of the least costs of all variables and pairs."""
    own = sum(float(costs.min()) for costs in problem.unary)
    return own + sum(float(pair.costs.min()) for pair in problem.pairs)
