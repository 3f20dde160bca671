"""Arguments that are lists, tuples and dictionaries of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ArgumentError, UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper, run_here


def layers(parameters, x):
    for w, b in parameters:
        x = np.tanh(x @ w + b)
    return x


def descended(parameters, gradients, rate):
    for key in parameters:
        parameters[key] -= rate * gradients[key]
    return parameters


def written_into(fields, x):
    fields[0][1:-1] = x[:-2] + fields[1][2:]
    return fields[0] * fields[2]


def nested(d, d_a_0):
    return d["a"][0] + d["b"]["c"] * d["n"] - d_a_0


def _layers(rng):
    shapes = [(4, 5), (5, 3)]
    return [(rng.random(s), rng.random(s[1])) for s in shapes], rng.random((7, 4))


def _descended(rng):
    made = [{"w": rng.random((4, 3)), "b": rng.random(3)} for _ in range(2)]
    return *made, 0.1


CASES = [
    (layers, _layers),
    (descended, _descended),
    (written_into, lambda rng: ([rng.random(7), rng.random(7), 3], rng.random(7))),
    (
        nested,
        lambda rng: ({"a": (rng.random(7),), "b": {"c": rng.random(7)}, "n": 3}, rng.random(7)),
    ),
]


def case_of(function: Callable[..., Any], make: Callable[..., Any]) -> Case:
    return Case(function.__name__, function, "own", "", make, ())


@pytest.mark.parametrize(("function", "make"), CASES)
def test_arrays_in_arguments_are_arguments(
    function: Callable[..., Any], make: Callable[..., Any]
) -> None:
    outcome = on_paper(case_of(function, make))
    assert outcome.kind == "right", outcome


@pytest.mark.parametrize(
    ("function", "make"),
    [CASES[1], *(pytest.param(*each, marks=pytest.mark.slow) for each in (CASES[0], *CASES[2:]))],
)
def test_arrays_in_arguments_are_passed_as_they_are_written(
    function: Callable[..., Any], make: Callable[..., Any]
) -> None:
    assert run_here(case_of(function, make)).kind == "right"


def test_lists_of_the_caller_are_not_changed() -> None:
    def longer(fields, x):
        fields.append(x)
        return fields[0]

    def other(fields, x):
        fields[0] = fields[0] + x
        return fields[0]

    for function in (longer, other):
        with pytest.raises(UnsupportedProgram, match="from outside of the program is changed"):
            numpy_program(function, [np.zeros(3)], np.zeros(3))


def test_other_entries_than_those_of_the_program_are_refused() -> None:
    def scaled(fields):
        return fields[0] * fields[1]

    sdfg = numpy_program(scaled, [np.ones(3), 2])
    sdfg = distspmd.lower(sdfg, {}).sdfg
    with distspmd.compile(sdfg, MPI.COMM_SELF) as program:
        assert (program([np.ones(3), 2]) == 2).all()
        with pytest.raises(ArgumentError, match=r"'fields' has the entries 0, 1 .* given has 0\."):
            program(fields=[np.ones(3)])
        with pytest.raises(ArgumentError, match=r"made for fields\[1\] = 2"):
            program([np.ones(3), 3])


def test_the_decorator_makes_a_program_for_each_form_of_its_arguments() -> None:
    @distspmd.program(schedule={}, comm=MPI.COMM_SELF)
    def scaled(fields):
        return fields["x"] * fields["n"]

    x = np.arange(3.0)
    for n, made in ((2, 1), (2, 1), (3, 2)):
        assert (scaled({"x": x, "n": n}) == x * n).all()
        assert len(scaled._programs) == made
    scaled.close()
