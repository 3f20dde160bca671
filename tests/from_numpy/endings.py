"""What a program of one array gives, by Python and by the front end: results, or its error."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import distspmd
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.host.hosting import of_a_call
from from_numpy.outcomes import differences
from from_numpy.statements_in_numpy import Programs, WrongOnPaper

Program = Callable[..., Any]


def of_python(program: Program, x: Any) -> Any:
    """What Python returns, or the error that it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return program(x.copy())
    except (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError) as end:
        return end


def of_program(program: Program, x: Any, *, is_hosted: bool = False) -> Any:
    """What the program returns where NumPy runs its statements, or the name of its error.

    Args:
        program: that is read.
        x: its argument.
        is_hosted: whether Python has to run a part of it.
    """
    programs = Programs()
    with programs.kept():
        parsed = _hosted(program, x) if is_hosted else numpy_program(program, x)
    try:
        return programs.run(parsed, {"x": x.copy()})
    except WrongOnPaper as end:
        return str(end).rsplit(maxsplit=1)[-1]


def _hosted(program: Program, x: Any) -> Any:
    """A program that is read for a call, of which Python runs a part."""
    with of_a_call(program, {"x": x}):
        parsed = numpy_program(program, x, host="allow")
    labels = [space.label for space in distspmd.iteration_spaces(parsed)]
    assert any("_line" in label for label in labels), f"Python runs no line: {labels}"
    return parsed


def different_endings(
    program: Program, inputs: Sequence[Any], *, is_hosted: bool = False
) -> list[str]:
    """In what a program and Python differ, over several inputs."""
    found = []
    for x in inputs:
        wanted, given = of_python(program, x), of_program(program, x, is_hosted=is_hosted)
        if isinstance(wanted, Exception):
            kinds = [kind.__name__ for kind in type(wanted).__mro__]
            told = kinds[0] if kinds[0] != "NameError" else "UnboundLocalError"
            found += [] if given == told else [f"{given} for {told}"]
        elif isinstance(given, str):
            found.append(f"{given} for {wanted}")
        else:
            found += differences(given, wanted, tolerance=1e-12)
    return found


HIGH, LOW = np.array([0.2, 0.9, 0.1, 0.7]), np.array([0.2, 0.1, 0.3, 0.4])
LATE, FIRST = np.array([0.2, 0.1, 0.3, 0.9]), np.array([0.9, 0.1, 0.2, 0.3])
INPUTS = (HIGH, LOW, LATE, FIRST)
"""Arrays of which other elements are above a half."""
