"""Arrays that stay on the ranks of a driver, redistributions, checks, and training steps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import UNOPTIMISED
from driver.processes import SCRIPTS, finished


def test_arrays_stay_on_the_ranks_and_are_taken_where_they_lie(tmp_path: Path) -> None:
    code, out, err = finished("arrays.py", cwd=tmp_path)
    assert (code, out) == (0, "arrays are right\n"), err


def test_training_steps_of_a_driver_are_those_of_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code, out, err = finished("training.py", str(tmp_path / "saved"), cwd=tmp_path)
    assert code == 0, err
    assert out == "steps are those of torch\nfiles give back what was saved\n"


def test_the_command_runs_a_script_as_the_driver_of_its_ranks(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text((SCRIPTS / "of_a_command.py").read_text())
    command = [sys.executable, "-m", "distspmd", "run", "--driver", str(file), "-n", "2", "7"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **UNOPTIMISED}, timeout=600
    )
    assert (done.returncode, done.stdout) == (3, "one process, 2 ranks: [8.0, 8.0, 8.0]\n"), (
        done.stderr
    )
