"""Where the caller holds arguments and results."""

from pathlib import Path

import pytest
from conftest import Launch

PROGRAM = Path(__file__).parents[1] / "ranks" / "holding.py"
STAYING = PROGRAM.with_name("staying.py")


SLOW = pytest.mark.slow


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=SLOW), pytest.param(3, marks=SLOW), 4])
def test_ranks_hold_what_they_were_asked_to(ranks: int, launch: Launch) -> None:
    assert "held as asked" in launch(PROGRAM, ranks=ranks).stdout


@pytest.mark.parametrize(
    ("ranks", "placements"),
    [
        (4, ["replicated", "distributed"]),
        pytest.param(4, ["states", "root"], marks=SLOW),
        pytest.param(1, ["replicated", "states", "distributed", "root"], marks=SLOW),
    ],
)
def test_parameters_and_states_stay_on_the_ranks(
    ranks: int, placements: list[str], launch: Launch
) -> None:
    assert "stayed" in launch(STAYING, *placements, ranks=ranks).stdout
