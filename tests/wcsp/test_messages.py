from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcsp.problems import optimum, problems

from distspmd.wcsp.messages import Messages
from distspmd.wcsp.problem import Limit, Pair, Problem, Usage
from distspmd.wcsp.ties import untie


@given(problem=problems(), steps=st.lists(st.floats(0, 100), max_size=8))
def test_the_bound_is_one_at_any_prices(problem: Problem, steps: list[float]) -> None:
    problem, _ = untie(problem)
    messages = Messages(problem)
    best = optimum(problem)
    for step in [*steps, 0.0]:
        messages.sweep()
        bound = messages.bound()
        assert bound <= best + 1e-9 * max(1.0, abs(best))
        messages.charge(step)


@settings(max_examples=5)
@given(st.integers(0, 2**32 - 1))
def test_the_bound_of_a_tree_is_its_optimum(seed: int) -> None:
    random = np.random.default_rng(seed)
    pairs = tuple(
        Pair(int(random.integers(variable)), variable, random.random((3, 3)))
        for variable in range(1, 7)
    )
    problem = Problem(tuple(random.random((7, 3))), pairs)
    messages = Messages(problem)
    bounds = []
    for _ in range(30):
        messages.sweep()
        bounds.append(messages.bound())
    assert bounds == pytest.approx(sorted(bounds), abs=1e-12)
    assert bounds[-1] == pytest.approx(optimum(problem), abs=1e-6)


@given(problem=problems())
def test_sweeps_leave_nothing_of_what_pairs_are_sure_to_cost(problem: Problem) -> None:
    problem, _ = untie(problem)
    messages = Messages(problem)
    for _ in range(3):
        for (_, _, costs), (first, second) in zip(messages._pairs, messages._moved, strict=True):
            assert (costs - first[:, None] - second).min() == pytest.approx(0.0, abs=1e-9)
        messages.sweep()


def test_prices_raise_the_bound_of_a_limited_problem() -> None:
    usages = tuple(Usage(variable, np.array([1.0, 0.0])) for variable in range(4))
    problem = Problem((np.array([0.0, 1.0]),) * 4, limits=(Limit(2.0, usages),))
    messages = Messages(problem)
    messages.sweep()
    assert messages.bound() == 0.0
    for _ in range(60):
        messages.charge(0.5)
        messages.sweep()
    assert messages.bound() > 1.5
    assert optimum(problem) == 2.0


def test_variables_that_follow_each_other_agree_where_each_alone_does_not() -> None:
    problem = Problem((np.zeros(2),) * 2, (Pair(0, 1, np.eye(2)),))
    messages = Messages(problem)
    messages.sweep()
    assert problem.cost(messages.cheapest()) == 1.0
    assert problem.cost(messages.following()) == 0.0


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_what_follows_the_messages_of_a_tree_is_its_optimum(seed: int) -> None:
    random = np.random.default_rng(seed)
    pairs = tuple(
        Pair(int(random.integers(variable)), variable, random.random((3, 3)))
        for variable in range(1, 9)
    )
    problem = Problem(tuple(random.random((9, 3))), pairs)
    messages = Messages(problem)
    for _ in range(40):
        messages.sweep()
    assert problem.cost(messages.following()) == pytest.approx(optimum(problem))
