"""Tied variables as one: a problem with ties -> the same problem of fewer variables and no ties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from distspmd.wcsp.problem import Costs, Pair, Problem


def untie(problem: Problem) -> tuple[Problem, NDArray[np.int64]]:
    """Make one variable of each group of tied ones.

    Returns:
        The problem without ties, and for each variable of the original the one that stands for it:
        an assignment of the former becomes one of the latter as ``choices[places]``.
    """
    leaders = _leaders(problem)
    kept, places = np.unique(leaders, return_inverse=True)
    unary = [np.zeros(problem.sizes[variable]) for variable in kept]
    for place, costs in zip(places, problem.unary, strict=True):
        unary[place] += costs
    joined: dict[tuple[int, int], Costs] = {}
    pairs = []
    for pair in problem.pairs:
        first, second = int(places[pair.first]), int(places[pair.second])
        if first == second:
            unary[first] += np.diagonal(pair.costs)
        elif len(kept) == problem.variables:
            pairs.append(pair)
        else:
            key, costs = (first, second), pair.costs
            if first > second:
                key, costs = (second, first), pair.costs.T
            joined[key] = joined[key] + costs if key in joined else costs
    pairs += [Pair(first, second, costs) for (first, second), costs in joined.items()]
    limits = tuple(
        replace(
            limit,
            usages=tuple(
                usage._replace(variable=int(places[usage.variable])) for usage in limit.usages
            ),
        )
        for limit in problem.limits
    )
    return Problem(tuple(unary), tuple(pairs), limits), places


def _leaders(problem: Problem) -> NDArray[np.int64]:
    """For each variable the first of those that it is tied to, directly or through others."""
    leaders = np.arange(problem.variables)
    for group in problem.ties:
        found = {int(leaders[variable]) for variable in group}
        leaders[np.isin(leaders, list(found))] = min(found, default=0)
    return leaders
