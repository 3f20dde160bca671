"""``try``: handlers of errors that the run decides, and those that are refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.handlers import CASES


def test_handlers_run_where_python_runs_them(launch: Any) -> None:
    done = launch(Path(__file__).parent / "run_here.py", "from_numpy.handlers", ranks=2)
    assert done.stdout.endswith(f"{len(CASES)} of {len(CASES)} right\n"), done.stdout


def raised_in_a_comprehension(x):
    def positive(v):
        if v < 0:
            raise ValueError("negative")
        return v

    try:
        y = [positive(v) for v in x]
    except ValueError:
        y = [0.0]
    return y[0]


def place_of_the_run(x):
    try:
        y = x[int(x[0])]
    except LookupError:
        y = -1.0
    return y


def place_in_an_array(x):
    try:
        y = x[x.astype(int)]
    except IndexError:
        y = x
    return y


def no_class(x):
    try:
        y = np.linalg.norm(x)
    except "ValueError":  # noqa: B030
        y = 0.0
    return y


def errors_instead_of_nan(x):
    with np.errstate(divide="raise"):
        return 1 / x


def errors_from_now_on(x):
    np.seterr(all="raise")
    return 1 / x


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (raised_in_a_comprehension, "ValueError may be raised here, and a handler of a try"),
        (place_of_the_run, "IndexError may be raised here"),
        (place_in_an_array, "IndexError may be raised here"),
        (no_class, "a handler of 'ValueError', which is no class of errors"),
        (errors_instead_of_nan, "divide='raise' at floating-point errors: programs go on"),
        (errors_from_now_on, "all='raise' at floating-point errors"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_errors_that_no_handler_could_take_are_refused(function: Any, message: str) -> None:
    with pytest.raises(UnsupportedProgram, match=message):
        numpy_program(function, np.ones(3))


def quiet(x):
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("error")
        return 1 / x


def test_warnings_are_as_before_when_a_program_is_read() -> None:
    before = list(warnings.filters)
    numpy_program(quiet, np.ones(3))
    assert warnings.filters == before
