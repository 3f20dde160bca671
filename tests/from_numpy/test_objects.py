"""Classes, generators, ``match`` and Python's tools in programs; and what of them is refused."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.objects import CASES, Sum


def test_python_has_its_meaning_in_programs(launch: Any) -> None:
    done = launch(Path(__file__).parent / "run_here.py", "from_numpy.objects", ranks=2)
    assert done.stdout.endswith(f"{len(CASES)} of {len(CASES)} right\n"), done.stdout


OUTSIDE = Sum(3)


def changes_what_is_outside(x):
    OUTSIDE.total = x
    return x


def yields_by_values(x):
    def positive():
        for value in x:
            if value > 0.5:
                yield value

    return sum(positive())


def changes_the_outer_in_a_branch(x):
    count = 0

    def add():
        nonlocal count
        count += 1

    if x[0] > 0.5:
        add()
    return count


def matches_a_sequence(x):
    match x.shape:
        case (3,):
            return x
        case _:
            return -x


def measures(x):
    start = time.perf_counter()
    return x + start


def draws(x):
    return x * random.random()


def sorts_by_values(x):
    return x[sorted(range(3), key=lambda i: x[i])]


def no_operator(x):
    return Sum(3) - x


def shape_of_an_argument(x):
    x.shape = (3, 1)
    return x


def shape_of_two_names(x):
    a = x + 1
    b = a
    a.shape = (3, 1)
    return b


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (changes_what_is_outside, "changes 'total' of an object that is not its own"),
        (yields_by_values, "a generator yields in it"),
        (changes_the_outer_in_a_branch, "'count' of the function around is changed in a call"),
        (matches_a_sequence, "a pattern of match that is no value"),
        (measures, "it would be called once, when the program is read"),
        (draws, "random.random, which would draw once"),
        (sorts_by_values, "use np.sort"),
        (shape_of_an_argument, "the shape of an argument; write x = x.reshape"),
        (shape_of_two_names, "the shape of an array that has several names"),
        (no_operator, "no class has a method __sub__"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_would_happen_once_is_refused(function: Any, message: str) -> None:
    with pytest.raises(UnsupportedProgram, match=message):
        numpy_program(function, np.array([0.3, 0.7, 0.2]))
