"""``try``: handlers of errors that the run decides, and those that are refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.handlers import CASES
from from_numpy.harness import on_paper
from from_numpy.outcomes import RIGHT


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


def written_at_a_place(x):
    y = np.zeros(3)
    try:
        y[int(x[0])] = 1
    except LookupError:
        y[0] = -1.0
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
        (written_at_a_place, "IndexError may be raised here"),
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


def at_a_place(x):
    before = 7.0
    try:
        y = x[int(x[0])]
        before = y + 1
    except LookupError:
        y = -1.0
    return y, before


def in_a_list(x):
    chosen, found = [v for v in x if v > 0.5], []
    for i in range(3):
        try:
            found.append(chosen[i] * 2)
        except IndexError:  # noqa: PERF203
            found.append(-1.0)
    return found


def of_a_key(x):
    numbers = {1: 3.0, 2: 4.0}
    try:
        y = numbers[int(x[0])]
    except KeyError:
        y = 0.0
    return y


def known_place(x):
    a = [1, 2, 3]
    try:
        b = a[5]
    except IndexError:
        b = 0
    return b * x


@pytest.mark.parametrize("function", [at_a_place, in_a_list, of_a_key, known_place])
@pytest.mark.parametrize("first", [1.0, 9.0])
def test_handlers_take_indices_and_keys_that_they_name(function: Any, first: float) -> None:
    case = Case("parts", function, "", "", lambda _: (np.array([first, 2.0, 0.1, 0.8]),), ())
    outcome = on_paper(case)
    assert (outcome.kind, outcome.reason) == (RIGHT, "")


def neighbours(x):
    try:
        chosen, total = [v for v in x if v > 0.5], 0.0
        for i in range(len(chosen) - 1):
            total += chosen[i] * chosen[i + int(x[0])]
    except Exception:
        return -1.0
    return total


def test_handlers_of_all_errors_do_not_run_for_an_index_and_the_program_ends_there() -> None:
    def outcome(first: float) -> Any:
        values = np.array([first, 2.0, 0.1, 0.8])
        return on_paper(Case("all", neighbours, "", "", lambda _: (values,), ()))

    assert (outcome(1.0).kind, outcome(1.0).reason) == (RIGHT, "")
    assert "index" in outcome(9.0).reason


def quiet(x):
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("error")
        return 1 / x


def test_warnings_are_as_before_when_a_program_is_read() -> None:
    before = list(warnings.filters)
    numpy_program(quiet, np.ones(3))
    assert warnings.filters == before
