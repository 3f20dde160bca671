"""Ends what this process has started, should this process be killed.

A killed process cannot end its compilers or ranks itself. So a shell waits beside it, in a session
of its own, for the end of a pipe, which comes with the end of this process, however that ends. It
is told what runs: groups of processes, launchers of ranks, and marks by which all that was started
below something can be found, wherever it is in the tree of processes.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import threading
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

_MARK = "DISTSPMD_STARTED"
_SHELL = "/bin/sh"
_SCRIPT = Path(__file__).with_name("guard.sh").read_text()

_telling = threading.Lock()
_guard: subprocess.Popen[bytes] | None = None


def begin(what: str) -> None:
    """Let something end with this process: ``group:7``, ``launcher:7`` or ``mark:text``.

    A launcher is asked to end before it is killed. A mark is any text that only the environments of
    the processes hold that are meant.
    """
    _tell(f"begin {what}\n")


def done(what: str) -> None:
    """Forget what was begun: it has ended."""
    _tell(f"done {what}\n")


@contextlib.contextmanager
def marked() -> Iterator[None]:
    """All that is started meanwhile, with the environment of this process, ends with it."""
    mark, before = uuid.uuid4().hex, os.environ.get(_MARK)
    begin(f"mark:{mark}")
    os.environ[_MARK] = mark
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_MARK, None)
        else:
            os.environ[_MARK] = before
        done(f"mark:{mark}")


@contextlib.contextmanager
def marked_command(env: Mapping[str, str] | None) -> Iterator[dict[str, str]]:
    """The environment for a process that ends with this one, until its group has been told.

    This process may be killed after the start of another and before it says so.
    """
    mark = uuid.uuid4().hex
    begin(f"mark:{mark}")
    try:
        yield {**(os.environ if env is None else env), f"{_MARK}_OF_COMMAND": mark}
    finally:
        done(f"mark:{mark}")


def _tell(line: str) -> None:
    global _guard
    with _telling:
        if _guard is None:
            with contextlib.suppress(OSError):  # no shell: then nothing is guarded
                _guard = _start()
        if _guard is not None and _guard.stdin is not None:
            with contextlib.suppress(OSError):  # somebody has ended it
                os.write(_guard.stdin.fileno(), line.encode())


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [_SHELL, "-c", _SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd="/",
        env={"PATH": os.defpath},
        start_new_session=True,  # a signal to all processes of a terminal does not reach it
    )


@atexit.register
def _end() -> None:
    global _guard
    with _telling:
        ending, _guard = _guard, None
    if ending is not None and ending.stdin is not None:
        ending.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            ending.wait(5)


def _leave_to_parent() -> None:
    """A forked process has nothing guarded, and does not keep the pipe of its parent open."""
    global _guard
    if _guard is not None and _guard.stdin is not None:
        os.close(_guard.stdin.fileno())
        _guard.stdin = None
        _guard.returncode = 0
    _guard = None


os.register_at_fork(after_in_child=_leave_to_parent)
