"""Texts of which the run decides are printed, compared and returned as in Python."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper
from from_numpy.printed import printed_differences
from from_numpy.texts import CASES, OTHERS


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


def refused(x: Any) -> Any:
    text = f"{x[0]:.2f}"
    return 1.0 if text == "0.50" else 0.0


def test_a_text_with_values_is_not_compared() -> None:
    with pytest.raises(UnsupportedProgram, match="what it says is not known before the run"):
        numpy_program(refused, np.zeros(2))


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


def more_than_a_letter(x: Any) -> Any:
    found, i = "", 0
    while x[i] < 0.9:
        found += "ab" if x[i] > 0.5 else "c"
        i += 1
    return "ab" in found


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (numbers_and_texts, "numbers, texts, arrays of one shape"),
        (formatted_in_lists, "has to be one of several that are known"),
        (more_than_a_letter, "look for a letter"),
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
