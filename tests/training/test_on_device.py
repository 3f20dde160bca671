"""Modules whose parameters lie on a device: they train there, with the numbers of the host."""

from pathlib import Path

import pytest
from conftest import Launch

PROGRAM = Path(__file__).parents[1] / "ranks" / "device_training.py"
SLOW = pytest.mark.slow


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("ranks", "placements"),
    [
        (2, ["replicated"]),
        pytest.param(1, ["replicated", "root", "halves"], marks=SLOW),
        pytest.param(3, ["distributed", "root", "halves"], marks=SLOW),
    ],
)
def test_modules_of_a_device_train_on_it(ranks: int, placements: list[str], launch: Launch) -> None:
    said = launch(PROGRAM, *placements, ranks=ranks).stdout
    assert said.count("trained on the device") == len(placements)


@pytest.mark.gpu
@SLOW
@pytest.mark.parametrize(
    ("ranks", "cases"),
    [
        (1, ["float16,root"]),
        (2, ["float16,replicated", "bfloat16,root"]),
        (3, ["float16,distributed", "bfloat16,replicated"]),
    ],
)
def test_steps_in_the_precision_that_cuda_casts_to_train_as_in_torch(
    ranks: int, cases: list[str], launch: Launch
) -> None:
    said = launch(PROGRAM.with_name("device_precision.py"), *cases, ranks=ranks).stdout
    assert said.count("trained on the device") == len(cases)
