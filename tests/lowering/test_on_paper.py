"""Programs of the suite that are not compiled in the default tier are right on paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernels import KERNELS

from lowering import mechanisms
from lowering.mechanisms import COMPILED, COMPILED_KERNELS, MECHANISMS
from lowering.programs import CASES
from lowering.run_on_paper import PLANNED, problems_of_all


@pytest.fixture(scope="session")
def found(request: pytest.FixtureRequest) -> dict[str, str]:
    selected = [
        item.callspec.params["planned"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and hasattr(item, "callspec")
        and "planned" in item.callspec.params
    ]
    return problems_of_all([PLANNED[name] for name in selected])


@pytest.mark.parametrize("planned", PLANNED)
def test_the_plans_of_a_program_do_what_numpy_does(planned: str, found: dict[str, str]) -> None:
    assert not found[planned]


def test_representatives_are_cases_and_kernels() -> None:
    assert {case.name for case in CASES} >= COMPILED
    assert {kernel.name for kernel in KERNELS} >= COMPILED_KERNELS
    assert len(COMPILED) == sum(len(names.split()) for names in MECHANISMS.values())


def test_the_table_of_mechanisms_is_on_the_page_of_tests(root: Path) -> None:
    page = (root / "tests" / "README.md").read_text()
    assert mechanisms.as_table() in page
