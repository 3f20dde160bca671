"""Exact reductions: a problem -> a smaller one, whose best assignments are those of the first.

Choices go that another one replaces at no cost, wherever it stands, or that no neighbour or limit
allows. Variables go that have one choice, or at most two neighbours and no part in a limit: what
they cost best is added to their neighbours. Points in time go at which no limit can be exceeded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import NoAssignment
from distspmd.wcsp.problem import Choices, Costs, Limit, Pair, Problem, Usage

_LARGEST_TABLE = 1 << 12
"""Elements above which no table of two neighbours is made for a variable between them."""

_LARGEST_COMPARISON = 1 << 24
"""Elements above which the choices of a variable are not compared with each other."""

_SAMPLED = 6
"""Choices of a neighbour, about, by which most choices are seen not to replace each other."""

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A smaller problem, and the way back.

    Attributes:
        problem: Its last variable has one choice, which takes what all assignments take.
        offset: What an assignment of the original costs more than that of the smaller one.
        kept: For each variable of the smaller problem but the last that of the original.
    """

    problem: Problem
    offset: float
    kept: tuple[int, ...]
    _remaining: tuple[Places, ...]
    _gone: tuple[_Gone, ...]

    def restore(self, choices: Choices) -> Choices:
        """The assignment of the original that belongs to one of the smaller problem."""
        original = np.zeros(len(self._remaining), np.int64)
        for variable, choice in zip(self.kept, choices[:-1], strict=True):
            original[variable] = self._remaining[variable][choice]
        for gone in reversed(self._gone):
            costs = gone.unary.copy()
            for other, remaining, table in gone.neighbours:
                costs += table[:, np.searchsorted(remaining, original[other])]
            original[gone.variable] = gone.remaining[np.argmin(costs)]
        return original


@dataclass(frozen=True, slots=True, eq=False)
class _Gone:
    """A variable that went: its choices, their costs, and those of its neighbours, as of then."""

    variable: int
    remaining: Places
    unary: Costs
    neighbours: tuple[tuple[int, Places, Costs], ...]


@dataclass(slots=True, eq=False)
class _Part:
    """What a variable takes of a limit beyond its least, at the points from begin until end."""

    limit: int
    amounts: Costs
    begin: int
    end: int


def reduce(problem: Problem) -> Reduction:
    """Reduce a problem without ties as far as this costs nothing.

    Raises:
        NoAssignment: Nothing is allowed, and that is seen without a search.
    """
    return _Reducer(problem).run()


class _Reducer:
    """A problem while it shrinks.

    Tables stand at both of their variables, transposed at the second. ``_base`` is what all
    assignments take of each limit; parts are what choices take beyond it.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._unary: list[Costs] = [costs.copy() for costs in problem.unary]
        self._remaining = [np.arange(len(costs)) for costs in problem.unary]
        self._tables: list[dict[int, Costs]] = [{} for _ in problem.unary]
        self._gone: list[_Gone] = []
        self._alive = np.ones(problem.variables, np.bool_)
        self._offset = 0.0
        for pair in problem.pairs:
            self._add_table(pair.first, pair.second, pair.costs)
        self._parts: list[list[_Part]] = [[] for _ in problem.unary]
        self._base = [np.zeros(len(loads.times)) for loads in problem.loads]
        self._times = [loads.times for loads in problem.loads]
        for number, loads in enumerate(problem.loads):
            rows = zip(loads.variables, loads.amounts, loads.begins, loads.ends, strict=True)
            for variable, amounts, begin, end in rows:
                part = _Part(number, amounts.astype(np.float64), int(begin), int(end))
                self._parts[int(variable)].append(part)

    def run(self) -> Reduction:
        """Shrink until nothing changes."""
        waiting = list(range(self._problem.variables))
        while waiting:
            for variable in range(self._problem.variables):
                self._settle(variable)
            self._check_limits()
            again: dict[int, None] = {}
            for variable in dict.fromkeys([*waiting, *self._drop_slack()]):
                if self._alive[variable]:
                    again.update(dict.fromkeys(self._visit(variable)))
            waiting = [variable for variable in again if self._alive[variable]]
        return self._reduction()

    def _visit(self, variable: int) -> list[int]:
        """Shrink one variable; those that are to be visited for it."""
        neighbours = [*self._tables[variable]]
        before = len(self._remaining[variable])
        self._keep(variable, self._possible(variable))
        self._keep(variable, self._undominated(variable))
        changed = len(self._remaining[variable]) < before
        if self._eliminate(variable):
            return neighbours
        return [variable, *neighbours] if changed else []

    def _possible(self, variable: int) -> NDArray[np.bool_]:
        """Which choices some choice of each neighbour allows, and each limit alone."""
        possible = np.isfinite(self._unary[variable])
        for table in self._tables[variable].values():
            possible &= np.isfinite(table).any(axis=1)
        for part in self._parts[variable]:
            room = self._problem.limits[part.limit].capacity
            room -= float(self._base[part.limit][part.begin : part.end].max(initial=0.0))
            possible &= part.amounts <= room
        return possible

    def _undominated(self, variable: int) -> NDArray[np.bool_]:
        """Which choices no other one replaces at no cost, whatever the others choose."""
        own = self._unary[variable]
        size = len(own)
        kept = np.ones(size, np.bool_)
        widest = max((table.shape[1] for table in self._tables[variable].values()), default=1)
        if size < 2 or size * size * widest > _LARGEST_COMPARISON:
            return kept
        excess = own[:, None] - own[None, :]
        for part in self._parts[variable]:
            excess[part.amounts[:, None] < part.amounts[None, :]] = -np.inf
        tables = [*self._tables[variable].values()]
        with np.errstate(invalid="ignore"):  # what is no number is not above zero
            for table in tables:  # some choices of the neighbour tell most pairs apart
                excess += _least_excess(table[:, :: 1 + table.shape[1] // _SAMPLED])
        np.fill_diagonal(excess, -np.inf)
        worse = excess >= 0
        first, second = np.nonzero(worse)
        if not len(first):
            return kept
        worse[first, second] = self._replaced(variable, first, second) >= 0
        for choice in np.flatnonzero(worse.any(axis=1)):
            if (worse[choice] & kept).any():
                kept[choice] = False
        return kept

    def _replaced(self, variable: int, first: Places, second: Places) -> Costs:
        """For pairs of choices by how much the first costs more than the second at least."""
        own = self._unary[variable]
        excess = own[first] - own[second]
        for table in self._tables[variable].values():
            columns = np.ascontiguousarray(table.T)  # whose least are found faster than of rows
            excess += _excess(columns[:, first], columns[:, second]).min(axis=0)
        return excess

    def _keep(self, variable: int, kept: NDArray[np.bool_]) -> None:
        if kept.all():
            return
        if not kept.any():
            raise NoAssignment(
                f"no choice of variable {variable} is left: each is forbidden, or excluded by all "
                "choices of another variable, or exceeds a limit even where all others take least"
            )
        self._unary[variable] = self._unary[variable][kept]
        self._remaining[variable] = self._remaining[variable][kept]
        for part in self._parts[variable]:
            part.amounts = part.amounts[kept]
        for other in self._tables[variable]:
            self._set_table(variable, other, self._tables[variable][other][kept])

    def _eliminate(self, variable: int) -> bool:
        """Take a variable out whose best choice follows from those of at most two others."""
        self._settle(variable)
        tables = self._tables[variable]
        if self._parts[variable] or (len(tables) > 2 and len(self._unary[variable]) > 1):
            return False
        unary = self._unary[variable]
        others = [*tables]
        if len(unary) == 1:
            self._offset += float(unary[0])
            for other in others:
                self._unary[other] += tables[other][0]
        elif len(others) == 2:
            first, second = (tables[other] for other in others)
            if first.shape[1] * second.shape[1] > _LARGEST_TABLE:
                return False
            joined = (unary[:, None, None] + first[:, :, None] + second[:, None, :]).min(axis=0)
            self._add_table(others[0], others[1], joined)
        elif others:
            self._unary[others[0]] += (unary[:, None] + tables[others[0]]).min(axis=0)
        else:
            self._offset += float(unary.min())
        neighbours = tuple((other, self._remaining[other], tables[other]) for other in others)
        self._gone.append(_Gone(variable, self._remaining[variable], unary, neighbours))
        self._alive[variable] = False
        for other in others:
            del self._tables[other][variable]
        self._tables[variable] = {}
        return True

    def _settle(self, variable: int) -> None:
        """Move the least that a variable takes to the base; parts that take nothing else go."""
        left = []
        for part in self._parts[variable]:
            least = float(part.amounts.min())
            if least:
                self._base[part.limit][part.begin : part.end] += least
                part.amounts = part.amounts - least
            if part.begin < part.end and part.amounts.any():
                left.append(part)
        self._parts[variable] = left

    def _check_limits(self) -> None:
        for number, (limit, base) in enumerate(zip(self._problem.limits, self._base, strict=True)):
            if len(base) and base.max() > limit.capacity:
                time = int(self._times[number][np.argmax(base)])
                raise NoAssignment(
                    f"{limit.name} has a capacity of {limit.capacity:.15g}, and at the time {time} "
                    f"no assignment takes less than {base.max():.15g}: allow that or more"
                )

    def _drop_slack(self) -> list[int]:
        """Drop the points in time at which the largest choices fit together.

        Returns:
            The variables that have no part in a limit any more.
        """
        most = [base.copy() for base in self._base]
        for parts in self._parts:
            for part in parts:
                most[part.limit][part.begin : part.end] += part.amounts.max()
        tight = [
            above > limit.capacity for above, limit in zip(most, self._problem.limits, strict=True)
        ]
        if all(points.all() for points in tight):
            return []
        freed = []
        self._base = [base[points] for base, points in zip(self._base, tight, strict=True)]
        self._times = [times[points] for times, points in zip(self._times, tight, strict=True)]
        before = [np.concatenate([[0], np.cumsum(points)]) for points in tight]
        for variable, parts in enumerate(self._parts):
            for part in parts:
                part.begin = int(before[part.limit][part.begin])
                part.end = int(before[part.limit][part.end])
            self._settle(variable)
            if parts and not self._parts[variable]:
                freed.append(variable)
        return freed

    def _set_table(self, first: int, second: int, costs: Costs) -> None:
        self._tables[first][second] = costs
        self._tables[second][first] = costs.T

    def _add_table(self, first: int, second: int, costs: Costs) -> None:
        present = self._tables[first].get(second)
        self._set_table(first, second, costs if present is None else present + costs)

    def _reduction(self) -> Reduction:
        kept = np.flatnonzero(self._alive).tolist()
        place = {variable: number for number, variable in enumerate(kept)}
        pairs = tuple(
            Pair(place[first], place[second], np.ascontiguousarray(costs))
            for first in kept
            for second, costs in self._tables[first].items()
            if first < second
        )
        usages: list[list[Usage]] = [
            [
                Usage(len(kept), np.array([base]), time, time + 1)
                for time, base in enumerate(row)
                if base
            ]
            for row in self._base
        ]
        for variable in kept:
            for part in self._parts[variable]:
                usage = Usage(place[variable], part.amounts, part.begin, part.end)
                usages[part.limit].append(usage)
        limits = tuple(
            Limit(limit.capacity, tuple(rows), limit.name)
            for limit, rows in zip(self._problem.limits, usages, strict=True)
            if rows
        )
        unary = (*(self._unary[variable] for variable in kept), np.zeros(1))
        reduced = Problem(unary, pairs, limits)
        return Reduction(
            reduced, self._offset, tuple(kept), tuple(self._remaining), tuple(self._gone)
        )


def _least_excess(table: Costs) -> Costs:
    """For two choices by how much the first costs more than the second at least.

    Where both exclude a choice of the neighbour, that one does not count.
    """
    columns = np.ascontiguousarray(table.T)
    least: Costs = _excess(columns[:, :, None], columns[:, None, :]).min(axis=0)
    return least


def _excess(mine: Costs, other: Costs) -> Costs:
    """By how much costs are above others; infinite where they are, whatever the others are."""
    ours, theirs = np.isinf(mine), np.isinf(other)
    if not ours.any() and not theirs.any():
        found: Costs = mine - other
        return found
    excess = np.where(ours, 0.0, mine) - np.where(theirs, 0.0, other)
    excess[np.broadcast_to(theirs, excess.shape)] = -np.inf
    excess[np.broadcast_to(ours, excess.shape)] = np.inf
    return excess
