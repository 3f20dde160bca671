"""Each kernel on one number of ranks: 3, or 4, where grids have two dimensions.

``scripts/coverage.py`` runs all of them on 1, 2, 3, 4 and 6 ranks.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import selected
from lowering.mechanisms import COMPILED_KERNELS

from distspmd.runtime.launch.mpiexec import launch
from kernels import KERNELS, ranks_of
from kernels.kernel import Kernel

TESTS = Path(__file__).resolve().parent.parent

KERNELS_BY_TIER = [
    kernel if kernel.name in COMPILED_KERNELS else pytest.param(kernel, marks=pytest.mark.slow)
    for kernel in KERNELS
]


class Results:
    """What became of each kernel; the first to ask for a number of ranks starts them."""

    def __init__(self, names: set[str], folder: Path) -> None:
        self.names, self.folder = names, folder
        self._of_ranks: dict[int, dict[str, dict[str, Any]]] = {}

    def of(self, kernel: Kernel) -> dict[str, Any]:
        ranks = ranks_of(kernel)
        if ranks not in self._of_ranks:
            self._of_ranks[ranks] = self._run(ranks)
        ended = {"problem": f"the ranks ended before the kernel did, see {self.folder}"}
        return self._of_ranks[ranks].get(kernel.name, ended)

    def _run(self, ranks: int) -> dict[str, dict[str, Any]]:
        names = [k.name for k in KERNELS if k.name in self.names and ranks_of(k) == ranks]
        file = self.folder / f"kernels-{ranks}"
        path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        done = launch(
            ["-m", "lowering.run_kernels", file, *names],
            ranks=ranks,
            timeout=2400,
            capture=True,
            env={"PYTHONPATH": path},
            cwd=self.folder,
        )
        (self.folder / f"output-{ranks}").write_text(done.stdout + done.stderr)
        lines = file.read_text().splitlines() if file.exists() else []
        return {found["kernel"]: found for found in map(json.loads, lines)}


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    names = {kernel.name for kernel in selected(request, "kernel")}
    return Results(names, tmp_path_factory.mktemp("kernels"))


@pytest.mark.parametrize("kernel", KERNELS_BY_TIER, ids=lambda kernel: kernel.name)
def test_a_kernel_computes_what_numpy_computes(kernel: Kernel, results: Results) -> None:
    problem = results.of(kernel)["problem"]
    assert not problem, problem


def test_there_are_at_least_40_kernels() -> None:
    names = [kernel.name for kernel in KERNELS]
    assert len(names) == len(set(names)) >= 40


def test_the_table_has_all_kernels_as_they_are_split_here(root: Path) -> None:
    rows = [line for line in (root / "docs" / "coverage.md").read_text().split("\n") if "`" in line]
    found = [line.split(" | ")[:2] for line in rows if line.startswith("| `")]
    assert found == [[f"| `{kernel.name}`", kernel.words] for kernel in KERNELS]
