"""Texts of which the run decides are printed, compared and returned as in Python."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper
from from_numpy.outcomes import check_same
from from_numpy.printed import printed_differences
from from_numpy.texts import CASES, HOSTED, OTHERS


@pytest.mark.parametrize(
    "case",
    [*CASES, *(pytest.param(case, marks=pytest.mark.slow) for case in OTHERS)],
    ids=lambda case: case.name,
)
def test_texts_of_the_run_are_pythons(case: Case) -> None:
    outcome = on_paper(case)
    assert outcome.kind == "right", outcome


@pytest.mark.slow
def test_ranks_print_texts_of_the_run(launch: Any) -> None:
    done = launch(Path(__file__).parent / "run_here.py", "from_numpy.texts", ranks=2)
    assert done.stdout.endswith(f"{len(CASES)} of {len(CASES)} right\n"), done.stdout


def test_other_words_and_numbers_are_seen() -> None:
    assert not [*printed_differences("a 1.0000001\n", "a  1.0\n")]
    assert not [*printed_differences("x = 0.33\n", "x = 0.34\n")]
    assert [*printed_differences("a 1.0\n", "b 1.0\n")]
    assert [*printed_differences("a 3\n", "a 4\n")]
    assert [*printed_differences("a 1.25\n", "a 1.5\n")]
    assert [*printed_differences("a\n", "a\na\n")]


def compared(x: Any) -> Any:
    text = f"{x[0]:.2f}"
    return 1.0 if text == "0.50" else 0.0


def of_bits(x: Any) -> Any:
    """Whole numbers of the run as letters, and letters as numbers."""
    n = int(x[0] * 300)
    s = f"{n:b}"
    bits = np.array([int(c) for c in s])
    return s.count("1"), len(s), int(s[::-1], 2), bits, str(n) == str(n)[::-1], s


def joined(x: Any) -> Any:
    """Texts of branches and loops with array work."""
    said = "none"
    for k in range(40):
        x = np.sqrt(x) + 0.5
        if x[0] > 1.1:
            said = f"{x[0]:.3f} in step {k}"
    if x[1] > 1.0:
        y = x * 2.0
        told = f"{y[1]:.2f}"
    else:
        y = x - 1.0
        told = "small"
    return x * len(told), y, said, told.upper()


@pytest.mark.parametrize("function", [*HOSTED, compared, of_bits, joined], ids=lambda f: f.__name__)
def test_python_makes_texts_of_which_the_run_decides_the_letters(
    function: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(2).random(3)
    expected, printed = function(x.copy()), capfd.readouterr().out
    program = distspmd.program(function, comm=MPI.COMM_SELF, host="allow")
    for _ in range(2):
        check_same(program(x.copy()), expected)
        assert capfd.readouterr().out == printed


def test_a_text_with_values_is_not_compared_where_python_may_run_nothing() -> None:
    with pytest.raises(UnsupportedProgram, match="says is not known before the run"):
        numpy_program(compared, np.zeros(2), host="refuse")


def numbers_and_texts(x: Any) -> Any:
    found, i = [], 0
    while x[i] < 0.9:
        if x[i] > 0.5:
            found.append(x[i])
        else:
            found.append("low")
        i += 1
    return found


def formatted_in_lists(x: Any) -> Any:
    found, i = [], 0
    while x[i] < 0.9:
        found.append(f"{x[i]:.2f}")
        i += 1
    return found


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (numbers_and_texts, "numbers, texts, arrays of one shape"),
        (formatted_in_lists, "has to be one of several that are known"),
    ],
)
def test_what_texts_of_the_run_cannot_be(function: Any, said: str) -> None:
    with pytest.raises(UnsupportedProgram, match=said):
        numpy_program(function, np.zeros(40), host="refuse")


def compared_with_numbers(x: Any) -> Any:
    k = x.astype(int)
    return k == "-", k != "-", 1.0 if k[0] == "-" else 2.0, k[k != "none"]


def test_no_number_is_a_text() -> None:
    case = Case("numbers", compared_with_numbers, "texts", "own", lambda _: (np.arange(4.0),), ())
    assert on_paper(case).kind == "right"


def given_to_libraries(x):
    """Library functions read the characters of a text, of which the reader knows none."""
    first = f"{x[0]:.3f}"
    found = len(re.findall(r"\d", str(x[1]))), "0.5000".find(first[:3]), float(f"{x[2]:.1f}")
    return found, len(json.dumps({"a": [first]}))


def test_what_a_library_reads_of_a_text_of_the_run_is_what_it_says() -> None:
    x = np.array([0.5004, 12.75, 3.26])
    assert distspmd.program(given_to_libraries, host="allow")(x) == given_to_libraries(x)
