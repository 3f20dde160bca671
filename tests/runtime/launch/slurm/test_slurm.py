"""Jobs of a real Slurm with two nodes, which this machine plays in namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ENDING = HERE.parents[2] / "ranks" / "ending.py"
TOOLS = ("slurmctld", "slurmd", "sbatch", "munged", "unshare", "ip")
NAMESPACES = ("unshare", "--net", "--mount", "--propagation", "private")


def cannot_play() -> str:
    """Why there can be no Slurm here, if so."""
    around = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=around)]
    if missing:
        return f"{', '.join(missing)} are missing"
    if os.geteuid() != 0:
        return "Slurm's daemons start as root alone"
    tried = subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "this machine allows no namespaces"


pytestmark = pytest.mark.skipif(bool(cannot_play()), reason=cannot_play() or "it can be played")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: PMIx makes sockets below it."""
    with tempfile.TemporaryDirectory(prefix="fs", ignore_cleanup_errors=True) as made:
        yield Path(made)


def run_jobs(folder: Path, jobs: dict[str, tuple[int, str]]) -> dict[str, str]:
    """Run jobs of two nodes, each with as many tasks on a node as is said; what they print."""
    slurm = f"{HERE / 'fake_slurm'} {{}} {folder}/slurm"
    lines = [f"trap '{slurm.format('stop')}' EXIT", f"{slurm.format('start')} 2 4 || exit 1"]
    lines.append(f"export SLURM_CONF={folder}/slurm/slurm.conf")
    for name, (tasks, command) in jobs.items():
        script = folder / f"{name}.sh"
        script.write_text(f"#!/bin/sh\n{command} 2>&1\necho code $?\n")
        printed = f"{folder}/{name}.out"
        lines.append(f"sbatch -N2 --ntasks-per-node={tasks} -o {printed} {script}")
        # sbatch --wait asks after 2 seconds, and then after 8 more
        lines.append(f"timeout 240 sh -c 'until grep -qs ^code {printed}; do sleep 0.1; done'")
    around = {
        **os.environ,
        "PATH": f"{os.environ['PATH']}:/usr/sbin",
        "DISTSPMD_TIMEOUT": "60",
        "PYTHONPATH": str(HERE.parents[3]),
    }
    done = subprocess.run(
        [*NAMESPACES, "bash", "-c", "\n".join(lines)],
        env=around,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    found = {name: folder / f"{name}.out" for name in jobs}
    assert all(file.exists() for file in found.values()), done.stdout + done.stderr
    return {name: file.read_text(errors="replace") for name, file in found.items()}


def test_a_job_of_two_nodes_uses_both_and_refuses_more_tasks_than_it_has(folder: Path) -> None:
    python, hosts = sys.executable, HERE / "hosts.py"
    said = run_jobs(
        folder,
        {
            "run": (2, f"{python} -m distspmd run {hosts} -n 4"),
            "more": (2, f"{python} -m distspmd run {hosts} -n 5"),
            "twice": (2, f"srun --mpi=none {python} -m distspmd run {hosts} -n 2"),
        },
    )
    assert "hosts: n1 n1 n2 n2\n" in said["run"]
    assert "code 0\n" in said["run"]
    _are_refused(
        said,
        more="has 4 tasks on 2 node(s)",
        twice="srun started 4 processes, each of which would launch 2 ranks",
    )


@pytest.mark.slow
def test_ranks_of_two_nodes_that_end_stop_or_disagree_are_told(folder: Path) -> None:
    python = sys.executable
    said = run_jobs(
        folder,
        {
            "alone": (2, f"srun --mpi=none {python} {HERE / 'hosts.py'}"),
            "ends": (1, f"{python} -m distspmd run {ENDING} exits -n 2"),
            "disagree": (1, f"{python} -m distspmd run {HERE / 'disagree.py'} -n 2"),
            "stops": (1, f"DISTSPMD_TIMEOUT=3 {python} -m distspmd run {ENDING} stopped -n 2"),
        },
    )
    _are_refused(
        said,
        alone="srun started 4 processes, but MPI joins none of them",
        ends="rank 1 ended while rank 0 waits in redistribute(",
        stops="rank 0 waits in redistribute(",
    )
    assert "DISTSPMD_TIMEOUT is 3" in said["stops"]
    assert said["disagree"].count("rank 1: redistribute(") == 2
    assert "code 0\n" in said["disagree"]


def _are_refused(said: dict[str, str], **texts: str) -> None:
    for name, text in texts.items():
        assert text in said[name], said[name]
        assert "code 0\n" not in said[name]
