"""What a compiler that failed has met: an error in the code, a signal, a full disk, or else."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from distspmd.cache.folders import room_text
from distspmd.errors import CompilationError

_SIGNALLED = re.compile(
    r"Killed signal terminated program (?P<killed>\w+)"
    r"|(?P<by>\w+) terminated with signal (?P<number>\d+)"
    r"|internal compiler error: (?P<name>[A-Z][\w ]+?) signal terminated program (?P<program>\w+)"
    r"|unable to execute command: (?P<clang>\w[\w ]*)"
)
"""How compilers tell that a signal has ended one of their programs."""
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_IN_CODE = re.compile(r"\berror: |undefined reference to|undefined symbol: ")


def is_in_code(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether a compiler failed because of what it read."""
    return not _around(done) and bool(_IN_CODE.search(done.stderr or ""))


def compilation_error(
    what: str, done: subprocess.CompletedProcess[str], folder: Path, advice: str = ""
) -> CompilationError:
    """The error of something that does not compile.

    Args:
        what: does not compile.
        done: the compiler's process.
        folder: into which it wrote.
        advice: where the code itself is at fault.
    """
    said = (done.stderr or done.stdout or "").strip()
    if is_in_code(done):
        return CompilationError(
            "\n".join(filter(None, [f"{what} does not compile:", said, advice]))
        )
    command = _text(done.args)
    cause = _around(done) or f"ended with code {done.returncode} and names no error in the code"
    if _FULL.search(said):
        remedy = "Make room there, or set DISTSPMD_CACHE and TMPDIR to folders with room."
    else:
        remedy = "'distspmd doctor' tests the compiler."
    lines = [f"{what} does not compile: {command.split(' ', 1)[0]} {cause}; {room_text(folder)}."]
    return CompilationError("\n".join(filter(None, [*lines, said, f"{remedy} It ran: {command}"])))


def generation_error(problem: Exception) -> CompilationError:
    """The error of code that could not be generated or written, with the room of its folder."""
    told = f"code generation failed: {type(problem).__name__}: {problem}"
    if isinstance(problem, OSError):
        told += f"; {room_text(Path(problem.filename or '.'))}"
    error = CompilationError(told)
    error.__cause__ = problem
    return error


def _around(done: subprocess.CompletedProcess[str]) -> str:
    """What in its surroundings has ended a compiler, if that is known; continues a sentence."""
    said = done.stderr or ""
    if _FULL.search(said):
        return "found no room for what it writes"
    if done.returncode < 0:
        return f"was ended by {_signal(-done.returncode)}"
    met = _SIGNALLED.search(said)
    if met is None:
        return ""
    own = met["killed"] or met["by"] or met["program"]
    program = f"its {own}" if own else "a program of it"
    number = int(met["number"]) if met["number"] else signal.SIGKILL if met["killed"] else 0
    told = _signal(number) if number else met["name"] or met["clang"]
    return f"ended with code {done.returncode}, since {program} was ended by {told}"


def _signal(number: int) -> str:
    """A signal, and what sends it."""
    name = signal.Signals(number).name if number in [*signal.Signals] else f"the signal {number}"
    causes = {
        signal.SIGKILL: " (by somebody, or by the system because memory ran out)",
        signal.SIGBUS: " (most likely the disk is full)",
    }
    return name + causes.get(number, "")  # type: ignore[call-overload,no-any-return]


def _text(command: Sequence[str] | str) -> str:
    return command if isinstance(command, str) else shlex.join(map(str, command))
