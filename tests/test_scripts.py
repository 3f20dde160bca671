"""The set-up of `scripts/`: which Python, which extras, and nothing done twice."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import LONGEST


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A copy of what the set-up reads, with a Python in .venv that only writes down its calls."""
    for name in ("pyproject.toml",):
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


@pytest.mark.parametrize("name", ["pyproject.toml", "scripts/pins.txt", "scripts/hashes.txt"])
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
