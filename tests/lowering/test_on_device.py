"""Lowered programs compute on devices what NumPy computes: cases of :mod:`lowering.programs`.

The devices are emulated, their streams lazy and their memory guarded: a wait that is missing gives
a wrong result, and an access of the host to the device's memory ends the ranks.
"""

import os

import pytest
from conftest import TEST_DEVICE, UNOPTIMISED, selected

from lowering.harness import Case
from lowering.mechanisms import MECHANISMS, REPRESENTATIVES
from lowering.programs import CASES
from lowering.test_programs import Outcomes

DEVICE = os.environ.get(TEST_DEVICE, "emulated")
MOST_RANKS = 4

SAMPLE = {
    "matmul[_MatMult_=1x1x1]-1",
    "index_of_indices[y=3]-3",
    "until_small[b=4]-4",
    "nested_stencil[y=4]-4",
    "solved[__return=4]-4",
}
"""A product on one rank, a fetch, control flow by data, halos, a function of the host."""

FIT = {case.name for case in CASES if case.ranks <= MOST_RANKS}
OF_MECHANISMS = [[name for name in names.split() if name in FIT] for names in MECHANISMS.values()]
QUICK = SAMPLE | {names[0] for names in OF_MECHANISMS}
"""The first case of each mechanism: on 1, 2, 3 and 4 ranks, which one launch each runs."""

TIERS = [
    case if case.name in QUICK else pytest.param(case, marks=pytest.mark.slow)
    for case in CASES
    if case.name in FIT & REPRESENTATIVES
]


@pytest.fixture(scope="session")
def outcomes_on_device(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Outcomes:
    names = [case.name for case in selected(request, "placed")]
    folder = tmp_path_factory.mktemp("on_device")
    return Outcomes(names, folder, {"DISTSPMD_DEVICE": DEVICE, **UNOPTIMISED})


@pytest.mark.gpu
@pytest.mark.parametrize("placed", TIERS, ids=lambda case: case.name)
def test_a_program_on_devices_computes_what_numpy_computes(
    placed: Case, outcomes_on_device: Outcomes
) -> None:
    problem = outcomes_on_device.of(placed)
    assert not problem, problem


def test_cases_on_devices_are_of_all_mechanisms_and_numbers_of_ranks() -> None:
    assert all(OF_MECHANISMS)
    quick = [case for case in CASES if case.name in QUICK]
    assert {case.ranks for case in quick} == {1, 2, 3, 4}
