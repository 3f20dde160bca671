"""Training steps on ranks do what torch does: loss, parameters, buffers, optimizer state."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from distspmd.runtime.launch import launch

TESTS = Path(__file__).resolve().parent.parent
ON_RANKS = {
    1: ["gpt"],
    2: ["perceptron", "einsums", "residual", "keep_gradients"],
    4: ["perceptron_adam", "attention", "encoder", "lenet", "accumulate", "tied"],
}
"""Every model once. A batch of 5 or 6 on 4 ranks leaves one with nothing."""


@pytest.mark.parametrize("ranks", ON_RANKS)
def test_training_is_what_torch_does(ranks: int, tmp_path: Path) -> None:
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    done = launch(
        ["-m", "training.run_models", *ON_RANKS[ranks]],
        ranks=ranks,
        timeout=900,
        capture=True,
        env={"PYTHONPATH": path},
        cwd=tmp_path,
    ).check()
    outcomes = [line for line in done.stdout.splitlines() if ": " in line]
    assert sorted(outcomes) == sorted(f"{name}: right" for name in ON_RANKS[ranks]), done.stdout
