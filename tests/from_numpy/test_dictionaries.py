"""Dictionaries and sets whose keys the run decides, beside Python, and what is refused of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ProgramError, ProgramKeyError, UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.dictionaries import CASES

ON_RANKS = ["by_counter", "by_default", "collatz", "taken", "vectors", "unite", "changed"]


def test_dictionaries_have_the_entries_of_python_in_their_order(launch: Any) -> None:
    done = launch(
        Path(__file__).parent / "run_here.py", "from_numpy.dictionaries", *ON_RANKS, ranks=2
    )
    count = len(ON_RANKS)
    assert done.stdout.endswith(f"{count} of {count} right\n"), done.stdout


@pytest.mark.slow
def test_all_dictionaries_have_the_entries_of_python_in_their_order(launch: Any) -> None:
    done = launch(Path(__file__).parent / "run_here.py", "from_numpy.dictionaries", ranks=2)
    assert done.stdout.endswith(f"{len(CASES)} of {len(CASES)} right\n"), done.stdout


def asked(x: Any) -> Any:
    found = {}
    for v in x:
        found[v] = 2 * v
    return found[np.int64(5) + x[0]]


def test_a_missing_key_ends_the_program() -> None:
    program = distspmd.compile(distspmd.lower(numpy_program(asked, np.arange(4))), MPI.COMM_SELF)
    assert program(np.array([0, 5, 3, 2])) == 10
    with pytest.raises(ProgramKeyError, match="KeyError: the dictionary has no such key"):
        program(np.array([1, 5, 3, 2]))


def grows_meanwhile(x: Any) -> Any:
    found = {int(v): 1 for v in x}
    for key in found:
        found[key + 1] = 2
    return len(found)


def test_a_dictionary_that_grows_while_it_is_iterated_over_ends_the_program() -> None:
    program = distspmd.compile(
        distspmd.lower(numpy_program(grows_meanwhile, np.arange(4))), MPI.COMM_SELF
    )
    with pytest.raises(ProgramError, match="changed size during iteration"):
        program(np.array([0, 5, 3, 2]))


def without_default(x: Any) -> Any:
    return {1: 2.0}.get(int(x[0]))


def as_array(x: Any) -> Any:
    return np.array({int(v): 1.0 for v in x})


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (without_default, r"get\(key, 0\)"),
        (as_array, r"np.array\(list\(d.values\(\)\)\)"),
    ],
)
def test_what_is_not_covered_is_refused_with_what_to_write(function: Any, message: str) -> None:
    with pytest.raises(UnsupportedProgram, match=message):
        numpy_program(function, np.ones(8), host="refuse")
