"""Starts the ranks of a Python program as a user does, and ends all of them when one fails.

`python -m mpi4py` turns an exception of one rank into the end of all ranks. Every process of a
launch carries a mark in its environment, by which stray processes are found and killed, also when
the process that launched them is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

from distspmd.cache.folders import room_text, shared_place
from distspmd.errors import LaunchError, describe, shorten
from distspmd.layouts.mesh import MOST_RANKS
from distspmd.runtime import guard
from distspmd.runtime.allocation import OVERSUBSCRIBE, check_launch, cores_of_rank, is_job
from distspmd.runtime.compilers.toolchain import MPI, find_mpi, home, tool_path
from distspmd.runtime.launch.attendance import VARIABLE as ROLL
from distspmd.runtime.launch.attendance import Attendance, taken_attendance
from distspmd.runtime.launch.banners import Lines, errors_without_banners, without_banners
from distspmd.runtime.launch.mpi_settings import OF_WHEEL
from distspmd.runtime.shared_memory.segments import placed_segments
from distspmd.runtime.tracebacks import is_full
from distspmd.runtime.watch.board import MARK, stood, where
from distspmd.runtime.watch.rank_state import ranks_text
from distspmd.runtime.watch.watchdog import limit

TIMED_OUT = 124
"""The return code of a launch that ran past its time, as that of the command `timeout`."""

LOST = 1
"""The return code of a launch whose ranks are gone although mpiexec says that all is well."""

_START = Path(__file__).with_name("start_rank.py")
"""What starts a program on a rank."""
_GRACE = 2.0
_LAST = 0.3
_LOOK = 0.02
_SHOWN_LINES = 40


@dataclass(frozen=True, slots=True)
class Completed:
    """How a launch ended; the output is empty unless it was captured."""

    args: tuple[str, ...]
    ranks: int
    returncode: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def timed_out(self) -> bool:
        """Whether the launch was ended because it ran past its time."""
        return self.returncode == TIMED_OUT

    def check(self) -> Completed:
        """Itself if all ranks ended well.

        Raises:
            LaunchError: they did not; the message ends with what the ranks said last.
        """
        if self.returncode == 0:
            return self
        how = f"ended with code {self.returncode}"
        if self.timed_out:
            how = f"did not end and were killed after {self.seconds:.0f} s"
        said = shorten(self.stdout + self.stderr).splitlines()[-_SHOWN_LINES:]
        asked = f"{self.ranks} rank(s) of `{' '.join(self.args)}` {how}"
        raise LaunchError("\n  ".join([asked + (":" if said else "."), *said]))


def launch(
    argv: Sequence[str | os.PathLike[str]],
    *,
    ranks: int,
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
    capture: bool = False,
    threads: int | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> Completed:
    """Run `python -m mpi4py argv` on a number of ranks and wait for the end of all.

    `argv` is a file and its arguments, or `-m module ...`, or `-c code ...`. `env` is added to the
    environment of this process and wins over what `environment` would set. `threads` is the number
    of threads of a rank.

    Raises:
        LaunchError: the ranks could not be started. Their failure is in the result.
        ToolchainError: there is no MPI.
    """
    lines = Lines()
    with ExitStack() as stack, ExitStack() as until_shown:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2)] if capture else []
        is_shown = bool(files) or is_full()
        errors = None if is_shown else until_shown.enter_context(errors_without_banners(lines))
        shown = (None, errors)
        begins = running(argv, ranks=ranks, env=env, threads=threads, cwd=cwd, files=files or shown)
        run = stack.enter_context(begins)
        code, told = _waited(run, timeout)
        seconds = time.monotonic() - run.begun
        run.end()
        until_shown.close()
        out, err = map(_text, files) if capture else ("", "")
        err = err if is_full() else without_banners(err, lines)
        if told is None:
            code, said = run.verdict(code, lines.ended_early)
        else:
            said = _told_text(timeout, ranks, told)
        if not capture:
            sys.stderr.write(said)
        return Completed(run.program, ranks, code, out, err + said, seconds)


@dataclass(eq=False)
class Running:
    """A launch that goes on.

    Attributes:
        program: what runs.
        mark: that all its processes have in their environment.
        process: what has started the ranks; it ends when all of them have.
        begun: when, on the clock that never goes back.
        mpi: whose ranks they are.
        attendance: which of them have come and ended.
        memory: where what they share lies.
    """

    program: tuple[str, ...]
    mark: str
    process: subprocess.Popen[bytes]
    begun: float
    mpi: MPI
    attendance: Attendance
    memory: Path

    def verdict(self, code: int, ended_early: int | None = None) -> tuple[int, str]:
        """The return code of the launch, and what is to be said of it.

        Args:
            code: of mpiexec.
            ended_early: for which rank mpiexec has ended the others, because it ended before
                MPI_Init or MPI_Finalize.
        """
        if code and ended_early is not None and not self.attendance.problem:
            self.attendance.blame(ended_early)
        if self.attendance.problem:
            problem, advice = self.attendance.problem, self.attendance.advice
            return LOST, f"distspmd: {problem}; ending all ranks. {advice}\n"
        if code < 0:
            return 128 - code, _killed_text(self.mpi, -code)
        if code or not self.attendance.missing():
            return code, ""
        time.sleep(_LAST)  # until the ends of all connections have come
        return LOST, _lost_text(self.mpi, self.attendance)

    def end(self) -> None:
        """End all that is left of it."""
        _end(self.process, self.mark)
        stood(self.mark, self.memory)


@contextmanager
def running(
    argv: Sequence[str | os.PathLike[str]],
    *,
    ranks: int,
    env: Mapping[str, str] | None = None,
    threads: int | None = None,
    cwd: str | os.PathLike[str] | None = None,
    files: Sequence[IO[bytes] | int | None] = (),
    apart: bool = False,
) -> Iterator[Running]:
    """Ranks, as :func:`launch` starts them, which run until the block ends.

    Args:
        argv, ranks, env, threads, cwd: as of :func:`launch`.
        files: where output and errors go; to those of this process where left out.
        apart: whether signals from the keyboard reach this process alone.

    Raises:
        LaunchError: the ranks could not be started.
        ArgumentError: DISTSPMD_TIMEOUT is no number.
        ToolchainError: there is no MPI.
    """
    program = _program(argv)
    _check_start(program, ranks, cwd)
    check_launch(ranks, f"`{' '.join(program)}`", {**os.environ, **(env or {})})
    mpi = find_mpi({**os.environ, **(env or {})})
    mark = uuid.uuid4().hex
    given = {**os.environ, **(env or {}), MARK: mark}
    seconds = limit(given)
    begun = time.monotonic()
    with ExitStack() as stack:
        if not is_job(given):
            given = {**stack.enter_context(placed_segments(mpi, ranks)), **given}
        attendance = stack.enter_context(taken_attendance(ranks))
        around = environment(mpi, ranks, threads=threads, environ=given) | {
            ROLL: attendance.address
        }
        command = [str(mpi.mpiexec), "-n", str(ranks), *_exported(mpi, around)]
        command += [sys.executable, str(_START), *program]
        stack.enter_context(_guarded(f"mark:{mark}"))
        out, err = files or (None, None)
        try:
            process = subprocess.Popen(
                command,
                env=around,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=apart,
            )
        except OSError as error:
            raise LaunchError(f"cannot start {command[0]}: {error}") from None
        stack.enter_context(_guarded(f"launcher:{process.pid}"))
        attendance.watch(seconds, process.terminate)
        run = Running(program, mark, process, begun, mpi, attendance, shared_place(given))
        stack.callback(run.end)
        yield run


@contextmanager
def _guarded(what: str) -> Iterator[None]:
    """Something ends with this process, until the block does."""
    guard.begin(what)
    try:
        yield
    finally:
        guard.done(what)


def _program(argv: Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    """What to launch, as texts."""
    if isinstance(argv, (str, bytes, os.PathLike)):
        raise LaunchError(f"argv is a sequence of texts: write [{os.fspath(argv)!r}].")
    try:
        return tuple(str(os.fspath(part)) for part in argv)
    except TypeError:
        raise LaunchError(
            f"argv is a sequence of texts or paths, but {describe(argv)} was given."
        ) from None


def environment(
    mpi: MPI, ranks: int, *, threads: int | None = None, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment in which an MPI starts ranks: `environ`, and what it does not set itself."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    mine = cores_of_rank(ranks, environ)  # in a job of several nodes this one tells nothing
    mine = (cores or 1) / ranks if mine is None else mine
    crowded = mine < 1
    share = str(threads or max(1, int(mine)))
    defaults = {
        "HOME": home(environ),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": share,
        "OPENBLAS_NUM_THREADS": share if threads else environ.get("OMP_NUM_THREADS", share),
        "MPI4PY_LIBMPI": str(mpi.library),
        **_settings(mpi, crowded, mine, environ),
    }
    forced = {"PATH": tool_path(mpi, environ), "DISTSPMD_MPI": str(mpi.mpicc)}
    if threads:
        forced |= {"OMP_NUM_THREADS": share, "OPENBLAS_NUM_THREADS": share}
    return {**defaults, **environ, **forced}


def _check_start(program: tuple[str, ...], ranks: int, cwd: str | os.PathLike[str] | None) -> None:
    if not isinstance(ranks, int) or isinstance(ranks, bool):
        raise LaunchError(f"the number of ranks is an integer, but {describe(ranks)} was given.")
    if not 1 <= ranks <= MOST_RANKS:
        raise LaunchError(f"cannot launch {ranks} ranks; ask for 1 or more, up to {MOST_RANKS:,}.")
    if not program:
        raise LaunchError("nothing to launch; give a file, or -m and a module.")
    if not program[0].startswith("-") and not Path(cwd or ".", program[0]).is_file():
        raise LaunchError(f"cannot launch {program[0]}: no such file.")


# --- what each MPI needs to be told ---


def _settings(mpi: MPI, crowded: bool, cores: float, environ: Mapping[str, str]) -> dict[str, str]:
    """Settings for an MPI.

    In the job of a batch system the MPI places the ranks on the nodes as the job has asked, and
    nothing here changes that.

    Args:
        mpi: what starts the ranks.
        crowded: whether there are more ranks than cores.
        cores: of a rank.
        environ: of this process.
    """
    settings = {}
    in_job, shared = is_job(environ), bool(environ.get(OVERSUBSCRIBE))
    if mpi.kind == "intel" and crowded and (shared or not in_job):
        settings["I_MPI_PIN"] = "0"
    if mpi.kind == "openmpi":
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            settings |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        major = int(mpi.version.partition(".")[0] or 5)
        if not in_job and (crowded or mpi.is_wheel):
            settings |= _shared_cores(major) | _unbound(major)
        if in_job and shared:
            settings |= _shared_cores(major, by_slot=True) | _unbound(major)
        if in_job and mpi.is_wheel and cores != 1:
            settings |= _unbound(major)
        if mpi.is_wheel:
            settings |= OF_WHEEL
    return settings


def _shared_cores(major: int, by_slot: bool = False) -> dict[str, str]:
    """There may be more ranks than cores.

    Without a policy, or by slot, ranks go to the nodes as the batch system has divided them.
    """
    if major < 5:
        return {"OMPI_MCA_rmaps_base_oversubscribe": "1"}
    return {"PRTE_MCA_rmaps_default_mapping_policy": f"{'slot' * by_slot}:oversubscribe"}


def _unbound(major: int) -> dict[str, str]:
    """Ranks are bound to no core, and yield when they wait.

    Open MPI binds one or two ranks to cores, where they spin: beside another load, or a launch that
    is bound to the same cores, an exchange then takes a hundred times longer. A rank with threads
    would have one core for all of them.
    """
    binding = "OMPI_MCA_hwloc_base_binding_policy"
    if major >= 5:
        binding = "PRTE_MCA_hwloc_default_binding_policy"
    return {binding: "none", "OMPI_MCA_mpi_yield_when_idle": "1"}


_EXPORTED = (
    "PATH",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MPI4PY_LIBMPI",
)
_OWN = "DISTSPMD_"
"""All variables of this name go to other nodes, and with them the mark of the launch."""


def _exported(mpi: MPI, environ: Mapping[str, str]) -> list[str]:
    """Arguments that carry variables to other nodes; other MPIs carry all of them."""
    if mpi.kind != "openmpi":
        return []
    names = [*_EXPORTED, *sorted(name for name in environ if name.startswith(_OWN))]
    return [part for name in names if name in environ for part in ("-x", name)]


# --- processes ---


def _waited(run: Running, timeout: float | None) -> tuple[int, Mapping[int, str] | None]:
    """The code of mpiexec, and what each rank of this node does if its time is up."""
    try:
        with _ended_by_signals():
            return run.process.wait(timeout), None
    except subprocess.TimeoutExpired:
        return TIMED_OUT, stood(run.mark, run.memory)
    except KeyboardInterrupt:
        _tell_end("an interrupt from the keyboard")
        raise


def _lost_text(mpi: MPI, attendance: Attendance) -> str:
    """That ranks are missing although mpiexec says that all is well."""
    first = attendance.lost_first()
    others = [rank for rank in attendance.missing() if rank not in first]
    then = f" {attendance.text(others)} did not come to it either." if first and others else ""
    who = attendance.text(first or others)
    return (
        f"distspmd: {mpi.mpiexec.name} ended with code 0, but {who} did not "
        "come to the end of the program: lost with the host, or with what had started ranks there."
        f"{then} (A rank that ends by os._exit or MPI_Abort with 0 looks alike; write sys.exit.)\n"
    )


def _killed_text(mpi: MPI, number: int) -> str:
    """That a signal has ended mpiexec, and what may have sent it."""
    causes = {
        signal.SIGKILL: "by somebody, or by the system because memory ran out",
        signal.SIGBUS: f"most likely shared memory had no room: {room_text(Path('/dev/shm'))}",
    }
    cause = causes.get(signal.Signals(number), "")
    name = signal.Signals(number).name
    return (
        f"distspmd: {mpi.mpiexec} was ended by {name}{cause and f' ({cause})'}; all ranks are "
        "ended.\n"
    )


def _told_text(timeout: float | None, ranks: int, told: Mapping[int, str]) -> str:
    """That the time was up, and where each rank stood."""
    lines = [
        f"distspmd: {ranks} rank(s) did not end within {timeout:g} s (timeout); all are ended."
    ]
    lines += where(told)
    others = [rank for rank in range(ranks) if rank not in told]
    if others:
        lines.append(
            f"  {ranks_text(others)}: nothing is known; on another node, or without distspmd"
        )
    return "\n".join(lines) + "\n"


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Signals that end this process raise SystemExit, so that the ranks are ended too."""

    def leave(number: int, _frame: FrameType | None) -> None:
        _tell_end(signal.Signals(number).name)
        raise SystemExit(128 + number)

    ours = []
    if threading.current_thread() is threading.main_thread():
        ours = [s for s in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(s) == signal.SIG_DFL]
    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _tell_end(cause: str) -> None:
    sys.stderr.write(f"distspmd: {cause} ends this process, and all ranks with it.\n")
    sys.stderr.flush()


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """End mpiexec, which ends its ranks; then whatever of the launch is left, until it is gone."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
    process.kill()
    process.wait()
    until = time.monotonic() + _GRACE  # one that hangs in the kernel may never end
    while (left := _marked(mark)) and time.monotonic() < until:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK)  # they are gone some time after the signal, and may have forked before


def _marked(mark: str) -> list[int]:
    """Processes of this machine with the mark of a launch in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
