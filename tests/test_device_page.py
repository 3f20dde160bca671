"""What docs/gpu.md tells users to write and to type works as it stands, on the emulated device."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import UNOPTIMISED, Launch

MODEL = """
import numpy as np

def step(x: "float64[40, 30]", w: "float64[30, 20]"):
    hidden = np.tanh(x @ w)
    return hidden / np.sum(hidden, axis=1, keepdims=True)
"""

SCRIPT = """
import numpy as np
from mpi4py import MPI

import distspmd

comm = MPI.COMM_WORLD


def doubled(x):
    y = x * 2
    return y


x = numpy_array = np.arange(24.0)
lowered = None
if comm.rank == 0:
    lowered = distspmd.program(schedule={"y": (comm.size,)})(doubled).lower(x)
"""

OF_THE_READER = """
program = distspmd.compile(lowered, comm)
with program:
    found = program(x=x)
    if comm.rank == 0:
        assert np.array_equal(found, 2 * x)
        assert program.device is not None
        print(f"right on {comm.size} ranks")
"""

AS_TOLD = """
if comm.rank == 0:
    assert np.array_equal(result, 2 * numpy_array)
    assert isinstance(y, distspmd.runtime.DeviceArray)
    assert np.array_equal(y.numpy(), result)
    print("all is right")
"""


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "gpu.md").read_text()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[str]:
    """Lines of blocks of the shell that are typed one by one, without what is said of them."""
    typed = [block for block in blocks(page, "shell") if not block.startswith("#!")]
    return [line.split("  #")[0].strip() for block in typed for line in block.splitlines()]


def script_of_the_batch_system(page: str) -> str:
    (found,) = (block for block in blocks(page, "shell") if block.startswith("#!"))
    return found


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of these tests: what is measured here is no one else's."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def shell(root: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the reader's files, in which ``distspmd`` is that of this checkout."""
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "script.py").write_text(SCRIPT + OF_THE_READER)
    command = tmp_path / "bin" / "distspmd"
    command.parent.mkdir()
    command.write_text(f'#!/bin/bash\nexec {sys.executable} -W ignore -m distspmd "$@"\n')
    command.chmod(0o755)
    named = {"PATH": f"{command.parent}:{os.environ['PATH']}", "HOME": str(tmp_path), **UNOPTIMISED}
    named["DISTSPMD_CACHE"] = str(cache)
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def bash(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", *command], cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.gpu
@pytest.mark.parametrize("ranks", [2])
def test_the_programs_of_the_page_run_as_they_are_written(
    page: str, launch: Launch, ranks: int
) -> None:
    kind = os.environ.get("DISTSPMD_TEST_DEVICE", "emulated")
    written = "".join(blocks(page, "python")).replace('"emulated"', f'"{kind}"')
    assert "all is right" in launch(SCRIPT + written + AS_TOLD, ranks=ranks).stdout


def test_the_extras_that_the_page_installs_exist(page: str, root: Path) -> None:
    section = (
        (root / "pyproject.toml").read_text().partition("[project.optional-dependencies]\n")[2]
    )
    known = set(re.findall(r"^(\w+) = \[", section.partition("\n[")[0], re.MULTILINE))
    named = set(re.findall(r"'(?:\.|distspmd)\[(\w+)\]'", page))
    assert {"cuda", "mpi", "torch"} <= named <= known


TYPED = {
    "distspmd run -n 4 model.py:step --device emulated": (
        0,
        "largest difference from the Python function",
    ),
    "DISTSPMD_DEVICE=emulated distspmd run -n 4 script.py": (0, "right on 4 ranks"),
    "distspmd check -n 4 model.py:step --device emulated": (0, ""),
    "distspmd doctor": (0, "emulated"),
    "distspmd doctor --measure --device cuda": (None, "cuda"),
}


def test_each_command_of_the_page_is_tried(page: str) -> None:
    elsewhere = ("pip install", "scripts/gpu")  # the script has tests of its own
    typed = {line for line in commands(page) if not line.startswith(elsewhere)}
    assert typed == TYPED.keys()


@pytest.mark.slow
@pytest.mark.parametrize("command", TYPED)
def test_the_commands_of_the_page_do_what_it_says(shell: Path, command: str) -> None:
    """Without a GPU, what is measured of one says so."""
    code, said = TYPED[command]
    done = bash(shell, "-c", command)
    assert done.returncode == code or code is None, done.stdout + done.stderr
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_script_for_a_batch_system_is_bash_and_asks_for_as_many_ranks_as_it_starts(
    page: str, tmp_path: Path
) -> None:
    script = script_of_the_batch_system(page)
    (tmp_path / "job.sh").write_text(script)
    done = bash(tmp_path, "-n", "job.sh")
    assert done.returncode == 0, done.stderr
    asked = dict(re.findall(r"--([\w-]+)=(\d+)", script))
    assert asked["ntasks-per-node"] == asked["gpus-per-node"], "one rank a GPU"
    (ranks,) = re.findall(r" -n (\d+)", script)
    assert int(ranks) == int(asked["nodes"]) * int(asked["ntasks-per-node"])


@pytest.mark.slow
def test_the_script_for_a_batch_system_runs(
    page: str, shell: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in for the site's modules; the reader's program takes the emulated device."""
    monkeypatch.setenv("DISTSPMD_DEVICE", "emulated")
    (shell / "job.sh").write_text(script_of_the_batch_system(page))
    done = bash(shell, "-c", 'module() { echo "module $*"; }; export -f module; bash job.sh')
    assert done.returncode == 0, done.stdout + done.stderr
    assert "module load cuda openmpi" in done.stdout
    assert "right on 8 ranks" in done.stdout
    assert (shell / ".cache" / "distspmd").is_dir()
