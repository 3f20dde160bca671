"""The problem: variables with choices, costs of choices and of pairs of choices, and limits.

Each variable takes one of its choices, which are numbered from 0. A problem knows nothing of
programs. Costs are finite, or infinite where a choice or a pair of choices is forbidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Costs = NDArray[np.float64]
Choices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """What two variables cost together; several pairs of the same two are added.

    Attributes:
        costs: One row for each choice of ``first``, one column for each of ``second``; infinite
            where the two exclude each other. Pairs may share an array.
    """

    first: int
    second: int
    costs: Costs


class Usage(NamedTuple):
    """What each choice of one variable takes of a limit, from ``begin`` until before ``end``."""

    variable: int
    amounts: Costs
    begin: int = 0
    end: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """A capacity that the usages of no point in time may exceed in sum.

    Points in time are integers. Usages that leave their times out share one point, so that a
    limit can be a plain sum, too. A usage that ends where it begins counts nowhere.
    """

    capacity: float
    usages: tuple[Usage, ...]
    name: str = "the limit"


@dataclass(frozen=True, eq=False)
class Problem:
    """Variables, their costs, and what restricts them.

    Attributes:
        unary: For each variable what each of its choices costs.
        ties: Groups of variables that take the same choice.

    Raises:
        ValueError: A table of the wrong shape, a variable that does not exist, or a cost that is
            neither finite nor positive infinity.
    """

    unary: tuple[Costs, ...]
    pairs: tuple[Pair, ...] = ()
    limits: tuple[Limit, ...] = ()
    ties: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        for variable, costs in enumerate(self.unary):
            _check(costs, (len(costs),), f"the costs of variable {variable}")
            if not len(costs):
                raise ValueError(f"variable {variable} has no choice")
        self._check_variables()
        for pair in self.pairs:
            what = f"the pair {pair.first}, {pair.second}"
            if pair.first == pair.second:
                raise ValueError(f"{what} is one variable: add its costs to those of the variable")
            shape = (len(self.unary[pair.first]), len(self.unary[pair.second]))
            _check(pair.costs, shape, what)
        for limit in self.limits:
            for usage in limit.usages:
                what = f"{limit.name}, variable {usage.variable}"
                _check(usage.amounts, (len(self.unary[usage.variable]),), what)
                if not np.isfinite(usage.amounts).all():
                    raise ValueError(f"{what}: a usage is infinite; forbid the choice instead")
        for group in self.ties:
            if len({len(self.unary[variable]) for variable in group}) > 1:
                raise ValueError(f"the tied variables {group} have different numbers of choices")

    def _check_variables(self) -> None:
        named = [variable for pair in self.pairs for variable in (pair.first, pair.second)]
        named += [usage.variable for limit in self.limits for usage in limit.usages]
        named += [variable for group in self.ties for variable in group]
        for variable in named:
            if not 0 <= variable < len(self.unary):
                raise ValueError(f"variable {variable} of {len(self.unary)} does not exist")

    @property
    def variables(self) -> int:
        """How many variables there are."""
        return len(self.unary)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many choices each variable has."""
        return np.array([len(costs) for costs in self.unary], np.int64)

    @cached_property
    def loads(self) -> tuple[Loads, ...]:
        """The usages of each limit by points in time."""
        return tuple(Loads.of(limit, self.variables) for limit in self.limits)

    def cost(self, choices: Sequence[int] | Choices) -> float:
        """What an assignment costs; infinite if it is forbidden or exceeds a limit."""
        chosen = self._checked(choices)
        if self.overrun(chosen) > 0 or any(
            len({int(chosen[variable]) for variable in group}) > 1 for group in self.ties
        ):
            return float("inf")
        own = sum(float(costs[choice]) for costs, choice in zip(self.unary, chosen, strict=True))
        return own + sum(
            float(pair.costs[chosen[pair.first], chosen[pair.second]]) for pair in self.pairs
        )

    def overrun(self, choices: Sequence[int] | Choices) -> float:
        """By how much an assignment exceeds the limit that it exceeds most; 0 if none."""
        chosen = self._checked(choices)
        return max((loads.overrun(chosen) for loads in self.loads), default=0.0)

    def _checked(self, choices: Sequence[int] | Choices) -> Choices:
        chosen = np.asarray(choices, np.int64)
        if chosen.shape != (self.variables,) or (chosen < 0).any() or (chosen >= self.sizes).any():
            raise ValueError(f"not one choice for each of {self.variables} variables: {choices}")
        return chosen


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """The usages of one limit at those points in time that matter.

    A point matters if what is live there is not all live at another one too, which negative
    usages rule out. Each usage covers consecutive points that matter.

    Attributes:
        times: The points that matter, rising.
        variables: The variable of each usage.
        amounts: The usages of its choices, one array for each usage.
        begins: The first point of each usage, a place in ``times``.
        ends: The place after its last one.
    """

    limit: Limit
    times: NDArray[np.int64]
    variables: NDArray[np.int64]
    amounts: tuple[Costs, ...]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]

    @staticmethod
    def of(limit: Limit, variables: int) -> Loads:
        """The loads of a limit of a problem that has so many variables."""
        usages = [usage for usage in limit.usages if usage.begin < usage.end]
        begins = np.array([usage.begin for usage in usages], np.int64)
        ends = np.array([usage.end for usage in usages], np.int64)
        if all((usage.amounts >= 0).all() for usage in usages):
            times = _last_begins(begins, ends)
        else:
            times = np.unique(np.concatenate([begins, ends]))
        return Loads(
            limit,
            times,
            np.array([usage.variable for usage in usages], np.int64),
            tuple(usage.amounts for usage in usages),
            np.searchsorted(times, begins),
            np.searchsorted(times, ends),
        )

    def at(self, choices: Choices) -> Costs:
        """What an assignment takes at each point in time that matters."""
        taken = np.array(
            [
                amounts[choices[variable]]
                for amounts, variable in zip(self.amounts, self.variables, strict=True)
            ],
            np.float64,
        )
        change = np.zeros(len(self.times) + 1)
        np.add.at(change, self.begins, taken)
        np.subtract.at(change, self.ends, taken)
        return np.cumsum(change)[:-1]

    def overrun(self, choices: Choices) -> float:
        """By how much an assignment exceeds the capacity at its worst point; 0 if nowhere."""
        return max(0.0, float(self.at(choices).max(initial=0.0)) - self.limit.capacity)


def _last_begins(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The begins after which something ends before the next begin: there most is live."""
    starts = np.unique(begins)
    if not len(starts):
        return starts
    first_end = np.searchsorted(np.unique(ends), starts, side="right")
    last = np.append(first_end[1:] != first_end[:-1], True)
    return np.compress(last, starts)


def _check(costs: Any, shape: tuple[int, ...], what: str) -> None:
    if not isinstance(costs, np.ndarray) or costs.shape != shape:
        raise ValueError(f"{what}: not an array of the shape {shape}")
    if np.isnan(costs).any() or (costs == -np.inf).any():
        raise ValueError(f"{what}: costs are numbers, and infinite where something is forbidden")
