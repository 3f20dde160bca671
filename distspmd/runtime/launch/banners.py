"""What Open MPI says when ranks end, which is left out: the ranks and the launcher have said it.

A banner stands between two lines of dashes. Others than these come through: that no slots are
left, or that a program cannot be found.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LEFT_OUT = re.compile(
    rb"MPI_ABORT was invoked on rank|(?:prterun|mpirun|mpiexec) (?:detected that one or more "
    rb"processes exited with non-zero|has exited due to process rank)|Primary job +terminated"
)
_ENDED_EARLY = re.compile(rb".*has exited due to process rank (\d+)")
_OURS = b"distspmd: "
"""What begins a message of ours."""
_DASHES = re.compile(rb"-{60,}\s*\Z")
_SECONDS = 2.0
"""For what is still on its way when the launcher has ended; a process that is left may hold it."""


class Lines:
    """Takes output piece by piece, and gives what is no banner, as soon as that is known."""

    def __init__(self) -> None:
        self._early: int | None = None
        self._is_told = False
        self._begun = self._rest = b""
        self._dashes = b""
        self._inside = self._left_out = False

    @property
    def ended_early(self) -> int | None:
        """The rank that ended before MPI_Init or MPI_Finalize, as a banner says.

        None where there is no such banner, or a rank has said why all end.
        """
        return None if self._is_told else self._early

    def take(self, piece: bytes) -> bytes:
        """What comes out for the next piece; a line may come in parts."""
        begun = (self._begun + piece).split(b"\n")
        self._is_told |= any(line.startswith(_OURS) for line in begun)
        self._begun = begun[-1][: len(_OURS)]
        *lines, rest = (self._rest + piece).split(b"\n")
        found = b"".join(self._line(line + b"\n") for line in lines)
        holds = self._dashes or self._left_out or rest.startswith(b"-")
        self._rest = rest if holds else b""
        return found if holds else found + rest

    def end(self) -> bytes:
        """What is left."""
        return self._dashes + (b"" if self._left_out else self._rest)

    def _line(self, line: bytes) -> bytes:
        if self._dashes:  # the first line of a banner
            before, self._dashes = self._dashes, b""
            self._left_out = bool(_LEFT_OUT.match(line))
            if found := _ENDED_EARLY.match(line):
                self._early = int(found[1])
            self._inside = not self._left_out
            return b"" if self._left_out else before + line
        if not _DASHES.fullmatch(line):
            return b"" if self._left_out else line
        if self._inside or self._left_out:
            shown = b"" if self._left_out else line
            self._inside = self._left_out = False
            return shown
        self._dashes = line
        return b""


def without_banners(text: str, lines: Lines | None = None) -> str:
    """A text without them; what they say is then known by `lines`."""
    lines = lines or Lines()
    return (lines.take(text.encode()) + lines.end()).decode(errors="replace")


@contextmanager
def errors_without_banners(lines: Lines) -> Iterator[int]:
    """A file for what goes to the errors of this process, but for banners."""
    reading, writing = os.pipe()
    thread = threading.Thread(target=_pass_on, args=(reading, lines), daemon=True)
    thread.start()
    try:
        yield writing
    finally:
        os.close(writing)
        thread.join(_SECONDS)


def _pass_on(reading: int, lines: Lines) -> None:
    while piece := os.read(reading, 1 << 16):
        _write(lines.take(piece))
    _write(lines.end())
    os.close(reading)


def _write(text: bytes) -> None:
    while text:
        text = text[os.write(2, text) :]
