"""The command, as typed: what it prints, what it refuses, and its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import distspmd
from distspmd.cli import main
from distspmd.cli.options import parse_schedule
from distspmd.errors import ScheduleError
from distspmd.schedule import Schedule

PROGRAM = """
import dace
import numpy as np

SIZE = 10

@dace.program
def scaled(x: dace.float64[SIZE, 6], s: dace.float64):
    return np.sin(x) * s

@dace.program
def product(a: dace.float32[SIZE, 8], b: dace.float32[8, 6]):
    return a @ b

def plain(x):
    return x
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some_programs.py"
    path.write_text(PROGRAM)
    return path


def said(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> str:
    assert main([str(argument) for argument in arguments]) == status
    captured = capsys.readouterr()
    return captured.out if status == 0 else captured.err


def test_schedules_in_files_bring_all_that_they_say(tmp_path):
    path = tmp_path / "schedule.yaml"
    path.write_text(
        "version: 2\nmeshes:\n  mesh1: {x: 2}\nspaces:\n  y: {mesh: mesh1, split: {i: [x]}}\n"
        "homes:\n  w: {mesh: mesh1, layout: '[4{x}8]'}\n"
        "arguments:\n  w: replicated\nheld:\n  states: distributed\n"
    )
    read, kept = parse_schedule(["z=2", str(path)]), Schedule.load(path)
    assert (list(read), list(kept.homes)) == (["z", "y"], ["w"])
    assert (read.places, read.homes) == (kept.places, kept.homes)
    assert read.arguments == {"w": "replicated"}
    assert read.held == {"states": "distributed"}


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"distspmd {distspmd.__version__}\n"


def test_spaces_prints_names_ranges_and_lines(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = said(capsys, "spaces", f"{file}:product")
    assert "__return" in printed
    assert "i=0:10, j=0:6, k=0:8" in printed
    assert "some_programs.py:13" in printed


def test_lower_prints_the_decisions_and_saves_the_sdfg(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, page = tmp_path / "lowered.sdfg", tmp_path / "lowered.html"
    schedule = ["-s", "__return=2,1,2", "-o", str(saved), "--html", str(page)]
    printed = said(capsys, "lower", f"{file}:product", *schedule)
    assert "root [10, 8] -> [5{i}10, 4{k}8]" in printed
    assert "It needs 4 ranks." in printed
    assert "DistributedMemlet" in json.dumps(json.loads(saved.read_text()))
    assert "5{i}10" in page.read_text()


def test_explain_prints_what_moves_and_why_and_saves_a_page(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "explained.html"
    asked = ["explain", f"{file}:product", "-s", "__return=2,1,2", "--html", str(page)]
    printed = said(capsys, *asked)
    assert "over nothing: refused, the layouts differ" in printed
    assert "bytes received by all ranks" in printed
    assert "<td>[5{i}10, 4{k}8]</td>" in page.read_text()


def test_names_that_the_output_cannot_write_have_backslashes(tmp_path: Path) -> None:
    file = tmp_path / "prög.py"
    file.write_text(
        "import dace\ndef mul(größe: dace.float64[8, 8]):\n    höhe = größe @ größe\n"
        "    return höhe + 1\n",
        encoding="utf-8",
    )
    code = (
        "import sys; from distspmd.cli import main\n"
        f"for c in (['spaces'], ['lower', '-n', '2'], ['explain', '-n', '2']):\n"
        f"    assert main([*c, {str(file)!r} + ':mul']) == 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "h\\xf6he" in done.stdout


@pytest.mark.parametrize(
    "words", [("reshard", "--mesh", "x=4", "[3{x}12]", "[12]"), ("spaces", "FILE:scaled")]
)
def test_a_command_ends_quietly_once_nobody_reads_its_output(
    words: tuple[str, ...], file: Path
) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    own = [word.replace("FILE", str(file)) for word in words]
    done = subprocess.run(
        [sys.executable, "-m", "distspmd", *own],
        stdout=writes,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    os.close(writes)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_a_schedule_comes_from_options_and_from_files(tmp_path: Path) -> None:
    path = tmp_path / "schedule.yaml"
    path.write_text("hidden: [2, 2, 1]\nout: {i: 2}\n")
    assert parse_schedule([str(path), "y=(3,)", "z.2=i:2,j:4", "v=i:x,j:yz"]) == {
        "v": {"i": "x", "j": "yz"},
        "hidden": [2, 2, 1],
        "out": {"i": 2},
        "y": (3,),
        "z.2": {"i": 2, "j": 4},
    }


def test_spaces_share_the_axes_of_a_mesh(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["lower", f"{file}:product", "-s", "__return=i:y,k:x", "--mesh", "x=2,y=3"]
    assert "x=2,y=3" in said(capsys, *asked)
    assert "of no mesh. Write mesh=" in said(capsys, *asked[:-2], status=1)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("hidden", "neither space=parts"),
        ("hidden=2,x", "no list of numbers"),
        ("hidden=i:2,j:x", "no list of numbers"),
        ("hidden=i:2,j", "no list of numbers"),
    ],
)
def test_a_schedule_that_cannot_be_read_is_told(given: str, found: str) -> None:
    with pytest.raises(ScheduleError, match=found):
        parse_schedule([given])


def test_a_schedule_file_that_is_no_mapping_is_told(tmp_path: Path) -> None:
    path = tmp_path / "schedule.yaml"
    path.write_text("- hidden\n")
    with pytest.raises(ScheduleError, match="no mapping"):
        parse_schedule([str(path)])
    path.write_text("{")
    with pytest.raises(ScheduleError, match="neither YAML nor JSON"):
        parse_schedule([str(path)])


@pytest.mark.parametrize(
    ("program", "found"),
    [
        ("{file}", "names no function"),
        ("{file}:nothing", "is not in the file. The file has scaled, product, plain"),
        ("{file}:SIZE", "is no function"),
        ("{file}:plain", "the argument 'x' has neither an annotation nor an example. Write --arg"),
        ("missing.py:f", "no file"),
    ],
)
def test_a_program_that_is_not_there_is_told(
    program: str, found: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert found in said(capsys, "spaces", program.format(file=file), status=1)


SCRIPT = """
import numpy as np
import distspmd

@distspmd.program(schedule={"hidden": (2, 1)})
def helper(x):
    hidden = x + 1
    return hidden

@distspmd.program(schedule={"hidden": (2, 1, 1)})
def perceptron(x, w, times=1):
    hidden = x @ w
    return np.maximum(hidden, 0) * times

def plain(x, n, s):
    return x * n + s

def inputs():
    return np.arange(12.0).reshape(3, 4), 3, np.float32(2)

print("before", helper(np.zeros((2, 2))).sum())
y = perceptron(np.ones((6, 4)), np.ones((4, 8)), times=3)
raise SystemExit("the call ran")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script_of_calls.py"
    path.write_text(SCRIPT)
    return path


def test_a_decorated_function_that_its_file_calls_is_read_with_that_call(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = said(capsys, "lower", f"{script}:perceptron")
    assert "before 4.0" in printed
    assert "the call ran" not in printed
    assert "It needs 2 ranks." in printed  # as its decorator says
    assert "[3{i}6, 4]" in printed
    printed = said(capsys, "lower", f"{script}:perceptron", "-s", "hidden=3,1,1")
    assert "It needs 3 ranks." in printed
    other = ["--arg", "x=float32[8,4]", "--arg", "w=float32[4,2]"]
    assert "[4{i}8, 4]" in said(capsys, "lower", f"{script}:perceptron", *other)


def test_arguments_without_annotations_come_from_options_or_a_function_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "plain_functions.py"
    script.write_text(SCRIPT.partition("print(")[0])
    arguments = ["--arg", "x=float64[512,8]", "--arg", "n=4", "--arg", "s=float64"]
    printed = said(capsys, "lower", f"{script}:plain", *arguments, "-n", "2")
    assert "predicted" in printed
    printed = said(capsys, "spaces", f"{script}:plain", "--args", "inputs")
    assert "=0:3" in printed
    assert "=0:4" in printed
    wrong = {"x=flout64[3]": "neither a type with a shape nor a value", "3": "is no argument"}
    for given, told in wrong.items():
        assert told in said(capsys, "lower", f"{script}:plain", "--arg", given, status=1)
    told = said(capsys, "lower", f"{script}:plain", "--args", "nothing", status=1)
    assert "no function of that name" in told
    printed = said(capsys, "lower", f"{script}:plain", "--args", "inputs")
    assert "Nothing asks for more: write -n 4" in printed


def test_run_checks_a_decorated_function_on_the_arguments_of_its_call(
    script: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", f"{script}:perceptron", "-n", "2", "--timeout", "300"]) == 0
    printed = capfd.readouterr().out
    assert "2 ranks: " in printed
    assert "largest difference from the Python function, run by NumPy" in printed


def test_run_starts_ranks_and_compares_with_one_process(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = [f"{file}:scaled", "-n", "3", "-s", "__return=3,1", "--timeout", "120"]
    assert main(["run", *asked]) == 0
    printed = capfd.readouterr().out
    assert "root [10, 6] -> [4{__i0}10, 6]" in printed
    assert "largest difference from the Python function, run by NumPy, relative to" in printed


@pytest.mark.slow
def test_programs_and_scripts_run_and_are_checked_on_devices(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTSPMD_DEVICE", "")  # the command sets it for its ranks
    asked = [f"{file}:scaled", "-n", "3", "-s", "__return=3,1", "--device", "emulated"]
    assert main(["run", *asked]) == 0
    assert "largest difference from the Python function" in capfd.readouterr().out
    assert main(["check", *asked]) == 0
    assert "compared with the Python function" in capfd.readouterr().out
    script = tmp_path / "script.py"
    script.write_text(
        "import distspmd, numpy as np\nfrom mpi4py import MPI\n"
        "def f(x): return x + 1\n"
        "made = lambda: distspmd.lower(distspmd.frontend.numpy_program(f, x=np.zeros(9)), {})\n"
        "with distspmd.compile(made, MPI.COMM_WORLD) as program:\n"
        "    found = program(x=np.zeros(9)) if MPI.COMM_WORLD.rank == 0 else program()\n"
        "    if MPI.COMM_WORLD.rank == 0: print(program.device.kind, found.sum())\n"
    )
    assert main(["run", str(script), "-n", "2", "--device", "emulated"]) == 0
    assert "emulated 9.0" in capfd.readouterr().out
    monkeypatch.setenv("DISTSPMD_DEVICE", "emulated")
    assert main(["run", str(script), "-n", "2"]) == 0
    assert "emulated 9.0" in capfd.readouterr().out


def test_run_runs_a_script_with_its_arguments(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom mpi4py import MPI\n"
        "total = MPI.COMM_WORLD.allreduce(1)\n"
        "if MPI.COMM_WORLD.rank == 0: print(total, sys.argv[1:])\n"
        "sys.exit(int(sys.argv[1]))\n"
    )
    assert main(["run", str(script), "-n", "2", "0", "more"]) == 0
    assert "2 ['0', 'more']" in capfd.readouterr().out
    assert main(["run", str(script), "-n", "2", "3"]) != 0


def test_run_tells_a_wrong_schedule_once_and_starts_nothing(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["run", f"{file}:scaled", "-n", "2", "-s"]
    told = said(capsys, *asked, "__retrun=2,1", status=1)
    assert told.count("Did you mean '__return'?") == 1
    assert "4 ranks, but the communicator has 2" in said(capsys, *asked, "__return=4,1", status=1)


def test_the_module_is_the_command(file: Path) -> None:
    command = [sys.executable, "-m", "distspmd", "spaces", f"{file}:scaled"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0
    assert "__return" in done.stdout


NETWORK = """
import dace
import numpy as np

def step(x: dace.float32[512, 256], w: dace.float32[256, 256], v: dace.float32[256, 64]):
    h = np.maximum(x @ w, 0)
    return h @ v
"""


def test_a_schedule_is_searched_for_saved_predicted_and_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    network, schedule = tmp_path / "network.py", tmp_path / "schedule.yaml"
    network.write_text(NETWORK)
    program = f"{network}:step"
    page = tmp_path / "found.html"
    asked = ["-n", "4", "--memory", "80 GB", "-o", str(schedule), "--html", str(page)]
    assert main(["search", program, *asked]) == 0
    assert "A schedule for 4 ranks" in capfd.readouterr().out
    assert "<svg" in page.read_text()
    assert "what none can undercut" in page.read_text()
    assert main(["predict", program, "-s", str(schedule)]) == 0
    assert "Predicted seconds" in capfd.readouterr().out
    assert main(["run", program, "-n", "4", "--repeat", "1"]) == 0
    printed = capfd.readouterr().out
    assert "The schedule was searched for" in printed
    assert "largest difference" in printed
