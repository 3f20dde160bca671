"""An assignment under search: what each choice of each variable would cost now, and fit now.

Invariant: ``marginal`` and ``loads`` belong to ``choices``. Forbidden costs are the finite price
``forbidden``, above the difference of any two allowed assignments, so that sums stay numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from distspmd.wcsp.problem import Choices, Costs, Problem


class State:
    """An assignment whose variables change one at a time.

    Attributes:
        marginal: For each variable what each of its choices costs beside the present choices of
            its neighbours.
        loads: For each limit what is taken at each point in time.
    """

    def __init__(self, problem: Problem, choices: Choices) -> None:
        self.problem = problem
        self.forbidden = price_of_forbidden(problem)
        self._own = [np.where(np.isinf(costs), self.forbidden, costs) for costs in problem.unary]
        self._tables: list[list[tuple[int, Costs]]] = [[] for _ in problem.unary]
        for pair in problem.pairs:
            costs = np.where(np.isinf(pair.costs), self.forbidden, pair.costs)
            self._tables[pair.first].append((pair.second, costs))
            self._tables[pair.second].append((pair.first, np.ascontiguousarray(costs.T)))
        self._usages: list[list[tuple[int, Costs, slice]]] = [[] for _ in problem.unary]
        for number, loads in enumerate(problem.loads):
            rows = zip(loads.variables, loads.amounts, loads.begins, loads.ends, strict=True)
            for variable, amounts, begin, end in rows:
                usage = (number, amounts, slice(int(begin), int(end)))
                self._usages[int(variable)].append(usage)
        self.restart(choices)

    def restart(self, choices: Choices) -> None:
        """Take another assignment."""
        self.choices = np.array(choices, np.int64)
        self.loads = [loads.at(self.choices) for loads in self.problem.loads]
        self.marginal = [np.where(np.isinf(own), self.forbidden, own) for own in self.problem.unary]
        for variable, tables in enumerate(self._tables):
            for other, costs in tables:
                self.marginal[other] += costs[self.choices[variable]]

    def own(self, variable: int) -> Costs:
        """What the choices of a variable cost by themselves."""
        return self._own[variable]

    def tables(self, variable: int) -> list[tuple[int, Costs]]:
        """The neighbours of a variable, with rows of costs for its choices."""
        return self._tables[variable]

    def usages(self, variable: int) -> list[tuple[int, Costs, slice]]:
        """The limits that a variable takes part in, the amounts, and the points in time."""
        return self._usages[variable]

    def fitting(self, variable: int) -> NDArray[np.bool_]:
        """Which choices of a variable leave no limit exceeded more than now."""
        fits = np.ones(len(self.marginal[variable]), np.bool_)
        for number, amounts, live in self._usages[variable]:
            capacity = self.problem.limits[number].capacity
            room = max(0.0, capacity - float(self.loads[number][live].max()))
            fits &= amounts - amounts[self.choices[variable]] <= room
        return fits

    def overrun(self) -> float:
        """By how much the present choices exceed the limit that they exceed most; 0 if none."""
        over = (
            float(load.max(initial=0.0)) - limit.capacity
            for load, limit in zip(self.loads, self.problem.limits, strict=True)
        )
        return max((0.0, *over))

    def change(self, variable: int, choice: int) -> list[int]:
        """Give a variable another choice, and return the neighbours that this concerns."""
        before = self.choices[variable]
        for other, costs in self._tables[variable]:
            self.marginal[other] += costs[choice] - costs[before]
        for number, amounts, live in self._usages[variable]:
            self.loads[number][live] += amounts[choice] - amounts[before]
        self.choices[variable] = choice
        return [other for other, _ in self._tables[variable]]


def price_of_forbidden(problem: Problem) -> float:
    """A price that makes each assignment with something forbidden dearer than all allowed ones."""
    spread = largest = 0.0
    for costs in (*problem.unary, *(pair.costs for pair in problem.pairs)):
        finite = costs[np.isfinite(costs)]
        if finite.size:
            spread += float(finite.max() - finite.min())
            largest = max(largest, float(np.abs(finite).max()))
    return 2.0 * (spread + largest) or 1.0
