"""Ends a job of which a rank is stopped while others wait for it in MPI itself, as at their end.

MPI_Finalize comes behind the end of Python, where no thread of Python runs, or keeps all of them
from running. So a timer of the C library is set before: it runs this file as a process beside the
rank, which needs nothing of distspmd. In the usual case MPI_Finalize is over before, and no process
is ever made.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

_FIRST = 10.0
"""Seconds after which the process is made, at most."""
_LEAST, _MOST = 0.2, 30.0
"""Seconds between two looks, at least and at most."""
_TURN = 1.0
"""Seconds for which a rank leaves it to the one before it to end the job."""
_NAMES = (b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=", b"MV2_COMM_WORLD_RANK=", b"PMIX_RANK=")
_STOPPED = ("T", "t")
_EVENT = 64
"""Bytes of ``struct sigevent``."""
_BY_THREAD = 2
"""``SIGEV_THREAD``."""


def watch_behind_python(limit: float) -> Callable[[], None]:
    """Watch from now on, also when Python has ended, until this process has.

    Args:
        limit: the seconds for which a rank may be stopped; 0: for ever.

    Returns:
        What ends to watch.
    """
    if limit <= 0 or not os.path.isdir("/proc"):
        return _nothing
    reading, writing = os.pipe()  # its end tells the process, should that have been made
    os.set_inheritable(reading, True)
    script = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
    command = [*script, str(os.getpid()), f"{limit:g}", str(reading)]
    stop = _nothing
    with suppress(OSError, AttributeError):  # a system without such timers
        stop = _run_later(command, min(_FIRST, limit / 2))

    def end() -> None:
        stop()
        os.close(writing)
        os.close(reading)

    return end


def _nothing() -> None:
    """There is nothing to end."""


def _run_later(command: list[str], seconds: float) -> Callable[[], None]:
    """Let the C library run a command after some seconds, in a thread of its own.

    Returns:
        What makes it never run.
    """
    import ctypes
    import shlex

    library = ctypes.CDLL(None)
    library.strdup.restype = ctypes.c_void_p
    event = ctypes.create_string_buffer(_EVENT)
    fields = (ctypes.c_void_p * (_EVENT // 8)).from_buffer(event)
    # What the function gets is there when Python and its objects are gone.
    fields[0] = library.strdup(f"exec {shlex.join(command)}".encode())
    ctypes.c_int.from_buffer(event, 12).value = _BY_THREAD
    fields[2] = ctypes.cast(library.system, ctypes.c_void_p).value
    timer = ctypes.c_void_p()
    clock = ctypes.c_int(time.CLOCK_MONOTONIC)
    if library.timer_create(clock, ctypes.byref(event), ctypes.byref(timer)) != 0:
        return _nothing
    whole, part = divmod(seconds, 1.0)
    when = (ctypes.c_long * 4)(0, 0, int(whole), int(part * 1e9))
    library.timer_settime(timer, 0, ctypes.byref(when), None)
    return partial(library.timer_delete, timer)


class Job:
    """The ranks of a job on this node, of which one process is known."""

    def __init__(self, pid: int, limit: float) -> None:
        self.pid, self.limit = pid, limit
        self.rank = _rank(pid)
        self._began = _began(pid)
        self._launcher = _launcher(pid)
        self._stopped: dict[int, float] = {}
        """By process, for how many seconds it has been stopped."""

    @property
    def goes_on(self) -> bool:
        """Whether the process is there."""
        return _began(self.pid) == self._began != ""

    def look(self, passed: float) -> None:
        """Look at all ranks, and end the job if one of them has been stopped for too long.

        Args:
            passed: the seconds since the last look.
        """
        states = {pid: state for pid, state in self._states().items() if _rank(pid) >= 0}
        stopped = {pid for pid, state in states.items() if state in _STOPPED and _uses_mpi(pid)}
        if self.pid in stopped:  # the job as a whole, more likely than not
            stopped.clear()
        self._stopped = {pid: self._stopped.get(pid, 0.0) + passed for pid in stopped}
        before = {_rank(pid) for pid in states.keys() - stopped if _rank(pid) < self.rank}
        limit = self.limit + len(before) * _TURN
        late = [pid for pid, seconds in self._stopped.items() if seconds > limit]
        if late:
            self._end(late)

    def _end(self, late: list[int]) -> None:
        host = os.uname().nodename
        ranks = ", ".join(f"rank {_rank(pid)} (process {pid} on {host})" for pid in late)
        sys.stderr.write(
            f"distspmd: {ranks} is stopped, by SIGSTOP or in a debugger, while rank {self.rank} "
            f"waits in MPI_Finalize; ending all ranks, since DISTSPMD_TIMEOUT is {self.limit:g}. "
            "Set it to more seconds, or to 0 to wait for ever.\n"
        )
        sys.stderr.flush()
        for pid in late:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _states(self) -> dict[int, str]:
        """The processes below the launcher of the ranks, and their states."""
        found: dict[int, tuple[int, str]] = {}
        for name in os.listdir("/proc"):
            if name.isdigit() and (fields := _fields(int(name))):
                found[int(name)] = int(fields[1]), fields[0]
        below, new = set[int](), {self._launcher}
        while new:
            below |= new
            new = {pid for pid, (above, _) in found.items() if above in new} - below
        return {pid: found[pid][1] for pid in below if pid in found}


def watch_job(job: Job, told: int) -> None:
    """Look at a job again and again, until the process is gone that is known.

    Args:
        job: the ranks.
        told: a pipe whose end tells that nobody waits any more.
    """
    last = time.monotonic()
    between = min(max(job.limit / 20, _LEAST), _MOST)
    while job.goes_on and not select.select([told], [], [], between)[0]:
        now = time.monotonic()
        passed, last = min(now - last, 2 * between), now  # whoever is suspended has not waited
        job.look(passed)


def _launcher(pid: int) -> int:
    """The process that has started the rank, above shells and profilers that run it."""
    rank = _rank(pid)
    while (fields := _fields(pid)) and _rank(int(fields[1])) == rank:
        pid = int(fields[1])
    return int(fields[1]) if fields else pid


def _rank(pid: int) -> int:
    """The rank that a process is, as its environment says; -1: none."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            settings = file.read().split(b"\0")
    except OSError:
        return -1
    for name in _NAMES:
        for setting in settings:
            if setting.startswith(name) and setting[len(name) :].isdigit():
                return int(setting[len(name) :])
    return -1


def _uses_mpi(pid: int) -> bool:
    """Whether a process has loaded an MPI: others that a rank has started are none."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            return b"libmpi" in file.read()
    except OSError:
        return False


def _fields(pid: int) -> list[str]:
    """Of /proc/PID/stat what comes after the name of the command."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _began(pid: int) -> str:
    """When a process began, in ticks of the machine; empty: it is gone."""
    fields = _fields(pid)
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""


if __name__ == "__main__":
    watch_job(Job(int(sys.argv[1]), float(sys.argv[2])), int(sys.argv[3]))
