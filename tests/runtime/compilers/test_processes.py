"""Compilers beside Python: all together, and never after the program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from distspmd.runtime.compilers import processes as compiler_processes

SLEEPS = f"""
import os, time  # {__name__}
os.fork()
open({{!r}} + str(os.getpid()), 'w').close()
time.sleep(3600)
"""


MEET = """
touch {own}
while [ "$(ls | wc -l)" -lt 3 ]; do sleep 0.01; done  # until all three have begun
echo {own}; echo {own} >&2; exit {own}
"""


def test_commands_run_side_by_side_and_the_first_that_failed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = compiler_processes.run_all([["sh", "-c", MEET.format(own=n)] for n in (0, 3, 4)])
    assert (done.returncode, done.stdout, done.stderr) == (3, "3\n", "3\n")
    assert compiler_processes.run_all([["sh", "-c", "exit 0"]]).returncode == 0
    with pytest.raises(FileNotFoundError):
        compiler_processes.run_command(["/no/such/command"])


def test_what_fails_beside_the_program_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    ran = threading.Event()

    def fails() -> None:
        ran.set()
        raise ValueError

    compiler_processes.start_in_background(fails)
    assert ran.wait(10)
    assert capfd.readouterr() == ("", "")


def test_nothing_outlives_the_program(tmp_path: Path) -> None:
    own = [sys.executable, "-c", SLEEPS.format(f"{tmp_path}/")]
    program = f"""
import os, tempfile, time
from distspmd.runtime.compilers import processes as compiler_processes

def work():
    with tempfile.TemporaryDirectory(dir={str(tmp_path)!r}):
        compiler_processes.run_command({own!r})

compiler_processes.start_in_background(work)
while len(os.listdir({str(tmp_path)!r})) < 3:
    time.sleep(0.01)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600)
    numbers = [int(file.name) for file in tmp_path.iterdir()]  # the folder is gone
    assert len(numbers) == 2
    for number in numbers:
        status = Path(f"/proc/{number}/cmdline")
        assert not status.exists() or __name__.encode() not in status.read_bytes()


def test_nothing_outlives_a_killed_program(tmp_path: Path) -> None:
    own = [sys.executable, "-c", SLEEPS.format(f"{tmp_path}/ran/")]
    (tmp_path / "ran").mkdir()
    program = f"""
import os, sys
from pathlib import Path
from distspmd.cache.scratch import scratch_folder
from distspmd.runtime.compilers import processes as compiler_processes
if len(sys.argv) > 1:
    with scratch_folder(Path({str(tmp_path)!r}, "work")):
        compiler_processes.run_command({own!r})
with scratch_folder(Path({str(tmp_path)!r}, "work")) as folder:
    assert [path.name for path in folder.parent.iterdir() if path.is_dir()] == [folder.name]
"""
    parent = subprocess.Popen([sys.executable, "-c", program, "waits"], stderr=subprocess.PIPE)
    while len(started := [*(tmp_path / "ran").iterdir()]) < 2:
        assert parent.poll() is None
        time.sleep(0.01)
    parent.kill()
    parent.communicate(timeout=600)
    for file in started:
        status, limit = Path(f"/proc/{file.name}/cmdline"), time.monotonic() + 60
        while status.exists() and __name__.encode() in status.read_bytes():
            assert time.monotonic() < limit, f"{file.name} outlives the program"
            time.sleep(0.01)
    assert [path for path in (tmp_path / "work").iterdir() if path.is_dir()]
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600)
    assert not [*(tmp_path / "work").iterdir()]


def test_nothing_outlives_a_program_that_is_killed_before_it_tells_of_it(tmp_path: Path) -> None:
    (tmp_path / "ran").mkdir()
    own = [sys.executable, "-c", SLEEPS.format(f"{tmp_path}/ran/")]
    program = f"""
import os, signal
from distspmd.runtime.compilers import processes as compiler_processes
from distspmd.runtime import guard

def killed(what):
    if what.startswith("group:"):
        while len(os.listdir({f"{tmp_path}/ran"!r})) < 2:
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    begin(what)

begin, guard.begin = guard.begin, killed
compiler_processes.run_command({own!r})
"""
    subprocess.run([sys.executable, "-c", program], check=False, timeout=600)
    limit = time.monotonic() + 30
    for file in (tmp_path / "ran").iterdir():
        status = Path(f"/proc/{file.name}/cmdline")
        while status.exists() and __name__.encode() in status.read_bytes():
            if time.monotonic() > limit:
                os.kill(int(file.name), signal.SIGKILL)
                pytest.fail(f"{file.name} outlives the program")
            time.sleep(0.01)
