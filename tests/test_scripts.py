"""The set-up of `scripts/`: which Python, which extras, and nothing done twice."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LONGEST, is_on


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A copy of what the set-up reads, with a Python in .venv that only writes down its calls."""
    for name in ("setup.py", "pyproject.toml"):
        shutil.copy(root / name, tmp_path)
    shutil.copytree(root / "scripts", tmp_path / "scripts")
    executable(
        tmp_path / ".venv/bin/python",
        f'echo "$*" >>{tmp_path}/calls\n[ "$1" = -c ] && echo 1 || echo Python 3.11.0',
    )
    return tmp_path


def executable(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return path


def bash(checkout: Path, code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    around = {"PATH": os.environ["PATH"], "HOME": str(checkout), **environ}
    command = ["/bin/bash", "-c", f"source {checkout}/scripts/setup.sh\n{code}"]
    return subprocess.run(command, cwd="/", env=around, capture_output=True, text=True, timeout=600)


def installations(checkout: Path) -> list[str]:
    return [line for line in (checkout / "calls").read_text().splitlines() if "--editable" in line]


def test_a_second_set_up_does_nothing(checkout: Path) -> None:
    for _ in range(2):
        assert bash(checkout, "setup").returncode == 0
        assert len(installations(checkout)) == 1


@pytest.mark.parametrize("name", ["pyproject.toml", "setup.py", "scripts/pins.txt"])
def test_a_change_of_the_pins_sets_up_again(checkout: Path, name: str) -> None:
    bash(checkout, "setup")
    with (checkout / name).open("a") as file:
        file.write("# changed\n")
    bash(checkout, "setup")
    assert len(installations(checkout)) == 2


def test_a_failed_installation_is_tried_again(checkout: Path) -> None:
    python = checkout / ".venv/bin/python"
    works = python.read_text()
    python.write_text(f"{works}\n[[ $* != *--editable* ]]\n")
    assert bash(checkout, "setup").returncode != 0
    python.write_text(works)
    assert bash(checkout, "setup").returncode == 0
    assert len(installations(checkout)) == 2


def test_an_mpi_is_installed_only_where_the_site_has_none(checkout: Path) -> None:
    site = checkout / "site"
    assert bash(checkout, "extras", PATH=f"{site}").stdout == "dev,search,mpi\n"
    executable(site / "mpicc")
    assert bash(checkout, "extras", PATH=f"{site}").stdout == "dev,search,mpi\n"
    executable(site / "mpiexec")
    assert bash(checkout, "extras", PATH=f"{site}").stdout == "dev,search\n"
    assert (
        bash(checkout, "extras", PATH="/nowhere", DISTSPMD_MPI="/opt/mpi").stdout == "dev,search\n"
    )


def test_the_mpi_in_the_environment_is_not_a_site(checkout: Path) -> None:
    for name in ("mpicc", "mpiexec"):
        executable(checkout / ".venv/bin" / name)
    assert bash(checkout, "extras", PATH=f"{checkout}/.venv/bin").stdout == "dev,search,mpi\n"


def test_the_files_that_take_longest_are_there(root: Path) -> None:
    names = LONGEST.split()
    assert len(names) == len(set(names))
    assert not [name for name in names if not (root / "tests" / f"{name}.py").is_file()]


def test_python_3_11_comes_first(checkout: Path) -> None:
    for name in ("python3", "python3.11"):
        executable(checkout / "bin" / name)
    found = bash(checkout, "find_python", PATH=f"{checkout}/bin").stdout
    assert found == f"{checkout}/bin/python3.11\n"


def test_no_python_is_told_with_what_to_install(checkout: Path) -> None:
    executable(checkout / "bin/python3", "exit 1")
    (checkout / "bin/cat").symlink_to("/bin/cat")
    done = bash(checkout, "find_python", PATH=f"{checkout}/bin")
    assert done.returncode != 0
    assert "error: no Python 3.10 or later" in done.stderr
    assert "apt install" in done.stderr


def test_the_script_for_gpus_says_what_is_not_here_and_goes_on(checkout: Path) -> None:
    done = subprocess.run(
        [checkout / "scripts" / "gpu", "--device", "cuda", "--ranks", "1,2", "--out", "results"],
        cwd=checkout,
        env={"PATH": "/usr/bin:/bin", "HOME": str(checkout)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "not here: 1\n" in done.stdout, "what the check of the device has printed"
    calls = (checkout / "calls").read_text()
    assert "-m distspmd doctor" in calls
    results = f"--json {checkout}/results/benchmarks.json"
    assert f"benchmarks/gpu.py --device cuda --ranks 1 2 {results}" in calls
    assert (checkout / "results" / "benchmarks.txt").exists()


def on_gpus(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [checkout / "scripts/gpu", *arguments]
    around = {"PATH": "/usr/bin:/bin", "HOME": str(checkout)}
    return subprocess.run(
        command, cwd=checkout, env=around, capture_output=True, text=True, timeout=600
    )


def test_each_test_of_devices_has_a_number_of_ranks(request: pytest.FixtureRequest) -> None:
    """By which ``scripts/gpu`` chooses it."""
    found = [item for item in request.session.items if item.get_closest_marker("gpu")]
    assert [each.nodeid for each in found if not any(is_on(each, n) for n in range(1, 5))] == []


def test_the_script_for_gpus_has_help_that_sets_nothing_up(checkout: Path) -> None:
    done = on_gpus(checkout, "--small", "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: scripts/gpu [--device cuda|emulated]" in done.stdout
    assert "three programs\nunder compute-sanitizer" in done.stdout
    assert not (checkout / "calls").exists()


@pytest.mark.parametrize("status", [0, 1])
def test_on_a_gpu_three_programs_run_under_both_sanitizers(checkout: Path, status: int) -> None:
    folder = checkout / ".venv/bin"
    here = f'echo "$*" >>{checkout}/calls\n[[ $* == *check_can_run* ]] && exit\n'
    executable(folder / "python", f'{here}[ "$1" = -c ] && echo 1 || echo Python 3.11.0')
    executable(folder / "pytest", f'echo "pytest $DISTSPMD_TEST_RANKS $*" >>{checkout}/calls')
    fails = f"[[ $* != *racecheck* ]] || exit {status}"
    executable(
        folder / "compute-sanitizer",
        f'echo "compute-sanitizer $*" >>{checkout}/calls\n{fails}',
    )
    done = on_gpus(checkout, "--ranks", "1,4", "--small", "-k", "matmul")
    assert done.returncode == status, done.stdout + done.stderr
    calls = (checkout / "calls").read_text().splitlines()
    tests = [call for call in calls if call.startswith("pytest")]
    assert tests == ["pytest 1 -m gpu -k matmul", "pytest 4 -m gpu -k matmul"]
    program = "python -m mpi4py benchmarks/gpu.py {} --inside --small --repeat 1 --device cuda"
    checks = [
        f"{tool} --error-exitcode 1" for tool in ("--target-processes all", "--tool racecheck")
    ]
    assert [call for call in calls if call.startswith("compute-sanitizer")] == [
        f"compute-sanitizer {check} {program.format(name)}"
        for name in ("jacobi", "softmax", "matmul")
        for check in checks
    ]
    assert "-m distspmd doctor --measure --device cuda" in calls
    failed = "failed: racecheck-jacobi racecheck-softmax racecheck-matmul; what they printed"
    assert (failed in done.stdout) == bool(status)


@pytest.mark.slow
def test_the_script_for_gpus_runs_whole_on_the_emulated_device(root: Path, tmp_path: Path) -> None:
    """With the quick ones of its tests, in the environment of this process."""
    scripts, out = tmp_path / "scripts", tmp_path / "results"
    scripts.mkdir()
    shutil.copy(root / "scripts" / "gpu", scripts)
    here = f'setup() {{ export PATH="{Path(sys.executable).parent}:$PATH"; }}'
    (scripts / "setup.sh").write_text(f'set -euo pipefail\nroot="{root}"\n{here}\n')
    how = ("--device", "emulated", "--small", "--out", str(out), "-m", "gpu and not slow")
    done = subprocess.run(
        [scripts / "gpu", *how], capture_output=True, text=True, timeout=3000, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "all parts that could run are right" in done.stdout
    for ranks in (1, 2, 4):
        said = (out / f"tests-{ranks}.txt").read_text().splitlines()[-1]
        assert re.search(r"[1-9]\d* passed", said), said
        assert "failed" not in said
    for part in ("doctor", "measure", "plain-jacobi", "plain-softmax", "plain-matmul"):
        assert (out / f"{part}.txt").read_text().strip()
    kept = json.loads((out / "benchmarks.json").read_text())
    by = {row["by"] for row in kept["rows"] if row["program"] == "softmax"}
    assert {f"distspmd, {ranks} rank(s)" for ranks in (1, 2, 4)} <= by
