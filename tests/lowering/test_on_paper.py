"""Programs of the suite are right on paper; in the quick tier those that it does not compile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from conftest import selected
from kernels import KERNELS

from distspmd.lowering import ATTRIBUTE
from lowering import mechanisms
from lowering.harness import parsed
from lowering.mechanisms import COMPILED_KERNELS, MECHANISMS, REPRESENTATIVES
from lowering.on_paper import problems
from lowering.programs import CASES
from lowering.run_on_paper import ONCE, PLANNED, problems_of_all


@pytest.fixture(scope="session")
def found(request: pytest.FixtureRequest) -> dict[str, str]:
    return problems_of_all([PLANNED[name] for name in selected(request, "planned")])


PLANNED_BY_TIER = [
    name if name in ONCE else pytest.param(name, marks=pytest.mark.slow) for name in PLANNED
]


@pytest.mark.parametrize("planned", PLANNED_BY_TIER)
def test_the_plans_of_a_program_do_what_numpy_does(planned: str, found: dict[str, str]) -> None:
    assert not found[planned]


def test_records_that_do_not_agree_with_their_plans_are_told() -> None:
    case = next(case for case in CASES if case.name == "broadcast[__return=2x1x2]-4")
    lowering = getattr(case.lowered(parsed(case.program, case.frontend)), ATTRIBUTE)
    assert not [*problems(lowering)]
    first, *others = lowering.memlets
    cost = replace(first.solution.cost, nbytes=first.solution.cost.nbytes + 1)
    wrong = replace(first, solution=replace(first.solution, cost=cost))
    said = [*problems(replace(lowering, memlets=(wrong, *others)))]
    assert any("bytes are received" in each for each in said)


def test_representatives_are_cases_and_kernels() -> None:
    assert {case.name for case in CASES} >= REPRESENTATIVES
    assert {kernel.name for kernel in KERNELS} >= COMPILED_KERNELS
    assert len(REPRESENTATIVES) == sum(len(names.split()) for names in MECHANISMS.values())


def test_the_table_of_mechanisms_is_on_the_page_of_tests(root: Path) -> None:
    page = (root / "tests" / "README.md").read_text()
    assert mechanisms.as_table() in page
