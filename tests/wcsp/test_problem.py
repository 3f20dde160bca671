from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distspmd.wcsp.problem import Limit, Loads, Pair, Problem, Usage

TWO = (np.array([1.0, 2.0]), np.array([3.0, 4.0, np.inf]))


def test_the_cost_is_the_sum_of_all_choices_and_pairs() -> None:
    pair = Pair(1, 0, np.array([[10.0, 20.0], [30.0, np.inf], [0.0, 0.0]]))
    problem = Problem(TWO, (pair, pair))
    assert problem.cost([0, 1]) == 1 + 4 + 2 * 30
    assert problem.cost([1, 1]) == np.inf
    assert problem.cost([0, 2]) == np.inf


def test_a_limit_holds_at_each_point_in_time() -> None:
    amounts = np.array([2.0, 5.0]), np.array([1.0, 3.0, 0.0])
    limit = Limit(6.0, (Usage(0, amounts[0], 0, 3), Usage(1, amounts[1], 2, 9)))
    problem = Problem(TWO, limits=(limit,))
    assert problem.overrun([1, 1]) == 2.0
    assert problem.cost([1, 1]) == np.inf
    assert problem.cost([1, 0]) == 2 + 3
    apart = Limit(6.0, (Usage(0, amounts[0], 0, 2), Usage(1, amounts[1], 2, 9)))
    assert Problem(TWO, limits=(apart,)).overrun([1, 1]) == 0.0


def test_tied_variables_take_the_same_choice() -> None:
    problem = Problem((np.array([1.0, 2.0]), np.array([5.0, 3.0])), ties=((0, 1),))
    assert problem.cost([1, 1]) == 5.0
    assert problem.cost([0, 1]) == np.inf


@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
def test_loads_are_those_of_all_points_in_time(seed: int, number: int) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 4, max(1, number))
    least = int(random.integers(-3, 1))
    usages = []
    for _ in range(number):
        variable, begin = int(random.integers(len(sizes))), int(random.integers(0, 9))
        amounts = random.integers(least, 9, sizes[variable]).astype(float)
        usages.append(Usage(variable, amounts, begin, begin + int(random.integers(0, 6))))
    choices = random.integers(0, sizes)
    loads = Loads.of(Limit(4.0, tuple(usages)), len(sizes))
    dense = np.zeros(20)
    for usage in usages:
        dense[usage.begin : usage.end] += usage.amounts[choices[usage.variable]]
    assert loads.at(choices).tolist() == dense[loads.times].tolist()
    assert loads.overrun(choices) == max(0.0, dense.max() - 4.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"unary": (np.zeros(0),)}, "variable 0 has no choice"),
        ({"unary": (np.array([np.nan]),)}, "costs are numbers"),
        ({"unary": (np.array([-np.inf]),)}, "costs are numbers"),
        ({"unary": TWO, "pairs": (Pair(0, 1, np.zeros((3, 2))),)}, r"the shape \(2, 3\)"),
        ({"unary": TWO, "pairs": (Pair(1, 1, np.zeros((3, 3))),)}, "is one variable"),
        ({"unary": TWO, "pairs": (Pair(0, 2, np.zeros((2, 2))),)}, "variable 2 of 2"),
        ({"unary": TWO, "limits": (Limit(1.0, (Usage(0, np.zeros(3)),)),)}, "the limit, variable"),
        (
            {"unary": TWO, "limits": (Limit(1.0, (Usage(0, np.full(2, np.inf)),), "memory"),)},
            "memory, variable 0: a usage is infinite",
        ),
        ({"unary": TWO, "ties": ((0, 1),)}, "different numbers of choices"),
    ],
)
def test_impossible_problems_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Problem(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("choices", [[0], [0, 3], [-1, 0], [0, 0, 0]])
def test_what_is_no_assignment_is_refused(choices: list[int]) -> None:
    with pytest.raises(ValueError, match="not one choice for each of 2 variables"):
        Problem(TWO).cost(choices)
