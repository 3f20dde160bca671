from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from wcsp.problems import optimum, problems

from distspmd.errors import NoAssignment
from distspmd.wcsp.problem import Limit, Pair, Problem, Usage
from distspmd.wcsp.reduction import reduce
from distspmd.wcsp.ties import untie


@given(problem=problems())
def test_a_reduced_problem_has_the_same_optimum(problem: Problem) -> None:
    untied, places = untie(problem)
    best = optimum(problem)
    try:
        reduction = reduce(untied)
    except NoAssignment:
        assert best == np.inf
        return
    small = reduction.problem
    assert optimum(small) + reduction.offset == pytest.approx(best, rel=1e-9, abs=1e-9)
    for choices in itertools.islice(itertools.product(*map(range, small.sizes)), 50):
        original = reduction.restore(np.array(choices))[places]
        assert problem.overrun(original) == small.overrun(choices)
        cost = small.cost(choices) + reduction.offset
        assert problem.cost(original) == pytest.approx(cost, rel=1e-9, abs=1e-9)


def test_chains_and_trees_vanish() -> None:
    random = np.random.default_rng(0)
    pairs = tuple(Pair(i, (i - 1) // 2, random.random((5, 5))) for i in range(1, 200))
    small = reduce(Problem((np.zeros(5),) * 200, pairs)).problem
    assert small.variables == 1


def test_a_limit_that_cannot_be_exceeded_vanishes() -> None:
    usages = tuple(Usage(i, np.array([1.0, 2.0]), 0, 1 + i) for i in range(4))
    unary = (np.array([1.0, 0.0]),) * 4
    assert not reduce(Problem(unary, limits=(Limit(8.0, usages),))).problem.limits
    assert reduce(Problem(unary, limits=(Limit(7.0, usages),))).problem.limits


def test_a_limit_below_the_least_usage_is_named_with_what_would_do() -> None:
    usages = (Usage(0, np.array([3.0, 4.0]), 0, 9), Usage(1, np.array([5.0, 4.0]), 7, 9))
    problem = Problem((np.zeros(2),) * 2, limits=(Limit(6.0, usages, "memory"),))
    message = "memory has a capacity of 6, and at the time 7 no assignment takes less than 7"
    with pytest.raises(NoAssignment, match=message):
        reduce(problem)


def test_a_variable_without_an_allowed_choice_is_named() -> None:
    never = Pair(0, 1, np.array([[np.inf, np.inf], [np.inf, np.inf]]))
    with pytest.raises(NoAssignment, match="no choice of variable 0 is left"):
        reduce(Problem((np.zeros(2),) * 2, (never,)))
