"""`distspmd.redistribute` on ranks, as a user of the engine alone calls it."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Launch

SLOW = pytest.mark.slow
PROGRAM = Path(__file__).parents[2] / "ranks" / "redistributing.py"


@pytest.mark.parametrize("ranks", [1, 3])
def test_every_array_of_numpy_is_taken_or_refused_with_a_sentence(
    ranks: int, launch: Launch
) -> None:
    program = PROGRAM.with_name("unusual_tiles.py")
    assert "all arrays were taken or refused" in launch(program, ranks=ranks, timeout=120).stdout


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=SLOW), 4, pytest.param(6, marks=SLOW)])
def test_tiles_arrive_whatever_the_layouts_types_and_strides(ranks: int, launch: Launch) -> None:
    assert "all tiles arrived" in launch(PROGRAM, ranks=ranks).stdout
