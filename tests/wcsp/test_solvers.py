"""The contract of all solvers: what they answer is allowed, and the bound is one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from wcsp.problems import optimum, problems

from distspmd.errors import NoAssignment
from distspmd.wcsp.problem import Pair, Problem
from distspmd.wcsp.run import Run
from distspmd.wcsp.solver import SOLVERS, Solver, solve

EACH = pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)


@EACH
@given(problem=problems())
def test_the_answer_costs_what_it_says_and_the_bound_is_below_the_optimum(
    solver: Solver, problem: Problem
) -> None:
    best = optimum(problem)
    try:
        found = solve(problem, seconds=60, solver=solver.name)
    except NoAssignment:
        assert solver.name != "exhaustive" or best == np.inf
        return
    assert found.cost == problem.cost(found.choices) < np.inf
    assert found.bound <= best + 1e-9 * abs(best)
    assert best <= found.cost
    assert found.gap >= 0
    if solver.name == "exhaustive":
        assert found.cost == best
        assert found.gap == 0


@EACH
@settings(max_examples=8)
@given(problem=problems())
def test_the_same_problem_has_the_same_answer(solver: Solver, problem: Problem) -> None:
    def answer() -> tuple[object, ...]:
        try:
            found = solve(problem, seconds=60, solver=solver.name)
        except NoAssignment as none:
            return (str(none),)
        return found.choices.tolist(), found.cost, found.bound

    assert answer() == answer()


@given(problem=problems())
def test_progress_tells_the_history(problem: Problem) -> None:
    told: list[tuple[float, float, float]] = []
    try:
        found = solve(problem, seconds=60, progress=lambda *step: told.append(step))
    except NoAssignment:
        return
    assert told == [*found.history]
    assert told[-1][1:] == pytest.approx((found.cost, found.bound))


def test_a_solver_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no solver is called 'oracle': there are exhaustive"):
        solve(Problem((np.zeros(1),)), seconds=1, solver="oracle")


def test_a_solver_says_why_it_refuses() -> None:
    random = np.random.default_rng(0)
    pairs = tuple(Pair(i, j, random.random((4, 4))) for i in range(20) for j in range(i))
    with pytest.raises(ValueError, match=r"exhaustive: there are 10\*\*12.0 assignments"):
        solve(Problem((np.zeros(4),) * 20, pairs), seconds=1, solver="exhaustive")


@EACH
def test_what_nothing_forbids_has_an_answer(solver: Solver) -> None:
    found = solve(Problem((np.array([2.0, 1.0]),)), seconds=60, solver=solver.name)
    assert found.choices.tolist() == [1]


def test_a_search_ends_with_a_gap_that_is_small_enough() -> None:
    problem = Problem((np.array([10.0, 8.0]),))
    for enough, bound, over in ((0.0, 7.9, False), (0.2, 6.3, False), (0.2, 6.5, True)):
        run = Run(problem, 1e9, enough=enough)
        run.prove(bound)
        assert not run.over
        run.offer(np.array([1]))
        assert run.over is over
        assert not run.closed
