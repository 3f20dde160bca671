"""The record of one search: its clock, the best assignment so far, and the bound proven so far.

Solvers tell it what they find and ask it whether to go on. The clock decides only when a search
stops: what is found until then depends on the problem alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from distspmd.wcsp.problem import Choices, Problem

Progress = Callable[[float, float, float], None]
_CLOSED = 1e-9  # relative gap that counts as none: below it costs are rounding


class Step(NamedTuple):
    """What was known after so many seconds."""

    seconds: float
    cost: float
    bound: float


class Run:
    """One search for one problem, with its budget.

    Args:
        progress: Is told seconds, cost and bound whenever one of these has improved.
        offset: What is added to costs and bounds in the record alone.
        enough: A gap, as a part of the cost, at which the search ends.
    """

    def __init__(
        self,
        problem: Problem,
        seconds: float,
        progress: Progress | None = None,
        offset: float = 0.0,
        enough: float = 0.0,
    ) -> None:
        self.problem = problem
        self.choices: Choices | None = None
        self.cost = float("inf")
        self.bound = float("-inf")
        self.history: list[Step] = []
        self._begin = time.monotonic()
        self._seconds = seconds
        self._progress = progress
        self._offset = offset
        self._enough = enough

    @property
    def elapsed(self) -> float:
        """Seconds since the search began."""
        return time.monotonic() - self._begin

    @property
    def left(self) -> float:
        """Seconds that the search may still take; never negative."""
        return max(0.0, self._seconds - self.elapsed)

    @property
    def closed(self) -> bool:
        """Whether the best assignment is proven to be one."""
        return self._is_within(_CLOSED)

    @property
    def over(self) -> bool:
        """Whether nothing is left to do, or no time to do it."""
        return self.left == 0.0 or self._is_within(max(_CLOSED, self._enough))

    def _is_within(self, gap: float) -> bool:
        """Whether the bound is as near to the cost as a part of it."""
        if self.choices is None:
            return False
        size = max(abs(self.cost), abs(self.cost + self._offset), 1e-300)
        return self.cost - self.bound <= gap * size

    def offer(self, choices: Choices) -> bool:
        """Keep an assignment if it is allowed and cheaper than the best; say whether it was."""
        cost = self.problem.cost(choices)
        if not cost < self.cost:
            return False
        self.choices, self.cost = np.array(choices, np.int64), cost
        self._record()
        return True

    def prove(self, bound: float) -> None:
        """Say that no allowed assignment costs less."""
        if bound > self.bound:
            self.bound = bound
            self._record()

    def _record(self) -> None:
        bound = min(self.bound, self.cost)
        step = Step(self.elapsed, self.cost + self._offset, bound + self._offset)
        self.history.append(step)
        if self._progress is not None:
            self._progress(*step)
