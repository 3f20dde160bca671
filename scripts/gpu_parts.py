"""Parts of a run: commands with a time each, and one JSON file of what they have shown.

The file is written before a part begins and when it has ended, so it says how far a run came that
is ended from outside. A part that fails, or runs past its time, leaves the end of what it printed,
and the others go on. Nothing is imported but the standard library: parts install what others need.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RUNNING, RIGHT, FAILED, LATE = "running", "right", "failed", "out of time"
CUT, NOT_RUN = "cut", "not run"
"""States of parts: one is cut, or not run, for want of time of the whole run."""
JSON = "{json}"
"""In a command: a file into which it writes rows."""
MARK = "DISTSPMD_PART"
"""Environment variable by which processes of a part are found, wherever their parents are."""

_TAIL = 8_000
_LOGGED = 100_000
_LEAST_SECONDS = 5.0
_GRACE = 5.0


class Ended(BaseException):
    """Somebody ends the run."""


@dataclass(frozen=True)
class Part:
    """A command, and how long it may take.

    Attributes:
        name: in results.
        command: a program and its arguments; see :data:`JSON`.
        seconds: after which it is ended.
        environ: is added to the environment.
        beside: whether it may run beside other parts that may; what is timed may not.
    """

    name: str
    command: tuple[str, ...]
    seconds: float
    environ: Mapping[str, str] = field(default_factory=dict)
    beside: bool = False


@dataclass
class _Running:
    part: Part
    process: subprocess.Popen[bytes]
    told: dict[str, Any]
    start: float
    end: float
    mark: str
    log: Path
    rows: Path


class Results:
    """One JSON file and one log in a folder, written again whenever something is known."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file, self.log = folder / "results.json", folder / "log.txt"
        self.told: dict[str, Any] = {"began": time.strftime("%FT%TZ", time.gmtime()), **about}
        self.told |= {"ended": "", "parts": []}
        self.log.write_text("")
        self.write()

    @property
    def parts(self) -> list[dict[str, Any]]:
        """What is told of each part, in the order in which they began."""
        return self.told["parts"]

    def write(self) -> None:
        """A reader finds the file as it was, or as it is."""
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.told, indent=1) + "\n")
        new.replace(self.file)

    def end(self) -> None:
        """All parts have been run, or left out for want of time."""
        self.told["ended"] = "whole"
        self.write()

    def bad(self) -> list[str]:
        """Names of parts that have failed, or ran past their time."""
        return [part["name"] for part in self.parts if part["state"] in (FAILED, LATE)]


class Runner:
    """Runs parts in their order, several side by side where these allow it.

    Args:
        results: where it is told how they end.
        scratch: a folder for what they print.
        cwd: a folder in which they run.
        width: how many run side by side.
        seconds: that all parts may take together; None for any number of them.
    """

    def __init__(
        self, results: Results, scratch: Path, cwd: Path, width: int, seconds: float | None = None
    ) -> None:
        self.results, self.scratch, self.cwd, self.width = results, scratch, cwd, width
        self._deadline = math.inf if seconds is None else time.monotonic() + seconds
        self._running: list[_Running] = []
        scratch.mkdir(parents=True, exist_ok=True)

    def run(self, parts: Sequence[Part]) -> None:
        """Run parts to their end.

        Raises:
            Ended: the run was ended; those that ran are told as cut, the others as not run.
        """
        waiting = list(parts)
        try:
            while waiting or self._running:
                self._look()
                while waiting and self._fits(waiting[0]):
                    self._start(waiting.pop(0))
                time.sleep(0.02)
        except (Ended, KeyboardInterrupt):
            for one in list(self._running):
                self._close(one, CUT)
            for part in waiting:
                self._skip(part, "the run was ended")
            self.results.told["ended"] = CUT
            self.results.write()
            raise Ended from None

    def _fits(self, part: Part) -> bool:
        """Whether a part may begin beside those that run."""
        if not self._running:
            return True
        alone = not part.beside or not all(one.part.beside for one in self._running)
        return not alone and len(self._running) < self.width

    def _start(self, part: Part) -> None:
        now = time.monotonic()
        end = min(now + part.seconds, self._deadline)
        if self._deadline - now < _LEAST_SECONDS:
            self._skip(part, "no time was left")
            return
        number = len(self.results.parts)
        mark = f"{os.getpid()}-{number}"
        log, rows = (self.scratch / f"{number}.{kind}" for kind in ("txt", "json"))
        rows.unlink(missing_ok=True)
        command = [str(rows) if word == JSON else word for word in part.command]
        told = {"name": part.name, "state": RUNNING, "limit": round(end - now, 1)}
        self.results.parts.append(told)
        self.results.write()
        with log.open("wb") as out:
            try:
                process = subprocess.Popen(
                    command,
                    cwd=self.cwd,
                    env={**os.environ, **part.environ, MARK: mark},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as problem:
                told |= {"state": FAILED, "seconds": 0.0, "tail": str(problem)}
                self._say(told, str(problem))
                return
        self._running.append(_Running(part, process, told, now, end, mark, log, rows))

    def _skip(self, part: Part, why: str) -> None:
        told = {"name": part.name, "state": NOT_RUN, "tail": why}
        self.results.parts.append(told)
        self._say(told, "")

    def _look(self) -> None:
        for one in list(self._running):
            code = one.process.poll()
            if code is not None:
                self._close(one, RIGHT if code == 0 else FAILED)
            elif time.monotonic() > one.end:
                self._close(one, LATE if one.end < self._deadline else CUT)

    def _close(self, one: _Running, state: str) -> None:
        """Tell how a part has ended, and end what is left of its processes."""
        self._running.remove(one)
        if one.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.process.pid, signal.SIGTERM)  # a launcher ends its ranks
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.process.wait(_GRACE)
        end_marked(one.mark)
        code = one.process.wait()
        printed = one.log.read_text(errors="replace")
        seconds = time.monotonic() - one.start
        one.told |= {"state": state, "seconds": round(seconds, 2), "code": code}
        if one.rows.exists():
            with contextlib.suppress(ValueError):  # it was cut while it wrote
                one.told["found"] = json.loads(one.rows.read_text())
        one.told["tail"] = printed[-_TAIL:]
        self._say(one.told, printed)

    def _say(self, told: Mapping[str, Any], printed: str) -> None:
        self.results.write()
        seconds = f" ({told['seconds']:.1f} s)" if "seconds" in told else ""
        line = f"== {told['name']}: {told['state']}{seconds}"
        print(line, flush=True)
        if told["state"] in (FAILED, LATE):
            print("\n".join(f"   {text}" for text in told["tail"].splitlines()[-15:]), flush=True)
        with self.results.log.open("a") as log:
            log.write(f"{line}\n{printed[-_LOGGED:]}\n")


def end_marked(mark: str) -> None:
    """End all processes of a part: some have left its group, or lost their parents."""
    wanted = re.compile(rb"(^|\0)" + f"{MARK}={mark}".encode() + rb"(\0|$)")
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted.search((folder / "environ").read_bytes()):
                os.kill(int(folder.name), signal.SIGKILL)


def end_on_signals() -> None:
    """Let the signals that end a process raise :class:`Ended`."""

    def ended(*_: object) -> None:
        raise Ended

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ended)
