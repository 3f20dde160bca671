"""Programs of as many arguments as are given: ``*args`` and ``**kwargs``, as callers write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpi4py.MPI import COMM_SELF

import distspmd
from distspmd.errors import ArgumentError
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper

X = np.arange(5.0)


def of_powers(x, *coefficients):
    found = coefficients[0] * x
    for power, each in enumerate(coefficients[1:]):
        found = found + each * x**power
    return found


def with_options(x, y=2.0, **options):
    return x * y + options.get("offset", 1)


def of_both(x, *rest, scale=2.0, **options):
    return x * scale + sum(rest) * options.get("factor", 1) + len(options)


CALLS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (of_powers, (X, 1.5, 2.5, np.ones(5)), {}),
    (of_powers, (X, X), {}),
    (with_options, (X,), {}),
    (with_options, (X, 3.0), {"offset": X}),
    (of_both, (X,), {}),
    (of_both, (X, 1, 2), {"scale": 3.0}),
    (of_both, (X, X, 2.5), {"factor": 4}),
]


@pytest.mark.parametrize(("function", "given", "named"), CALLS)
def test_decorated_functions_take_what_their_callers_give(
    function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    program = distspmd.program(function, comm=COMM_SELF)
    try:
        for _ in range(2):
            np.testing.assert_array_equal(program(*given, **named), function(*given, **named))
    finally:
        program.close()


def test_calls_of_one_function_may_have_other_numbers_of_arguments() -> None:
    program = distspmd.program(of_powers, comm=COMM_SELF)
    try:
        for rest in ((1.5,), (1.5, X), (2.5, X), (X, X, X)):
            np.testing.assert_array_equal(program(X, *rest), of_powers(X, *rest))
    finally:
        program.close()


def test_programs_take_as_many_arguments_as_they_were_made_for() -> None:
    sdfg = numpy_program(of_powers, X, 1.5, X)
    sdfg = distspmd.lower(sdfg, {}).sdfg
    with distspmd.compile(sdfg, COMM_SELF) as program:
        np.testing.assert_array_equal(program(X, 2.5, X), of_powers(X, 2.5, X))
        with pytest.raises(ArgumentError, match="coefficients"):
            program(X, 2.5)


def test_on_paper_they_are_right() -> None:
    case = Case("powers", of_powers, "own", "", lambda rng: (X.copy(), 1.5, rng.random(5)), ())
    assert on_paper(case).kind == "right"


def test_numbers_in_lists_are_those_of_each_call() -> None:
    def function(given):
        return given[0] * given[1]

    program = distspmd.program(function, comm=COMM_SELF)
    try:
        for factor in (1.5, 2.5):
            np.testing.assert_array_equal(program([factor, X]), factor * X)
    finally:
        program.close()
