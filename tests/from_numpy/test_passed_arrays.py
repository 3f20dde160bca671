"""Arguments that are expressions, and which functions change: all their names are of one array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here


def exchange(v, i, j):
    v[i], v[j] = v[j], v[i]


def add_to(v):
    v += 1


def passed_on(b):
    exchange(b, 0, 1)
    return b


def added_to(b):
    add_to(b)
    return b


def by_another_name(b):
    c = b
    c[0] = 5
    return b


def by_a_view(b):
    v = b[1:]
    v += 2
    return b


def by_a_reshaped_view(b):
    v = b.reshape(-1, 1)
    v *= 3
    return b


def by_a_function_of_numpy(b):
    v = np.transpose(b)
    v -= 3
    return b


def in_a_branch(b):
    if b[0] < b[1]:
        add_to(b)
    return b


def of_a_pair(b):
    pair = (b, b)
    add_to(pair[0])
    return pair[1]


def by_a_closure(b):
    def change():
        b[2] = 7

    change()
    return b


def of_several(*all_of_them):
    add_to(all_of_them[0])
    return all_of_them[0]


FUNCTIONS = [
    passed_on,
    added_to,
    by_another_name,
    by_a_view,
    by_a_reshaped_view,
    by_a_function_of_numpy,
    in_a_branch,
    of_a_pair,
    by_a_closure,
    of_several,
]


def case_of(changing: Callable[..., Any]) -> Case:
    def program(x: Any) -> Any:
        return changing(-x), x

    return Case(changing.__name__, program, "own", "", lambda rng: (rng.random(7),), ())


@pytest.mark.parametrize("changing", FUNCTIONS)
def test_what_functions_do_to_an_expression_reaches_all_its_names(
    changing: Callable[..., Any],
) -> None:
    outcome = on_paper(case_of(changing))
    assert outcome.kind == "right", outcome
    assert not outcome.uncompared


@pytest.mark.slow
@pytest.mark.parametrize("changing", FUNCTIONS)
def test_expressions_that_functions_change_on_a_rank(changing: Callable[..., Any]) -> None:
    assert run_here(case_of(changing)).kind == "right"
