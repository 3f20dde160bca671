"""What rounding moves results by is measured with NumPy, and it excuses nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from from_numpy.conditions import movements
from from_numpy.corpus.registry import Case
from from_numpy.harness import _wrong, expected


def amplified(x: Any) -> Any:
    """Each step multiplies what was rounded by two, as in the logistic map, on average."""
    y = x
    for _ in range(18):
        y = 4 * y * (1 - y)
    return {"far": y}, [x + 1.0]


def chaotic(x: Any) -> Any:
    for _ in range(60):
        x = 4 * x * (1 - x)
    return x


def _case(function: Callable[..., Any]) -> Case:
    return Case(function.__name__, function, "", "", lambda rng: (rng.random(5),), ())


def test_a_result_has_the_tolerance_that_its_condition_asks_for() -> None:
    case = _case(amplified)
    wanted = expected(case)
    measured = movements(case, wanted.result, {})
    assert 0 < measured["result[1][0]"] < 1e-13
    assert 1e-10 < measured["result[0]['far']"] < 1e-8


@pytest.mark.parametrize(
    ("function", "apart", "is_right"),
    [
        (amplified, 3e-11, True),
        (amplified, 1e-5, False),
        (chaotic, 1e-3, False),
    ],
)
def test_what_rounding_explains_is_no_difference(
    function: Callable[..., Any], apart: float, is_right: bool
) -> None:
    case = _case(function)
    wanted = expected(case)
    found = expected(case).result
    if function is chaotic:
        found += apart
    else:
        found[0]["far"] += apart
    assert (_wrong(case, wanted, found, wanted.after) == []) is is_right


def test_the_other_results_keep_their_tolerance() -> None:
    case = _case(amplified)
    wanted = expected(case)
    found = expected(case).result
    found[1][0] += 1e-10
    assert _wrong(case, wanted, found, wanted.after)
