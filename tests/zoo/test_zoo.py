"""Published architectures do what torch does: the forward pass and training steps, on ranks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import UNOPTIMISED

from distspmd.runtime.launch.mpiexec import launch
from zoo.registry import RANKS, named

TESTS = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("what", ["forward", "step"])
@pytest.mark.parametrize("name", named(RANKS))
def test_an_architecture_does_what_torch_does(name: str, what: str, tmp_path: Path) -> None:
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    done = launch(
        ["-m", "zoo.run_zoo", what, name],
        ranks=2,
        timeout=1800,
        capture=True,
        env={"PYTHONPATH": path, **UNOPTIMISED},
        cwd=tmp_path,
    ).check()
    assert f"{name} {what}: right" in done.stdout
