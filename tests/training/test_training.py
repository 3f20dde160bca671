"""Training steps on ranks do what torch does: loss, parameters, buffers, optimizer state."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import UNOPTIMISED

from distspmd.runtime.launch.mpiexec import launch

TESTS = Path(__file__).resolve().parent.parent
ON_RANKS = [
    (4, ["attention", "accumulate", "residual"]),
    pytest.param(1, ["gpt"], marks=pytest.mark.slow),
    pytest.param(2, ["perceptron_adam", "rotary", "perceptron", "einsums"], marks=pytest.mark.slow),
    pytest.param(2, ["keep_gradients", "experts"], marks=pytest.mark.slow),
    pytest.param(4, ["encoder", "lenet", "tied"], marks=pytest.mark.slow),
]
"""Every model once. A batch of 5 or 6 on 4 ranks leaves one with nothing."""


@pytest.mark.parametrize(("ranks", "names"), ON_RANKS)
def test_training_is_what_torch_does(ranks: int, names: list[str], tmp_path: Path) -> None:
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    done = launch(
        ["-m", "training.run_models", *names],
        ranks=ranks,
        timeout=900,
        capture=True,
        env={"PYTHONPATH": path, **UNOPTIMISED},
        cwd=tmp_path,
    ).check()
    outcomes = [line for line in done.stdout.splitlines() if ": " in line]
    assert sorted(outcomes) == sorted(f"{name}: right" for name in names), done.stdout
