"""Linear equations and inequalities in whole numbers: whether they have a solution."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from distspmd.analysis.integer_systems import Linear, has_solution

NAMES = ("a", "b", "c", "d")
REACH = 4


@st.composite
def sums(draw):
    factors = {name: draw(st.integers(-5, 5)) for name in NAMES}
    return Linear(factors, draw(st.integers(-9, 9)))


def value(each, numbers):
    return each.constant + sum(f * numbers[n] for n, f in each.factors.items())


@given(st.lists(sums(), max_size=3), st.lists(sums(), max_size=4))
@settings(max_examples=300)
def test_the_answer_is_that_of_trying_all_numbers(zero, not_negative):
    places = itertools.product(range(-REACH, REACH + 1), repeat=len(NAMES))
    tried = any(
        all(value(z, numbers) == 0 for z in zero)
        and all(value(n, numbers) >= 0 for n in not_negative)
        for numbers in (dict(zip(NAMES, place, strict=True)) for place in places)
    )
    within = [Linear({n: s}, REACH) for n in NAMES for s in (1, -1)]
    assert has_solution(zero, [*not_negative, *within]) == tried


def test_even_numbers_are_no_odd_ones():
    both = Linear({"i": 2}) - Linear({"j": 2}) - 1
    assert not has_solution([both], [])


def test_a_real_solution_is_not_enough():
    """Pugh's example: 27 <= 11 x + 13 y <= 45 and -10 <= 7 x - 9 y <= 4."""
    first, second = Linear({"x": 11, "y": 13}), Linear({"x": 7, "y": -9})
    rows = [first - 27, first * -1 + 45, second + 10, second * -1 + 4]
    assert not has_solution([], rows)
