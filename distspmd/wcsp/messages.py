"""A lower bound by messages: costs move between variables and pairs until all agree on little.

What moves from a pair to one of its variables is taken from the pair, so that all assignments cost
what they did, and the sum of the least costs of all tables is a bound. It never falls while costs
move; the order is that of TRW-S (Kolmogorov 2006). Limits have prices for each point in time: what
an assignment takes is paid, and the capacities are paid back (Lagrange's multipliers).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distspmd.wcsp.problem import Choices, Costs, Problem
from distspmd.wcsp.state import price_of_forbidden


class _Side(NamedTuple):
    """A pair as one of its variables sees it.

    Attributes:
        costs: a column for each own choice: the least of each column is found faster than of a row.
    """

    number: int
    side: int
    other: int
    costs: Costs


class Messages:
    """Costs of a problem, as they have moved; the least of what is left to each pair is zero.

    Attributes:
        prices: For each limit what one unit costs at each point in time.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        forbidden = price_of_forbidden(problem)
        self._own = [np.where(np.isinf(costs), forbidden, costs) for costs in problem.unary]
        self._pairs = [
            (pair.first, pair.second, np.where(np.isinf(pair.costs), forbidden, pair.costs))
            for pair in problem.pairs
        ]
        self._around: list[list[_Side]] = [[] for _ in problem.unary]
        for number, (first, second, costs) in enumerate(self._pairs):
            self._around[first].append(_Side(number, 0, second, np.ascontiguousarray(costs.T)))
            self._around[second].append(_Side(number, 1, first, np.ascontiguousarray(costs)))
        self._earlier, self._later = (
            [
                [pair for pair in around if (pair.other > variable) == is_later]
                for variable, around in enumerate(self._around)
            ]
            for is_later in (False, True)
        )
        self._moved = [[np.zeros(size) for size in costs.shape] for _, _, costs in self._pairs]
        self.prices = [np.zeros(len(loads.times)) for loads in problem.loads]
        self._charged = [costs.copy() for costs in self._own]
        for later in self._later:
            self._collect(later)

    def sweep(self) -> None:
        """Move costs through all variables, forwards and backwards."""
        variables = range(self._problem.variables)
        for variable in variables:
            self._visit(variable, self._earlier[variable], self._later[variable])
        for variable in reversed(variables):
            self._visit(variable, self._later[variable], self._earlier[variable])

    def _visit(self, variable: int, before: list[_Side], after: list[_Side]) -> None:
        """Collect what the pairs before can give, and hand all on to those that come next.

        What those that come next can give was collected on the way here, and has not changed.
        """
        self._collect(before)
        total = self._charged[variable].copy()
        for pair in self._around[variable]:
            total += self._moved[pair.number][pair.side]
        share = total / max(len(before), len(after), 1)
        for pair in after:
            self._moved[pair.number][pair.side] -= share

    def _collect(self, pairs: list[_Side]) -> None:
        """Move all that pairs are sure to cost to one of their variables."""
        for number, side, _, costs in pairs:
            moved = self._moved[number]
            moved[side] = (costs - moved[1 - side][:, None]).min(axis=0)

    def bound(self) -> float:
        """What no allowed assignment undercuts."""
        bound = sum(float(costs.min()) for costs in self._now())
        for prices, limit in zip(self.prices, self._problem.limits, strict=True):
            bound -= float(prices.sum()) * limit.capacity
        return bound

    def cheapest(self) -> Choices:
        """The choice of each variable that costs least by itself, after what has moved to it."""
        return np.array([int(np.argmin(costs)) for costs in self._now()], np.int64)

    def following(self) -> Choices:
        """The choice of one variable after the other that costs least beside those before it.

        What has moved to it stands for those that come later.
        """
        chosen = np.zeros(self._problem.variables, np.int64)
        for variable, around in enumerate(self._around):
            costs = self._charged[variable].copy()
            for number, side, other, table in around:
                known = other < variable
                costs += table[chosen[other]] if known else self._moved[number][side]
            chosen[variable] = np.argmin(costs)
        return chosen

    def charge(self, step: float) -> None:
        """Raise prices where the cheapest choices take more than there is, and lower the others.

        Args:
            step: The sum by which the bound would rise if it were linear.
        """
        if not self.prices:
            return
        choices = self.cheapest()
        excess = [loads.at(choices) - loads.limit.capacity for loads in self._problem.loads]
        for over, prices in zip(excess, self.prices, strict=True):
            over[(over < 0) & (prices == 0)] = 0.0
        size = sum(float((over**2).sum()) for over in excess)
        if not size:
            return
        self._charged = [costs.copy() for costs in self._own]
        for number, loads in enumerate(self._problem.loads):
            self.prices[number] = np.maximum(
                0.0, self.prices[number] + excess[number] * step / size
            )
            sums = np.concatenate([[0.0], np.cumsum(self.prices[number])])
            paid = sums[loads.ends] - sums[loads.begins]
            for variable, amounts, price in zip(loads.variables, loads.amounts, paid, strict=True):
                self._charged[variable] += amounts * price

    def _now(self) -> list[Costs]:
        """What choices cost by themselves now."""
        now = [costs.copy() for costs in self._charged]
        for (first, second, _), moved in zip(self._pairs, self._moved, strict=True):
            now[first] += moved[0]
            now[second] += moved[1]
        return now
