"""The example of a Llama that learns to write Python follows torch's losses on 4 ranks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import UNOPTIMISED


@pytest.mark.slow
def test_a_llama_follows_the_losses_of_torch(root: Path, tmp_path: Path) -> None:
    start = tmp_path / "sitecustomize.py"  # a torchvision of another torch may lie around
    start.write_text("import sys\nsys.modules['torchvision'] = None\n")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, str(root / "examples" / "llama.py"), "--small"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=1200,
        env={**os.environ, **UNOPTIMISED, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [
        (float(ours), float(theirs))
        for ours, theirs in re.findall(r"loss ([\d.]+), torch ([\d.]+)", done.stdout)
    ]
    assert len(losses) == 6
    assert losses[-1][0] < losses[0][0]
    assert all(abs(ours - theirs) < 1e-3 for ours, theirs in losses)
    assert "mesh={'data': 2, 'model': 2}" in done.stdout
