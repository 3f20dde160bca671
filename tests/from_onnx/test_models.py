"""Models that torch exported to ONNX, in one process and on ranks, beside torch."""

from __future__ import annotations

import os
from pathlib import Path

from conftest import UNOPTIMISED

from distspmd.runtime.launch import launch

TESTS = Path(__file__).resolve().parent.parent


def test_exported_models_do_what_torch_does(tmp_path: Path) -> None:
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    done = launch(
        ["-m", "from_onnx.run_models"],
        ranks=3,
        timeout=900,
        capture=True,
        env={"PYTHONPATH": path, **UNOPTIMISED},
        cwd=tmp_path,
    ).check()
    outcomes = [line for line in done.stdout.splitlines() if ": " in line]
    assert outcomes == [f"{n}: right" for n in ("perceptron", "lenet", "attention", "einsums")], (
        done.stdout
    )
