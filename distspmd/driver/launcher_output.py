"""What a launcher and its ranks write to the standard error, and to the output where MPICH does.

What ranks write is passed on. What a launcher says of their end is kept for the message of an
error, which says it once.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO

_FENCE = re.compile(r"^\s*([-=*])\1{30,}\s*$")
_BY_RANK = re.compile(
    r"process\s+rank\s+(\d+)\s.*exited\s+on\s+signal\s+(\d+)", re.DOTALL
)  # lines end where they are full
_BY_PROCESS = re.compile(r"PID (\d+) RUNNING AT.*?EXIT CODE: (\d+)", re.DOTALL)
_LAST_LINE = re.compile(
    r"^YOUR APPLICATION TERMINATED WITH|^This typically refers to a problem"
    r"|^Please see the FAQ page for debugging"
)
_OF_MPICH = re.compile(r"=\s+BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES")


class Said:
    """Reads what a launcher and its ranks write."""

    def __init__(self) -> None:
        self._banner: list[str] = []
        self._fenced = False
        self._threads: list[threading.Thread] = []

    def listen(self, stream: IO[bytes]) -> None:
        """Begin to read the standard error."""
        self._begin(self._read, stream)

    def listen_to_output(self, stream: IO[bytes]) -> None:
        """Begin to read the output, into which MPICH's launcher writes what ranks ended of."""
        self._begin(self._read_output, stream)

    def _begin(self, read: Callable[[IO[bytes]], None], stream: IO[bytes]) -> None:
        thread = threading.Thread(
            target=read, args=(stream,), name="distspmd-driver-output", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def finish(self) -> None:
        """Wait until all is read."""
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(2.0)

    def _read_output(self, stream: IO[bytes]) -> None:
        held, is_banner = b"", False
        with stream:
            for line in stream:
                text = line.decode(errors="replace")
                if is_banner or (held and _OF_MPICH.match(text)):
                    self._banner.append(text)
                    held, is_banner = b"", not (is_banner and _FENCE.match(text))
                elif _LAST_LINE.match(text):
                    self._banner.append(text)
                elif _FENCE.match(text) or not text.strip():  # as a banner begins
                    if held.strip():
                        _write_out(held)
                        held = b""
                    held += line
                else:
                    _write_out(held + line)
                    held = b""
        if not (is_banner or (self._banner and not held.strip())):
            _write_out(held)

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                text = line.decode(errors="replace")
                if _FENCE.match(text):
                    self._fenced = not self._fenced
                    self._banner.append(text)
                elif self._fenced or _LAST_LINE.match(text):
                    self._banner.append(text)
                else:
                    sys.stderr.write(text)
                    sys.stderr.flush()

    def death(
        self, where: Mapping[int, tuple[int, str]], gone: Sequence[int], code: int | None
    ) -> str:
        """Which rank died and how, as a sentence begins.

        Args:
            where: process and host of each rank.
            gone: ranks whose lines have ended; the launcher may have ended all but one of them.
            code: with which the launcher ended.
        """
        text = "".join(self._banner)
        number = None
        first = gone[0] if len(gone) == 1 else None
        if found := _BY_RANK.search(text):
            rank, number = int(found[1]), int(found[2])
            first = rank if first is None else first
        elif found := _BY_PROCESS.search(text):
            number = int(found[2])
            by_process = {pid: rank for rank, (pid, _) in where.items()}
            first = by_process.get(int(found[1]), first)
        if first is None and gone:
            first = gone[0]
        if number is None and code is not None and code > _BY_SIGNAL:
            number = code - _BY_SIGNAL  # as a shell says it
        who = "a rank" if first is None else f"rank {first}"
        if first is not None and first in where:
            pid, host = where[first]
            who += f" (process {pid} on {host})"
        if number is not None and number in _SIGNALS:
            return f"{who} was killed by signal {number} ({_SIGNALS[number]})"
        if code is not None and code < 0:
            name = _SIGNALS.get(-code, "?")
            return f"the launcher of the ranks was killed by signal {-code} ({name})"
        return f"{who} ended (the launcher with code {code})"


def _write_out(text: bytes) -> None:
    """Write to the output of the process, as C does."""
    while text:
        text = text[os.write(1, text) :]


_BY_SIGNAL = 128
_SIGNALS = {int(each): each.name for each in signal.Signals}
