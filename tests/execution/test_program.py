"""The compiled program on ranks: every mistake reaches all ranks, and no failure hangs."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Launch

from distspmd.runtime.launch import environment
from distspmd.runtime.toolchain import find_mpi

RANKS = Path(__file__).parents[1] / "ranks"


def test_mistakes_are_told_on_all_ranks_before_anything_runs(launch: Launch) -> None:
    done = launch(RANKS / "mistakes.py", ranks=3)
    assert "all mistakes were told" in done.stdout


def seconds_since_the_failure(printed: str) -> float:
    found = re.search(r"failing at ([\d.]+)", printed)
    assert found is not None, printed
    return time.time() - float(found[1])


@pytest.mark.parametrize(
    ("how", "message"), [("raises", "ValueError: no more of this"), ("is killed", "signal 9")]
)
def test_a_rank_that_fails_ends_all_within_ten_seconds(
    how: str, message: str, launch: Launch
) -> None:
    done = launch(RANKS / "failing.py", how, ranks=3, check=False)
    assert seconds_since_the_failure(done.stdout) < 10
    assert done.returncode != 0
    assert message in done.stdout + done.stderr
    assert "came to the end" not in done.stdout


@pytest.mark.parametrize("when", ["raises", "raises early"])
def test_a_rank_that_raises_ends_all_without_the_module_mpi4py_too(
    when: str, tmp_path: Path
) -> None:
    mpi = find_mpi()
    command = [str(mpi.mpiexec), "-n", "3", sys.executable, str(RANKS / "failing.py"), when]
    done = subprocess.run(
        command,
        env=environment(mpi, 3),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert seconds_since_the_failure(done.stdout) < 10
    assert done.returncode != 0
    assert "distspmd: rank 1 failed; ending all ranks." in done.stderr
    assert "ValueError: no more of this" in done.stderr
    assert "came to the end" not in done.stdout
