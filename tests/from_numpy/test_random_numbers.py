"""Random numbers of NumPy programs: the same at any number of ranks, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program

OUTSIDE = np.random.default_rng(0)


def test_numbers_are_the_same_at_any_number_of_ranks_and_well_distributed(launch: Any) -> None:
    done = launch(Path(__file__).parent / "draws.py", ranks=3)
    assert done.stdout == "all as drawn\n"


def _in_loop(n: int) -> Any:
    total = 0.0
    for _ in range(n):
        np.random.seed(1)  # noqa: NPY002
        total += np.random.rand()  # noqa: NPY002
    return total


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.random.default_rng(1).binomial(3, 0.5), "sum up draws"),
        (lambda x: np.random.default_rng([1, 2]).random(3), "give one whole number"),
        (lambda x: np.random.default_rng(x[0]).random(3), "one whole number"),
        (lambda x: np.random.Generator(OUTSIDE).random(), "made outside of the program"),
        (lambda x: np.random.default_rng(1).integers(5, 2), "low >= high"),
        (lambda x: np.random.default_rng(1).shuffle([1, 2]), "use permutation"),
        (lambda x: _in_loop(int(x[0])), "in a loop or branch"),
    ],
)
def test_what_is_not_covered_is_refused(call: Any, message: str) -> None:
    def program(x: Any) -> Any:
        return call(x)

    with pytest.raises(UnsupportedProgram, match=message):
        numpy_program(program, np.ones(3))


def test_a_generator_from_outside_is_refused() -> None:
    def program(x: Any) -> Any:
        return x + OUTSIDE.random(3)

    with pytest.raises(UnsupportedProgram, match="made outside of the program"):
        numpy_program(program, np.ones(3))
