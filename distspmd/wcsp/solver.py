"""Solving a problem: the table of solvers, what they answer, and what none can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from distspmd.errors import NoAssignment
from distspmd.wcsp.descent import Descent
from distspmd.wcsp.exhaustive import Exhaustive
from distspmd.wcsp.problem import Choices, Problem
from distspmd.wcsp.reduction import reduce
from distspmd.wcsp.run import Progress, Run, Step
from distspmd.wcsp.ties import untie
from distspmd.wcsp.toulbar2 import Toulbar2


class Solver(Protocol):
    """One method. It tells its run what it finds and proves, and ends when the run is over."""

    @property
    def name(self) -> str:
        """What ``solve(..., solver=)`` calls it."""

    def refusal(self, problem: Problem) -> str:
        """Why the problem, which has no ties, is not for this solver; empty if it is."""

    def solve(self, run: Run) -> None:
        """Look for better assignments and bounds until the run is over or nothing is left."""


SOLVERS: tuple[Solver, ...] = (Exhaustive(), Toulbar2(), Descent())
"""All solvers, in the order in which they are asked: the first that does not refuse solves."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The best assignment that was found, and what no assignment can undercut.

    Attributes:
        bound: A proven lower bound of the cost.
        history: Seconds, cost and bound whenever one of the latter improved.
        solver: The name of the solver.
    """

    choices: Choices
    cost: float
    bound: float
    history: tuple[Step, ...]
    solver: str

    @property
    def gap(self) -> float:
        """By how much a cheaper assignment could be cheaper at most, as a part of the cost."""
        return (self.cost - self.bound) / abs(self.cost) if self.cost > self.bound else 0.0


def solve(
    problem: Problem,
    *,
    seconds: float,
    solver: str | None = None,
    progress: Progress | None = None,
    enough: float = 0.0,
) -> Solution:
    """Choose for all variables at the least cost within all limits.

    Args:
        seconds: The search ends after this time with the best so far, and earlier if that is
            proven to be the best or nothing is left to try.
        solver: The name of one of ``SOLVERS``; the first that does not refuse if None.
        progress: Is told seconds, cost and bound whenever one of these has improved.
        enough: A gap, as a part of the cost, at which the search ends.

    Raises:
        NoAssignment: No assignment is allowed, or none was found that is.
        ValueError: A solver that does not exist, or refuses the problem.
    """
    untied, places = untie(problem)
    reduction = reduce(untied)
    chosen = _choose(reduction.problem, solver)
    run = Run(reduction.problem, seconds, progress, reduction.offset, enough)
    chosen.solve(run)
    if run.choices is None:
        raise NoAssignment("no assignment meets all limits, or none was found that does")
    choices = reduction.restore(run.choices)[places]
    cost = problem.cost(choices)
    bound = cost if run.closed else run.bound + reduction.offset
    return Solution(choices, cost, bound, tuple(run.history), chosen.name)


def _choose(problem: Problem, name: str | None) -> Solver:
    known = {solver.name: solver for solver in SOLVERS}
    if name is not None and name not in known:
        raise ValueError(f"no solver is called {name!r}: there are {', '.join(known)}")
    reasons = []
    for solver in SOLVERS if name is None else [known[name]]:
        if not (reason := solver.refusal(problem)):
            return solver
        reasons.append(f"{solver.name}: {reason}")
    raise ValueError(f"no solver takes the problem; {'; '.join(reasons)}")
