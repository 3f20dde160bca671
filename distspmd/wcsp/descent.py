"""Descent: one variable after the other takes its cheapest choice that fits, until none changes.

It needs nothing but NumPy. Its bound comes from messages, and so do the assignments that it starts
from, besides random ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distspmd.wcsp.messages import Messages
from distspmd.wcsp.problem import Choices, Problem
from distspmd.wcsp.run import Run
from distspmd.wcsp.state import State

_ROUNDING = 1e-14
"""Differences below this part of the price of what is forbidden are not told apart."""
_SWEEPS, _STARTS = 200, 16
_STEP, _SHORTER = 0.5, 0.97  # of prices: a part of the gap, and the factor after each


@dataclass(frozen=True, slots=True)
class Descent:
    """Descents from several assignments, the same ones each time, beside a bound by messages."""

    name: str = "descent"

    def refusal(self, problem: Problem) -> str:
        """It takes every problem."""
        return ""

    def solve(self, run: Run) -> None:
        """Descend from what messages suggest, and from random assignments."""
        problem = run.problem
        run.prove(least_costs(problem))
        state = State(problem, least_usages(problem))
        descend(state, run)
        run.offer(state.choices)
        follow_messages(run, state, _SWEEPS)
        random = np.random.default_rng(0)
        for _ in range(_STARTS):
            if run.over:
                return
            _descend_from(random.integers(0, problem.sizes), state, run)


def follow_messages(run: Run, state: State, sweeps: int) -> None:
    """Descend from what messages suggest after each of some sweeps, which raise the bound."""
    messages = Messages(run.problem)
    step = _STEP
    for _ in range(sweeps):
        if run.over or run.bound == np.inf:  # nothing is allowed
            return
        messages.sweep()
        run.prove(messages.bound())
        _descend_from(messages.following(), state, run)
        gap = abs(run.bound) if run.choices is None else run.cost - run.bound
        messages.charge(step * gap)
        step *= _SHORTER


def _descend_from(choices: Choices, state: State, run: Run) -> None:
    state.restart(choices)
    fit(state)
    descend(state, run)
    run.offer(state.choices)


def fit(state: State) -> None:
    """Change variables until no limit is exceeded, each where it costs least for what it gives.

    No choice is taken twice for a limit: what one gives at one time it may take at another, so that
    two choices could take turns for ever.
    """
    for number, limit in enumerate(state.problem.limits):
        takers = [
            (variable, amounts, live)
            for variable in range(state.problem.variables)
            for of, amounts, live in state.usages(variable)
            if of == number and amounts.max() > amounts.min()
        ]
        taken = [np.zeros(size, np.bool_) for size in state.problem.sizes]
        load = state.loads[number]
        while len(load) and load.max() > limit.capacity:
            worst = int(np.argmax(load))
            best: tuple[float, int, int] | None = None
            for variable, amounts, live in takers:
                given = amounts[state.choices[variable]] - amounts
                given[taken[variable]] = 0.0
                if not (live.start <= worst < live.stop and given.max() > 0):
                    continue
                more = state.marginal[variable] - state.marginal[variable][state.choices[variable]]
                useful = np.minimum(given, load[worst] - limit.capacity)
                price = np.full(len(given), np.inf)
                np.divide(more, useful, out=price, where=given > 0)
                choice = int(np.argmin(price))
                if best is None or price[choice] < best[0]:
                    best = float(price[choice]), variable, choice
            if best is None:
                break
            taken[best[1]][best[2]] = True
            state.change(best[1], best[2])


def descend(state: State, run: Run) -> None:
    """Change single variables while this is cheaper and no limit is exceeded more."""
    waiting = [*range(state.problem.variables)]
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
