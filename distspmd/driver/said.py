"""What a launcher and its ranks write to the standard error.

What ranks write is passed on. What a launcher says of their end is kept for the message of an
error, which says it once.
"""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO

_FENCE = re.compile(r"^\s*([-=*])\1{30,}\s*$")
_BY_RANK = re.compile(
    r"process\s+rank\s+(\d+)\s.*exited\s+on\s+signal\s+(\d+)", re.DOTALL
)  # lines end where they are full
_BY_PROCESS = re.compile(r"PID (\d+) RUNNING AT.*?EXIT CODE: (\d+)", re.DOTALL)
_LAST_LINE = re.compile(r"^YOUR APPLICATION TERMINATED WITH|^This typically refers to a problem")


class Said:
    """Reads what a launcher and its ranks write."""

    def __init__(self) -> None:
        self._banner: list[str] = []
        self._fenced = False
        self._thread: threading.Thread | None = None

    def listen(self, stream: IO[bytes]) -> None:
        """Begin to read."""
        self._thread = threading.Thread(
            target=self._read, args=(stream,), name="distspmd-driver-output", daemon=True
        )
        self._thread.start()

    def finish(self) -> None:
        """Wait until all is read."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2.0)

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


_BY_SIGNAL = 128
_SIGNALS = {int(each): each.name for each in signal.Signals}
