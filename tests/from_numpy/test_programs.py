"""Programs as their authors write them: none is wrong, none ends in a foreign error.

The quick tier runs a sample on two ranks, one of each kind of statement; the slow one all.
"""

from __future__ import annotations

import pytest

from from_numpy.collections_of_cases import collection
from from_numpy.outcomes import FOREIGN, REFUSED, RIGHT, WRONG, Outcome, as_table
from from_numpy.sweep import by_field, sweep

SAMPLE = """
    jacobi_2d-7 red_black_gauss_seidel-9 game_of_life-7x13 compute_mandelbrot-9
    conjugate_gradient-7 lu_doolittle-5 bicgstab_complex-4 histogram_by_hand-21
    monte_carlo_pi-50 dft_slow-13 downsample-4x5 softmax_loss-9x4
    floyd_warshall-7 knapsack-6x13 xorshift32-5 nbody-7
"""
NAMES = SAMPLE.split()


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return {each.name: each for each in sweep(NAMES, mode="2", limit=200)}


@pytest.mark.parametrize("name", NAMES)
def test_a_program_computes_what_numpy_computes(name: str, outcomes: dict[str, Outcome]) -> None:
    assert outcomes[name].kind == RIGHT, outcomes[name].reason


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["1,2,3", "paper"])
@pytest.mark.parametrize("dimension", [0, 1])
def test_nearly_all_programs_work_and_the_others_are_refused(mode: str, dimension: int) -> None:
    cases = collection("corpus")
    found = sweep(list(cases), mode=mode, dimension=dimension, jobs=2)
    bad = [each for each in found if each.kind in (WRONG, FOREIGN)]
    assert not bad, f"{as_table(bad)}\n{by_field(found, cases)}"
    refused = {cases[each.name].function for each in found if each.kind == REFUSED}
    assert len(refused) <= len({case.function for case in cases.values()}) / 20
