"""Names that no statement of a run has bound: the program ends where Python does, and not else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ProgramUnboundLocalError
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.arrays.transcript import Refusal
from from_numpy.endings import HIGH, INPUTS, LOW, different_endings, of_python


def one_way(x):
    if x[1] > 0.5:
        y = x * 2
    return y


def of_several_ways(x):
    if x[1] > 0.5:
        kind, scale = 1, 0.5
    elif x[3] > 0.5:
        kind = 2
    return x * kind + scale


def last_of_a_loop(x):
    for i in range(4):
        if x[i] > 0.5:
            k = i
    return k, x[k]


def in_a_loop(x):
    total = 0.0
    for i in range(1, 4):
        if x[i] > 0.5:
            row = x[:2] * i
        total += row.sum()
    return total


def constant(x):
    for i in range(4):
        if x[i] > 0.5:
            flag = 7
        elif x[i] > 5:
            x[0] += flag
    return flag


def loop_without_iterations(x):
    n = int(x[0] * 4)
    for i in range(n):
        y = x[i] + 1
    return y, i


def inner_loop_without_iterations(x):
    total = 0.0
    for i in range(3):
        for j in range(int(x[i] * 4)):
            y = x[j]
        total += y * i
    return total


def of_while(x):
    i = 0
    while x[i] < 0.15 or x[i] > 0.5:
        last = x[i]
        i += 1
    return last, i


def found_before_the_end(x):
    for i in range(4):
        if x[i] > 0.5:
            found = x[i]
            break
    return found


def endless(x):
    i = 0
    while True:
        if x[i] > 0.25:
            break
        before = x[i]
        i += 1
    return before


def read_by_the_condition_that_bound_it(x):
    if x[1] > 0.5:
        y = x * 2
    z = x + 1
    if x[1] > 0.5:
        z = z + y
    return z


def read_in_an_expression(x):
    if x[1] > 0.5:
        y = x[2] * 2
    z = y if x[3] > 0.5 else 1.0
    return z, x[2] > 0.15 or y > 3


def deleted(x):
    y = x.sum()
    if x[1] > 0.5:
        del y
    return y


def list_of_one_way(x):
    if x[1] > 0.5:
        names = [x[0], x[1], 3.0]
    return names[0] + names[2]


def in_a_function(x):
    def inner(v):
        if v > 0.5:
            w = v * 2
        return w

    return inner(x[1]) + inner(x[3])


def of_an_outer_function(x):
    if x[1] > 0.5:
        scale = 3.0

    def inner(v):
        return v * scale

    return inner(x)


def of_a_try(x):
    try:
        y = 1.0 / float(x[0] > 0.5)
    except ZeroDivisionError:
        if x[3] > 0.5:
            y = -1.0
    return y


def read_before_it_is_bound(x):
    total = 0.0
    for i in range(4):
        if x[i] > 0.5:
            total += y  # noqa: F821
        y = x[i]  # noqa: F841
    return total


def augmented(x):
    if x[1] > 0.5:
        total = 1.0
    total += x[0]
    return total


def none_or_unbound(x):
    if x[1] > 0.5:
        best = None
    elif x[3] > 0.5:
        best = x[3]
    return best is None


PROGRAMS = [
    *(one_way, of_several_ways, last_of_a_loop, in_a_loop, constant, loop_without_iterations),
    *(inner_loop_without_iterations, of_while, found_before_the_end, endless),
    *(read_by_the_condition_that_bound_it, read_in_an_expression, deleted, list_of_one_way),
    *(
        in_a_function,
        of_an_outer_function,
        of_a_try,
        augmented,
        read_before_it_is_bound,
        none_or_unbound,
    ),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_what_python_says_of_them(program: Callable[..., Any]) -> None:
    ends = [isinstance(of_python(program, x), NameError) for x in INPUTS]
    assert any(ends) != (program in ALWAYS_BOUND)
    assert not different_endings(program, INPUTS)


ALWAYS_BOUND = (read_by_the_condition_that_bound_it,)


def bound_by_the_first_iteration(x):
    for i in range(4):
        y = x[i] * 2
        if y > 1:
            z = y + i
            x[i] = z
    while True:
        w = x[0] + i
        if w > 1:
            break
        v = w
        x[0] += v + 1
    return x, y, i, w


def test_what_is_proven_to_be_bound_costs_nothing() -> None:
    for program in (bound_by_the_first_iteration,):
        parsed = numpy_program(program, HIGH)
        assert not any("which" in name for name in {**parsed.symbols, **parsed.arrays})
        assert not any("UnboundLocalError" in str(n) for s in parsed.states() for n in s.nodes())
        assert "which" not in str(sorted(map(str, parsed.free_symbols)))


def test_a_name_that_is_never_bound_is_refused() -> None:
    def program(x):
        if x.shape[0] > 10:
            y = 1
        return x * y

    with pytest.raises(Refusal, match="'y' is not defined"):
        numpy_program(program, HIGH)


def test_all_ranks_get_the_error_with_its_line() -> None:
    ready = distspmd.compile(distspmd.lower(numpy_program(in_a_loop, LOW), {}), MPI.COMM_WORLD)
    np.testing.assert_allclose(ready(x=HIGH), in_a_loop(HIGH))
    with pytest.raises(ProgramUnboundLocalError, match=r"value.py:\d+.*'row'.*\n.*total \+= row"):
        ready(x=LOW)
