"""Ways of the run on which Python raises whatever there is, and arrays where it wants a number."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper


def unknown_names(x):
    y = x * 2
    if x[0] > 100:
        error("not there")  # noqa: F821
    if x[1] > 200:
        y = np.NaN * y  # noqa: NPY201
    return y


def unknown_in_a_loop(x):
    for i in range(4):
        if x[i] > 300:
            x[i] = undefined_thing(x)  # noqa: F821
        x[i] += 1
    return x


def fails_in_a_branch(x):
    if x.sum() > 1000:
        y = x.wrong
    elif x.sum() > 500:
        y = [1, 2][5] * x
    else:
        y = x + 1
    return y


def numbers_or_arrays(x):
    found = []
    for given in (x, x[0]):
        try:
            one = float(given)
        except TypeError:
            one = given.sum()
        found.append(one)
    return found


def numbers_of_math(x):
    try:
        one = math.erf(x)
    except TypeError:
        one = 2.0
    try:
        other = cmath.exp(x)
    except TypeError:
        other = 3.0
    return one, other, math.sin(x.sum()), float(x[0]), int(x[1] * 9), complex(x[0], 2)


def arrays_on_one_way(x):
    if x[0] > 100:
        return float(x)
    return 1.0


PROGRAMS = [
    *(unknown_names, unknown_in_a_loop, fails_in_a_branch),
    *(numbers_or_arrays, numbers_of_math, arrays_on_one_way),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", PROGRAMS)
def test_programs_mean_what_python_means(function: Any) -> None:
    x = np.array([0.3, 0.7, 1.2, 2.5])
    outcome = on_paper(Case(function.__name__, function, "", "", lambda _: [x.copy()], ()))
    assert outcome.kind == "right", outcome.reason


@pytest.mark.parametrize("call", [float, int, math.sin, math.gamma, cmath.exp, complex])
def test_an_array_is_no_number(call: Any) -> None:
    """The first element was taken for it."""

    def converted(x: Any) -> Any:
        return call(x)

    with pytest.raises(UnsupportedProgram, match=r"TypeError: only .* arrays can be converted"):
        numpy_program(converted, np.arange(3.0))


def test_what_each_run_comes_to_is_refused() -> None:
    def unknown(x: Any) -> Any:
        return undefined_thing(x)  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(UnsupportedProgram, match="the name 'undefined_thing' is not defined"):
        numpy_program(unknown, np.arange(3.0))


@pytest.mark.usefixtures("unoptimised")
def test_a_way_ends_with_pythons_error() -> None:
    x = np.array([0.3, 0.7, 1.2, 2.5])
    lowering = distspmd.lower(numpy_program(unknown_names, x), {})
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        np.testing.assert_array_equal(program(x=x), x * 2)
        x[0] = 101
        with pytest.raises(NameError, match="name 'error' is not defined"):
            program(x=x)
        x[:2] = 0, 201
        with pytest.raises(AttributeError, match=r"`np\.NaN` was removed"):
            program(x=x)
