"""What a process has started ends with it, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

STARTS = """
import os, signal, subprocess, sys, time
from distspmd.runtime import guard

def start(*command, **options):
    child = subprocess.Popen(command, start_new_session=True, **options)
    return child

how, to_end = sys.argv[1:3]
sleeps = "sleep 3600 & exec sleep 3600"  # two processes
if how == "group":
    child = start("sh", "-c", sleeps)
    guard.begin(f"group:{child.pid}")
elif how == "mark":
    with guard.marked():
        child = start("setsid", "sh", "-c", sleeps)
        print(os.getpgid(child.pid), flush=True)
        to_end == "kill" and os.kill(os.getpid(), signal.SIGKILL)
        sys.stdin.read()
        os._exit(0)
elif how == "launcher":
    child = start(
        "sh", "-c", f"trap 'touch {sys.argv[3]}; kill $!; exit' TERM; sleep 3600 & wait", stdin=-3
    )
    guard.begin(f"launcher:{child.pid}")
elif how == "done":
    child = start("sh", "-c", sleeps)
    for _ in range(3):
        guard.begin("group:4194399")
        guard.begin(f"group:{child.pid}")
        guard.done("group:4194399")
        guard.done(f"group:{child.pid}")
        guard.done("group:4194399")
elif how == "fork":
    child = start("sh", "-c", sleeps)
    guard.begin(f"group:{child.pid}")
    if os.fork() == 0:
        time.sleep(3600)
print(os.getpgid(child.pid), flush=True)
if to_end == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
os._exit(0)
"""


def members(group: int) -> list[int]:
    """Processes of a group that are not yet dead."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[2]) == group and words[0] not in "ZX":
            found.append(int(entry.name))
    return found


@pytest.fixture
def groups() -> Iterator[list[int]]:
    """Groups of processes that are killed after a test, whatever has become of it."""
    found: list[int] = []
    yield found
    for group in found:
        if members(group):
            os.killpg(group, signal.SIGKILL)


def started(groups: list[int], *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", STARTS, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    groups.append(process.pid)
    assert process.stdout is not None
    groups.append(int(process.stdout.readline()))
    return process


@pytest.mark.parametrize("how", ["group", "mark", "fork"])
@pytest.mark.parametrize("to_end", ["kill", "exit"])
def test_what_was_started_ends_with_a_process(groups: list[int], how: str, to_end: str) -> None:
    with started(groups, how, to_end):  # which closes its pipes, and waits
        pass
    while members(groups[1]):
        pass
    assert bool(members(groups[0])) == (how == "fork")


def test_a_launcher_is_asked_to_end_and_that_is_told(groups: list[int], tmp_path: Path) -> None:
    process = started(groups, "launcher", "kill", str(tmp_path / "asked"))
    _, told = process.communicate(timeout=600)
    assert told == ("distspmd: the process that launched ranks was killed; its ranks are ended.\n")
    while members(groups[1]):
        pass
    assert (tmp_path / "asked").exists()


def test_what_has_ended_is_forgotten(groups: list[int]) -> None:
    with started(groups, "done", "kill"):
        pass
    time.sleep(1)  # in which a guard would have ended them
    assert len(members(groups[1])) == 2


def test_a_guard_that_was_ended_does_no_harm() -> None:
    program = (
        "import os\nfrom distspmd.runtime import guard\nguard.begin('group:4194399')\n"
        "guard._guard.kill()\nguard._guard.wait()\nguard.done('group:4194399')\n"
        "with guard.marked():\n    pass\nprint('on')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("on\n", "")
