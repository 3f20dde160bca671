"""Texts of which the run decides are printed, compared and returned as in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
