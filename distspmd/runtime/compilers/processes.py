"""Compilers that run beside Python, started before their results are needed.

No such process outlives Python, even if Python is killed, and its failure is not an error: the code
that needs its result checks for it, compiles it otherwise, and then reports what is wrong.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence

from distspmd.runtime import guard

_running: set[subprocess.Popen[str]] = set()
_threads: list[threading.Thread] = []
_changing = threading.Lock()
_ended = False
_own = threading.local()
_NICE = 5
"""Python goes first where there are fewer cores than processes: each of these has a third as much.

Python waits for them in the end, and most users may not raise a priority again: with less, they
would hardly run on a busy machine.
"""


def start_in_background(work: Callable[[], object]) -> None:
    """Let a function run beside the program, which does not wait for it in the end."""
    thread = threading.Thread(target=_suppressed, args=(work,), daemon=True)
    _threads.append(thread)
    thread.start()


def wait_for_all() -> None:
    """Wait until all has ended that runs beside the program."""
    for thread in _threads:
        thread.join()


def goes_on() -> bool:
    """Whether the program does not end, so that it is worth to wait for something."""
    return not _ended


def run_command(
    command: Sequence[str], env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, or to that of the program; with what it said as text."""
    return run_all([command], env)


def run_all(
    commands: Sequence[Sequence[str]], env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run commands side by side; the first that failed, or the last."""
    # no pool of threads: Python would wait for those before it ends
    done = [_finish(process) for process in [_start(command, env) for command in commands]]
    return next((each for each in done if each.returncode != 0), done[-1])


def _start(command: Sequence[str], env: Mapping[str, str] | None) -> subprocess.Popen[str]:
    with _changing:
        if _ended:
            raise OSError("the program ends")
        with guard.marked_command(env) as marked:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=marked,
                start_new_session=True,  # so that all that it starts can be stopped
            )
            _running.add(process)
            guard.begin(f"group:{process.pid}")
    if getattr(_own, "beside", False):
        with contextlib.suppress(OSError):  # it has ended
            os.setpriority(os.PRIO_PGRP, process.pid, _NICE)
    return process


def _finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    try:
        out, err = process.communicate()
    finally:
        with _changing:
            _running.discard(process)
        guard.done(f"group:{process.pid}")
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _suppressed(work: Callable[[], object]) -> None:
    _own.beside = True
    with contextlib.suppress(Exception):
        work()


@atexit.register
def _end() -> None:
    """Stop what still runs, and let it clear up."""
    global _ended
    with _changing:
        _ended = True
        for process in _running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    for thread in _threads:
        thread.join(timeout=5)
