"""Models that torch exported to ONNX, in one process and on ranks, beside torch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import UNOPTIMISED

from distspmd.runtime.launch.mpiexec import launch

TESTS = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    "names",
    [["lenet", "attention"], pytest.param(["perceptron", "einsums"], marks=pytest.mark.slow)],
)
def test_exported_models_do_what_torch_does(names: list[str], tmp_path: Path) -> None:
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    done = launch(
        ["-m", "from_onnx.run_models", *names],
        ranks=3,
        timeout=900,
        capture=True,
        env={"PYTHONPATH": path, **UNOPTIMISED},
        cwd=tmp_path,
    ).check()
    outcomes = [line for line in done.stdout.splitlines() if ": " in line]
    assert outcomes == [f"{name}: right" for name in names], done.stdout
