"""Training on real data: the example of handwritten digits is as accurate on 4 ranks as torch."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_handwritten_digits_are_told_as_well_as_by_torch(root: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(root / "examples" / "digits.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = {
        name: float(percent)
        for name, percent in re.findall(r"(\w+) +([\d.]+) % of 497 other images", done.stdout)
    }
    assert told.keys() == {"distspmd", "torch"}, done.stdout
    assert told["torch"] > 85  # it has learnt
    assert abs(told["distspmd"] - told["torch"]) < 1
