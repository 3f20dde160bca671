from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from wcsp.problems import optimum, problems

from distspmd.wcsp.descent import fit
from distspmd.wcsp.part import part_of
from distspmd.wcsp.problem import Limit, Problem, Usage
from distspmd.wcsp.state import State, price_of_forbidden
from distspmd.wcsp.ties import untie


@given(problem=problems())
def test_what_is_forbidden_is_dearer_than_all_that_is_allowed(problem: Problem) -> None:
    price = price_of_forbidden(problem)
    finite = [costs[np.isfinite(costs)] for costs in (*problem.unary, *tables(problem))]
    most = sum(costs.max() for costs in finite if costs.size)
    for place, costs in enumerate(finite):
        others = [other.min() for other in finite[:place] + finite[place + 1 :] if other.size]
        assert price + sum(others) > most or not costs.size


def tables(problem: Problem) -> list[np.ndarray]:
    return [pair.costs for pair in problem.pairs]


@given(problem=problems(), seed=st.integers(0, 2**32 - 1))
def test_a_changed_state_is_that_of_its_choices(problem: Problem, seed: int) -> None:
    problem, _ = untie(problem)
    random = np.random.default_rng(seed)
    state = State(problem, random.integers(0, problem.sizes))
    for _ in range(10):
        variable = int(random.integers(problem.variables))
        state.change(variable, int(random.integers(problem.sizes[variable])))
    fresh = State(problem, state.choices)
    for changed, expected in zip(state.marginal, fresh.marginal, strict=True):
        np.testing.assert_allclose(changed, expected, rtol=1e-9, atol=1e-9 * state.forbidden)
    for load, expected in zip(state.loads, fresh.loads, strict=True):
        assert load.tolist() == expected.tolist()
    assert state.overrun() == problem.overrun(state.choices)


@given(problem=problems(), seed=st.integers(0, 2**32 - 1))
def test_a_part_costs_as_much_less_as_the_whole(problem: Problem, seed: int) -> None:
    problem, _ = untie(problem)
    assume(optimum(problem) < np.inf)
    random = np.random.default_rng(seed)
    state = State(problem, random.integers(0, problem.sizes))
    free = random.permutation(problem.variables)[: random.integers(1, 4)]
    part = part_of(state, free.tolist())
    others = state.choices.copy()
    others[free] = random.integers(0, problem.sizes[free])
    now, then = problem.cost(state.choices), problem.cost(others)
    cost = sum(own[others[v]] for v, own in zip(part.variables, part.unary, strict=True))
    for first, second, costs in part.pairs:
        cost += costs[others[part.variables[first]], others[part.variables[second]]]
    fits = all(
        sum(amounts[others[part.variables[v]]] for v, amounts in terms) <= left
        for left, terms in part.rows
    )
    assert fits == (problem.overrun(others) <= problem.overrun(state.choices)) or now == np.inf
    if now < np.inf and then < np.inf:
        assert np.isclose(then - now, cost - part.ceiling, rtol=1e-9, atol=1e-6)


def test_choices_that_exceed_a_limit_at_other_times_do_not_take_turns() -> None:
    usages = (
        Usage(0, np.array([2.0, 0.0]), 0, 1),
        Usage(0, np.array([0.0, 2.0]), 1, 2),
    )
    problem = Problem((np.zeros(2),), (), (Limit(1.0, usages),))
    state = State(problem, np.array([0]))
    fit(state)
    assert state.overrun() == 1.0
