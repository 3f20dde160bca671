"""Search on large neighbourhoods: some variables are free, all others keep their present choices.

The free ones are neighbours of each other. As long as these parts are solved completely, they grow.
When they are the whole problem, or do not help any more, the whole problem is tried once, which
gives the bound, and often a proof. The order is the same each time, and effort is counted in steps
of the exact method: time decides only when all ends. A part that takes too many of them is followed
by a smaller one, with more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from distspmd.errors import NoAssignment
from distspmd.wcsp.descent import descend, follow_messages, least_costs, least_usages
from distspmd.wcsp.part import Part, part_of
from distspmd.wcsp.problem import Choices
from distspmd.wcsp.run import Run
from distspmd.wcsp.state import State

_FIRST, _GROWTH, _SHRINKAGE = 40, 1.06, 0.95  # free variables, and factors
_EFFORT, _HARDER = 1_000, 1.3  # for a part, and the factor where that was not enough
_PROOF = 50_000  # for the whole problem
_FRUITLESS = 200  # parts without success after which the search ends
_COVERED = 40.0  # times that each variable was free without success, after which it ends, too
_ENOUGH = 30  # parts without success after which the whole problem is tried
_SWEEPS = 40  # of messages, before parts are solved
_LARGEST, _PATIENCE = 400_000, 8  # elements from which on parts grow only after so many failures


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What an exact method says of a part.

    Attributes:
        choices: Cheaper ones than the present ones, if any were found.
        bound: What no choices of the part undercut, but for those found.
        complete: Whether ``choices`` are the best, or the present ones if None.
        effort: The steps that were taken.
    """

    choices: Choices | None
    bound: float
    complete: bool
    effort: int


class Exact(Protocol):
    """A method for parts of problems."""

    def improve(self, part: Part, *, effort: int, seconds: float, proof: bool) -> Answer:
        """Look for choices that cost less than the present ones."""


def search(run: Run, method: Exact) -> None:
    """Improve parts of an assignment by a method, until the run is over or nothing helps.

    Raises:
        NoAssignment: The method has proven that there is none.
    """
    problem = run.problem
    run.prove(least_costs(problem))
    state = State(problem, least_usages(problem))
    descend(state, run)
    run.offer(state.choices)
    follow_messages(run, state, _SWEEPS)
    if run.choices is not None:
        state.restart(run.choices)
    random = np.random.default_rng(0)
    variables = np.flatnonzero(problem.sizes > 1)
    size, effort, fruitless, tried = float(_FIRST), _EFFORT, 0, False
    covered = 0.0  # by parts without success: how often each variable was free, on the average
    while not run.over and fruitless < _FRUITLESS and covered < _COVERED:
        if not tried and _is_time(size, fruitless, state):
            tried = True
            if _solve_whole(run, state, method):
                return
        part = part_of(state, _region(state, random, int(size), variables))
        answer = method.improve(part, effort=effort, seconds=run.left, proof=False)
        fruitless, covered = fruitless + 1, covered + len(part.variables) / len(variables)
        if answer.choices is not None and _take(state, part, answer.choices):
            fruitless, covered = 0, 0.0
            run.offer(state.choices)
        if not answer.complete:
            size, effort = max(10.0, size * _SHRINKAGE), min(_PROOF, int(effort * _HARDER))
        elif part.elements <= _LARGEST or fruitless > _PATIENCE:
            size = min(size * _GROWTH, float(len(variables)))


def _is_time(size: float, fruitless: int, state: State) -> bool:
    """Whether to try the whole problem: parts are as large, or do not help, or cannot."""
    open_variables = int(np.count_nonzero(state.problem.sizes > 1))
    return size >= open_variables or fruitless >= _ENOUGH or state.overrun() > 0


def _solve_whole(run: Run, state: State, method: Exact) -> bool:
    """Solve the whole problem; whether that succeeded."""
    part = part_of(state, range(run.problem.variables), strict=True)
    answer = method.improve(part, effort=_PROOF, seconds=run.left, proof=True)
    if answer.choices is not None and _take(state, part, answer.choices):
        run.offer(state.choices)
    if answer.complete and run.choices is None:
        raise NoAssignment("no assignment meets all limits: that is proven")
    run.prove(answer.bound)
    return answer.complete


def _take(state: State, part: Part, choices: Choices) -> bool:
    """Take choices of a part unless they exceed a limit more; whether they were taken."""
    before = state.choices.copy()
    over = state.overrun()
    for variable, choice in zip(part.variables, choices.tolist(), strict=True):
        if state.choices[variable] != choice:
            state.change(variable, choice)
    if state.overrun() <= over:
        return True
    state.restart(before)
    return False


def _region(state: State, random: np.random.Generator, size: int, variables: Choices) -> list[int]:
    """So many variables that hang together, around a random one."""
    seen = np.ones(state.problem.variables, np.bool_)
    seen[variables] = False
    found: list[int] = []
    border: list[int] = []
    while len(found) < max(1, min(size, len(variables))):
        if not border:
            left = np.flatnonzero(~seen)
            border.append(int(left[random.integers(len(left))]))
            seen[border] = True
        nearest = random.random() < 0.5
        variable = border.pop(0 if nearest else int(random.integers(len(border))))
        found.append(variable)
        for other, _ in state.tables(variable):
            if not seen[other]:
                seen[other] = True
                border.append(other)
    return found
