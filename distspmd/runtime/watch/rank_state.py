"""What a rank stands in: the call that it makes together with others, and since when it waits.

Calls only store a few numbers here. Whoever asks where a rank stands (the watchdog, from its own
thread) reads them, and finds the source line in the frames of the thread that calls.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from threading import get_ident, main_thread
from types import FrameType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

_PACKAGE = str(Path(__file__).resolve().parents[2]) + os.sep
_OTHERS = (_PACKAGE, os.sep + os.path.join("mpi4py", "run.py"), "<frozen ")
"""Parts of the names of files that are no source of the user's."""


class Movements:
    """How often an engine has begun to move data between ranks, and how often it was done.

    Attributes:
        numbers: that of the movement, how often one began, how often one was done; the engine
            writes them. Fetches have the numbers below 0.
        names: of planned movements.
        fetches: names of those that data decide.
    """

    def __init__(self, names: Sequence[str], fetches: Sequence[str]) -> None:
        self.numbers: NDArray[np.int64] = np.zeros(3, np.int64)
        self.names, self.fetches = tuple(names), tuple(fetches)

    @property
    def current(self) -> tuple[str, int] | None:
        """The name of the movement that goes on and which one it is in order, if one goes on."""
        number, begun, done = self.numbers.tolist()
        if begun == done:
            return None
        return (self.names[number] if number >= 0 else self.fetches[-1 - number]), begun


class RankState:
    """Where this rank stands with the ranks of one communicator.

    Attributes:
        members: ranks in ``MPI.COMM_WORLD`` of all ranks of the communicator.
        key: a name of the communicator that is the same on all of them.
        doing: what the rank calls, if anything; it prints.
        thread: the thread that calls.
        came, met: to how many meetings the rank came, and how many of them took place.
        movements: of the engines.
    """

    _made: ClassVar[dict[tuple[int, ...], int]] = {}
    """By members, how many communicators there were of them: all ranks make them in one order."""

    def __init__(self, members: tuple[int, ...]) -> None:
        number = self._made[members] = self._made.get(members, 0) + 1
        self.members = members
        self.key = f"{hashlib.blake2b(repr(members).encode(), digest_size=8).hexdigest()}-{number}"
        self.doing: object = None
        self.thread = 0
        self.came = self.met = 0
        self.movements: list[Movements] = []

    def begin(self, doing: object) -> None:
        """The first call, which makes the communicator for all further ones."""
        self.doing, self.thread, self.came = doing, get_ident(), 1

    def end(self) -> None:
        """The end of :meth:`begin`."""
        self.doing, self.met = None, 1

    @property
    def waits(self) -> tuple[str, int, int] | None:
        """What the rank waits in, if it waits: the communicator, the meeting, and the movement."""
        came = self.came
        if came != self.met:
            return self.key, came, 0
        for movements in self.movements:
            current = movements.current
            if current is not None:
                return self.key, came, current[1]
        return None

    def text(self) -> str:
        """What the rank does, as the end of a sentence that begins with the rank."""
        doing, line = str(self.doing), calling_line(self.thread)
        call = f"{doing} at {line}" if line else doing
        if self.came != self.met:
            return f"waits in {call}"
        for movements in self.movements:
            current = movements.current
            if current is not None:
                return f"moves {current[0]} in {call}"
        return f"runs {call}"


def elsewhere_text() -> str:
    """What a rank does that is in no call."""
    line = calling_line(main_thread().ident)
    return f"is at {line}, in no call of distspmd" if line else "is in no call of distspmd"


def calling_line(thread: int | None = None) -> str:
    """The line of the user's source from which a thread calls; of this one where left out."""
    frame = sys._current_frames().get(get_ident() if thread is None else thread)
    for each in _outwards(frame):
        file = each.f_code.co_filename
        if not any(part in file for part in _OTHERS):
            return f"{_short(file)}:{each.f_lineno}"
    return ""


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _short(file: str) -> str:
    here = os.getcwd() + os.sep
    return file.removeprefix(here)


def ranks_text(ranks: Sequence[int]) -> str:
    """Ranks in words: ``rank 3``, ``ranks 0, 2 to 5``."""
    ordered = sorted(ranks)
    runs = [
        [rank for _, rank in run]
        for _, run in groupby(enumerate(ordered), lambda pair: pair[1] - pair[0])
    ]
    words = [
        str(run[0]) if len(run) == 1 else f"{run[0]}{' to ' if len(run) > 2 else ', '}{run[-1]}"
        for run in runs
    ]
    return f"rank{'s' * (len(ordered) > 1)} {', '.join(words)}"
