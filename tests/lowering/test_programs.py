"""Lowered programs compute on ranks what NumPy computes: each case of `lowering.programs`.

The ranks are started once for each number of them, and run all cases that were selected.

Where DaCe itself (2.0.0b1, one process, not lowered) is wrong, the cases say so:

=====================================================  ============================================
program                                                plain DaCe
=====================================================  ============================================
``np.all(x, axis=...)``                                False always; normalize/dace_fixes.py
``np.mean(z)`` of complex numbers                      does not compile; normalize/dace_fixes.py
``np.sum(c)`` of bools                                 a bool: refused
``(1, 1) @ (1, 1)``                                    IndexError in its dispatch; ours is used
``x @ y`` of complex vectors                           does not compile; ours is used
batches of a product of which a tile is taken          strides of the extents; ours is used
``np.tensordot``                                       asks for an implementation that is not there
``x[(i - 5) // 2]``                                    rounds towards zero: not ours to correct
``return y, y``                                        KeyError in its parser
``np.prod``, ``np.var``, ``np.outer``, ``np.cumsum``   call back into Python: refused
=====================================================  ============================================
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from conftest import selected

from distspmd.runtime.launch.mpiexec import launch
from lowering.harness import RANKS, Case
from lowering.mechanisms import COMPILED
from lowering.programs import CASES

TESTS = Path(__file__).resolve().parent.parent


class Outcomes:
    """What became of each case, by its name."""

    def __init__(
        self, names: list[str], folder: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self.names, self.folder, self.settings = names, folder, settings or {}
        self._of_ranks: dict[int, tuple[dict[str, str], str]] = {}

    def of(self, case: Case) -> str:
        """What is wrong with a case; the first to ask for a number of ranks starts them."""
        if case.ranks not in self._of_ranks:
            self._of_ranks[case.ranks] = self._run(case.ranks)
        problems, end = self._of_ranks[case.ranks]
        return problems.get(case.name, f"the ranks ended before the case did: {end}")

    def _run(self, ranks: int) -> tuple[dict[str, str], str]:
        file = self.folder / f"outcomes-{ranks}"
        path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        done = launch(
            ["-m", "lowering.run_cases", file, *self.names],
            ranks=ranks,
            timeout=2400,
            capture=True,
            env={"PYTHONPATH": path, **self.settings},
            cwd=self.folder,
        )
        lines = (
            [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        )
        problems = {line["ends"]: line["problem"] for line in lines if "ends" in line}
        started = [
            line["starts"] for line in lines if "starts" in line and line["starts"] not in problems
        ]
        end = f"code {done.returncode} in {started}\n{done.stdout}{done.stderr}"
        return problems, end[-4000:]


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    names = [case.name for case in selected(request, "case")]
    return Outcomes(names, tmp_path_factory.mktemp("lowering"))


CASES_BY_TIER = [
    case if case.name in COMPILED else pytest.param(case, marks=pytest.mark.slow) for case in CASES
]


@pytest.mark.parametrize("case", CASES_BY_TIER, ids=lambda case: case.name)
def test_a_lowered_program_computes_what_numpy_computes(case: Case, outcomes: Outcomes) -> None:
    problem = outcomes.of(case)
    assert not problem, problem


def test_names_of_cases_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert {case.ranks for case in CASES} == set(RANKS)
