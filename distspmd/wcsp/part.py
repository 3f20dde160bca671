"""A part of a problem: some variables are free, all others keep their present choices.

Invariant: choices of the part that cost less than the present ones and keep within ``rows`` make
the whole assignment cheaper by the difference, and exceed no limit more than before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distspmd.wcsp.problem import Costs
from distspmd.wcsp.state import State


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Free variables, numbered from 0, with what depends on them.

    Attributes:
        variables: Those of the problem.
        unary: What their choices cost, beside the neighbours that are not free.
        pairs: Two free variables, and what they cost together.
        rows: At one point in time, what is left of a limit, and what the choices of the free
            variables take of it.
        ceiling: What the present choices cost, or, where these exceed a limit and the rows do not
            let them, more than any others.
    """

    variables: tuple[int, ...]
    unary: tuple[Costs, ...]
    pairs: tuple[tuple[int, int, Costs], ...]
    rows: tuple[tuple[float, tuple[tuple[int, Costs], ...]], ...]
    ceiling: float

    @property
    def least(self) -> float:
        """The sum of the least costs of all tables, which no assignment undercuts."""
        own = sum(float(costs.min()) for costs in self.unary)
        return own + sum(float(costs.min()) for _, _, costs in self.pairs)

    @property
    def elements(self) -> int:
        """How many numbers it consists of."""
        return sum(map(len, self.unary)) + sum(costs.size for _, _, costs in self.pairs)


def part_of(state: State, variables: Sequence[int], *, strict: bool = False) -> Part:
    """What the present choices leave to some variables.

    Args:
        strict: Whether limits hold even where the present choices exceed them.
    """
    place = {variable: number for number, variable in enumerate(variables)}
    unary, pairs = [], []
    cost = 0.0
    for variable, number in place.items():
        own = state.own(variable).copy()
        for other, costs in state.tables(variable):
            if other not in place:
                own += costs[:, state.choices[other]]
            elif variable < other:
                pairs.append((number, place[other], costs))
                cost += float(costs[state.choices[variable], state.choices[other]])
        cost += float(own[state.choices[variable]])
        unary.append(own)
    if strict and state.overrun():
        cost = 1.0 + sum(float(costs.max()) for costs in (*unary, *(pair[2] for pair in pairs)))
    rows = _rows(state, place, strict)
    return Part(tuple(variables), tuple(unary), tuple(pairs), rows, cost)


def _rows(
    state: State, place: dict[int, int], strict: bool
) -> tuple[tuple[float, tuple[tuple[int, Costs], ...]], ...]:
    """What the free variables may take where they can take too much; of equal rows the tightest."""
    rows: dict[tuple[int, ...], tuple[float, tuple[tuple[int, Costs], ...]]] = {}
    for number, limit in enumerate(state.problem.limits):
        usages = [
            (free, amounts, live)
            for variable, free in place.items()
            for of, amounts, live in state.usages(variable)
            if of == number and amounts.any()
        ]
        now = np.zeros(len(state.loads[number]))
        most = np.zeros(len(now))
        chosen = state.choices[[*place]]
        for free, amounts, live in usages:
            now[live] += amounts[chosen[free]]
            most[live] += amounts.max()
        left = limit.capacity - (state.loads[number] - now)
        if not strict:
            left = np.maximum(left, now)
        tight = np.flatnonzero(most > left)
        live_at: list[list[int]] = [[] for _ in tight]
        for usage, (_, _, live) in enumerate(usages):
            for place_in_tight in range(*np.searchsorted(tight, (live.start, live.stop))):
                live_at[place_in_tight].append(usage)
        for time, together in zip(tight.tolist(), live_at, strict=True):
            key = (number, *together)
            if key not in rows or left[time] < rows[key][0]:
                rows[key] = (float(left[time]), _terms([usages[usage] for usage in together]))
    return tuple(rows.values())


def _terms(usages: Sequence[tuple[int, Costs, slice]]) -> tuple[tuple[int, Costs], ...]:
    """What each free variable takes, if several usages of it are live, too."""
    terms: dict[int, Costs] = {}
    for free, amounts, _ in usages:
        terms[free] = terms[free] + amounts if free in terms else amounts
    return tuple(terms.items())
