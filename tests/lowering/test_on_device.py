"""Lowered programs compute on devices what NumPy computes: a sample of :mod:`lowering.programs`.

The devices are emulated, their streams lazy and their memory guarded: a wait that is missing gives
a wrong result, and an access of the host to the device's memory ends the ranks.
"""

import os

import pytest
from conftest import TEST_DEVICE, UNOPTIMISED, selected

from lowering.harness import Case
from lowering.mechanisms import REPRESENTATIVES
from lowering.programs import CASES
from lowering.test_programs import Outcomes

pytestmark = pytest.mark.gpu
DEVICE = os.environ.get(TEST_DEVICE, "emulated")
MOST_RANKS = 4

SAMPLE = (
    "matmul[_MatMult_=1x1x1]-1",
    "index_of_indices[y=3]-3",
    "until_small[b=4]-4",
    "nested_stencil[y=4]-4",
    "solved[__return=4]-4",
)
"""A product on one rank, a fetch, control flow by data, halos, a function of the host."""

TIERS = [
    case if case.name in SAMPLE else pytest.param(case, marks=pytest.mark.slow)
    for case in CASES
    if case.ranks <= MOST_RANKS and case.name in REPRESENTATIVES
]


@pytest.fixture(scope="session")
def outcomes_on_device(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Outcomes:
    names = [case.name for case in selected(request, "placed")]
    folder = tmp_path_factory.mktemp("on_device")
    return Outcomes(names, folder, {"DISTSPMD_DEVICE": DEVICE, **UNOPTIMISED})


@pytest.mark.parametrize("placed", TIERS, ids=lambda case: case.name)
def test_a_program_on_devices_computes_what_numpy_computes(
    placed: Case, outcomes_on_device: Outcomes
) -> None:
    problem = outcomes_on_device.of(placed)
    assert not problem, problem
