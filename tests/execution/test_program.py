"""The compiled program on ranks: every mistake reaches all ranks, and no failure hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Launch

from distspmd.runtime.compilers.toolchain import find_mpi
from distspmd.runtime.launch.mpiexec import environment

RANKS = Path(__file__).parents[1] / "ranks"


def test_mistakes_are_told_on_all_ranks_before_anything_runs(launch: Launch) -> None:
    done = launch(RANKS / "mistakes.py", ranks=3)
    assert "all mistakes were told" in done.stdout


@pytest.mark.parametrize(
    ("how", "message"), [("raises", "ValueError: no more of this"), ("is killed", "signal 9")]
)
def test_a_rank_that_fails_ends_all(how: str, message: str, launch: Launch) -> None:
    done = launch(RANKS / "failing.py", how, ranks=3, check=False)
    assert not done.timed_out
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
        timeout=600,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode != 0
    assert "distspmd: rank 1 failed; ending all ranks." in done.stderr
    assert "ValueError: no more of this" in done.stderr
    assert "came to the end" not in done.stdout


def test_zeros_have_the_signs_that_numpy_gives_them(launch: Launch) -> None:
    assert "all is right" in launch(RANKS / "zeros.py", ranks=2).stdout


def test_ranks_other_than_the_first_import_no_dace(launch: Launch) -> None:
    told = launch(RANKS / "lazy_imports.py", ranks=3).stdout.split("imported:\n")[1]
    first, *others = told.splitlines()
    assert "dace" in first
    assert others == ["[]", "[]"]


def test_what_long_processes_have_closed_or_not_used_for_long_is_gone(launch: Launch) -> None:
    done = launch(RANKS / "long_running.py", ranks=2)
    assert done.stdout.count("bytes more on rank") == 4


CLOSED = """
import time
import numpy as np
import distspmd
from mpi4py import MPI
from distspmd.frontend import numpy_program

def doubled(x):
    return 2.0 * x

lowering = distspmd.lower(numpy_program(doubled, np.zeros(100_000)), {})
with distspmd.compile(lowering, MPI.COMM_SELF) as program:
    program(np.zeros(100_000))
time.sleep(0.5)
print("omp is there:", any("omp" in line for line in open("/proc/self/maps")))
"""


def test_threads_of_a_closed_program_still_have_their_code(tmp_path: Path) -> None:
    """In a process where nothing else has loaded OpenMP, as torch does."""
    (tmp_path / "closed.py").write_text(CLOSED)
    command = [sys.executable, str(tmp_path / "closed.py")]
    done = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "2"}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "omp is there: True\n"), done.stderr
