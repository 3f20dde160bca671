"""Ranks that are stopped are found among all processes, and only they end a job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from distspmd.runtime.watch import finalize_timer as module
from distspmd.runtime.watch.finalize_timer import Job, watch_behind_python

SLEEPS = [sys.executable, "-c", "import time; time.sleep(3600)"]
Start = Callable[[int], subprocess.Popen[bytes]]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a process that says that it is a rank."""
    monkeypatch.setattr(module, "_uses_mpi", lambda pid: True)
    started: list[subprocess.Popen[bytes]] = []

    def run(rank: int) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(SLEEPS, env={**os.environ, "PMI_RANK": str(rank)})
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGSTOP)
    while module._fields(process.pid)[0] != "T":
        time.sleep(0.01)


def test_a_rank_that_has_been_stopped_for_too_long_is_ended(
    start: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = start(0), start(1)
    job = Job(first.pid, 5.0)
    assert (job.rank, job.goes_on) == (0, True)
    job.look(100.0)
    assert second.poll() is None
    stop(second)
    job.look(3.0)
    assert second.poll() is None
    job.look(3.0)
    assert second.wait(60) == -signal.SIGKILL
    assert first.poll() is None
    told = capfd.readouterr().err
    assert told.startswith(f"distspmd: rank 1 (process {second.pid} on ")
    assert "while rank 0 waits in MPI_Finalize" in told


def test_the_time_begins_again_when_a_rank_goes_on(start: Start) -> None:
    first, second = start(0), start(1)
    job = Job(first.pid, 5.0)
    stop(second)
    job.look(4.0)
    second.send_signal(signal.SIGCONT)
    while module._fields(second.pid)[0] == "T":
        time.sleep(0.01)
    job.look(4.0)
    stop(second)
    job.look(4.0)
    assert second.poll() is None


def test_a_job_that_is_suspended_as_a_whole_has_not_waited(start: Start) -> None:
    first, second = start(0), start(1)
    job = Job(first.pid, 5.0)
    stop(first)
    stop(second)
    job.look(100.0)
    assert second.poll() is None


def test_the_lowest_rank_that_is_not_stopped_goes_first(start: Start) -> None:
    first, second, third = start(0), start(1), start(2)
    job = Job(third.pid, 5.0)
    stop(second)
    job.look(5.5)  # rank 0 would have ended it by now
    assert second.poll() is None
    job.look(1.0)
    assert second.wait(60) == -signal.SIGKILL
    assert first.poll() is None


def test_what_is_no_rank_may_be_stopped(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    first, tool = start(0), start(0)
    monkeypatch.setattr(module, "_uses_mpi", lambda pid: pid != tool.pid)
    job = Job(first.pid, 5.0)
    stop(tool)
    job.look(100.0)
    assert tool.poll() is None


def test_a_process_that_has_ended_is_watched_no_longer(start: Start) -> None:
    first = start(0)
    job = Job(first.pid, 5.0)
    first.kill()
    first.wait()
    assert not job.goes_on


def test_to_wait_for_ever_makes_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(module, "_run_later", lambda command, seconds: made.append(seconds))
    watch_behind_python(0.0)
    assert made == []
    watch_behind_python(3.0)
    watch_behind_python(1800.0)
    assert made == [1.5, 10.0]


def test_a_command_runs_when_python_has_ended() -> None:
    code = """
import sys, time
from distspmd.runtime.watch.finalize_timer import _run_later
class Last:
    def __del__(self, sleep=time.sleep):
        print("Python ends", flush=True)
        sleep(2)
sys.modules["last"] = Last()
_run_later(["echo", "told (by the 'C' library)"], 1.0)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "Python ends\ntold (by the 'C' library)\n"
