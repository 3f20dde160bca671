"""A thread of each rank that ends all ranks where one of them waits for something that never comes.

Where the ranks of a communicator call different things they hear of it when they meet. The watchdog
sees what makes no meeting: ranks that ended, died, or wait for each other on several communicators,
and ranks that do not answer for DISTSPMD_TIMEOUT seconds. It reads what the main thread stores in
passing, a few times in a second, and costs the calls nothing.
"""

from __future__ import annotations

import atexit
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from distspmd.errors import ArgumentError, CacheError
from distspmd.runtime.allocation import launched_ranks, ranks_of_node
from distspmd.runtime.watch.board import Board, Posted, job_key, process, remove_old_boards, where
from distspmd.runtime.watch.finalize_timer import watch_behind_python
from distspmd.runtime.watch.rank_state import RankState, elsewhere_text, ranks_text

VARIABLE = "DISTSPMD_TIMEOUT"
DEFAULT_SECONDS = 1800.0

_INTERVAL = 0.5
_SURE = 2.0
"""Seconds after which a rank that waits looks at the others."""
_CROSSED = 20.0
"""Seconds for which ranks wait for each other before that is taken for certain."""
_SILENT = 10.0
"""Seconds after which a rank that has not written says nothing of what it does now."""
_LOOKING = 8
"""Of ranks that wait for each other, about how many look at all others at once."""
_LAST_WORDS = 1.0
"""Seconds for ranks of other nodes to say where they stand."""
_PATIENCE = 15.0
"""Seconds for the rank that has begun to end all ranks of this node."""


def limit(environ: Mapping[str, str] = os.environ) -> float:
    """Seconds for which ranks wait for an answer; 0: for ever.

    Raises:
        ArgumentError: DISTSPMD_TIMEOUT is no number.
    """
    given = environ.get(VARIABLE, "")
    try:
        seconds = float(given or DEFAULT_SECONDS)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ArgumentError(
            f"{VARIABLE}={given!r} is no time. Set it to the seconds for which a rank waits for "
            f"the others, such as {DEFAULT_SECONDS:.0f}, or to 0 to wait for ever."
        )
    return seconds


def watch(rank_state: RankState) -> None:
    """Watch where this rank stands with the ranks of a communicator.

    Raises:
        ArgumentError: DISTSPMD_TIMEOUT is no number.
    """
    start()
    assert _running is not None
    _running.seconds = limit()
    _running.rank_states.append(rank_state)
    _running.appear()


def forget(rank_state: RankState) -> None:
    """The communicator is freed."""
    if _running is not None:
        with suppress(ValueError):
            _running.rank_states.remove(rank_state)


def has_called(thread: int | None) -> bool:
    """Whether a thread was the last that called something together with other ranks."""
    return _running is not None and any(each.thread == thread for each in _running.rank_states)


def start() -> None:
    """Start to watch, also before the first call; once in a process."""
    global _running
    if _running is None:
        _running = _Watchdog()
        _running.start()
        atexit.register(end_with_python)


def start_on_ranks() -> None:
    """Start to watch if this process was launched as a rank."""
    if launched_ranks() is not None:
        start()


def end() -> None:
    """Put on the board that this rank ends: others that wait for it learn of it."""
    if _running is not None and _running.pid == os.getpid():
        _running.leave()


def end_with_python() -> None:
    """The same; and see to it that MPI_Finalize, which comes then, does not wait for ever."""
    end()
    if _running is not None and _running.pid == os.getpid() and _running.waits_at_the_end():
        watch_behind_python(_limit_if_any())


def _limit_if_any() -> float:
    try:
        return limit()
    except ArgumentError:  # it is told where the rank calls something
        return 0.0


def _watched(finalize: Callable[[], None]) -> Callable[[], None]:
    """MPI.Finalize, which keeps all threads of Python from running while it waits for others."""

    @functools.wraps(finalize)
    def finalize_and_watch() -> None:
        end = watch_behind_python(_limit_if_any())
        try:
            finalize()
        finally:
            end()

    return finalize_and_watch


_running: _Watchdog | None = None


class _Watchdog(threading.Thread):
    """The thread."""

    def __init__(self) -> None:
        super().__init__(name="distspmd-watchdog", daemon=True)
        self.pid, self.started = os.getpid(), process(os.getpid())[1]
        self._launcher = os.getppid()
        self.seconds = DEFAULT_SECONDS
        self.rank_states: list[RankState] = []
        self._board: Board | None = None
        self._rank, self._of_node = -1, 0
        self._ended = False
        self._beat = 0
        self._lock = threading.Lock()
        self._waits: tuple[str, int, int] | None = None
        self._waited = self._crossed = self._unseen = 0.0
        self._heard: dict[int, tuple[int, float]] = {}
        """By rank, its last beat and the seconds since it came."""

    def run(self) -> None:
        """Look again and again; what goes wrong while looking is never the program's error."""
        last = time.monotonic()
        while not self._ended:
            time.sleep(_INTERVAL)
            if os.getppid() != self._launcher:
                self._end_alone()
            now = time.monotonic()
            # A job that was suspended as a whole has not waited while it slept.
            passed, last = min(now - last, 2 * _INTERVAL), now
            with suppress(CacheError, OSError, RuntimeError):
                self._look(passed)

    def _end_alone(self) -> None:
        """End this rank: its launcher was killed, which can no longer do so."""
        with suppress(OSError, ValueError):  # nobody listens any more
            sys.stderr.write("distspmd: the launcher of this rank is gone; the rank ends.\n")
            sys.stderr.flush()
        os.kill(self.pid, signal.SIGKILL)

    def appear(self) -> None:
        """Put this rank on the board at once: it may be stopped before the thread first looks."""
        with self._lock, suppress(CacheError, OSError):
            if not self._beat and not self._ended and self._is_rank():
                self._post()

    def leave(self) -> None:
        """This rank ends."""
        with self._lock, suppress(CacheError, OSError):
            if not self._ended and self._is_rank():
                self._ended = True
                self._post()
                assert self._board is not None
                self._board.remove_if_all_ended(self._of_node)

    def waits_at_the_end(self) -> bool:
        """Whether MPI has not been finalized, which this rank will then do with the others."""
        if self._board is None:
            return False
        from mpi4py import MPI

        return not MPI.Is_finalized()

    # -- this rank ------------------------------------------------------------------------------

    def _is_rank(self) -> bool:
        """Whether this process is one of several ranks, and has its place on the board."""
        if self._board is not None:
            return True
        if "mpi4py.MPI" not in sys.modules:
            return False
        from mpi4py import MPI

        if not MPI.Is_initialized() or MPI.Is_finalized() or MPI.COMM_WORLD.Get_size() == 1:
            return False
        remove_old_boards()
        self._rank = MPI.COMM_WORLD.Get_rank()
        self._of_node = ranks_of_node(MPI.COMM_WORLD.Get_size())
        self._board = Board(job_key())
        MPI.Finalize = _watched(MPI.Finalize)
        return True

    def _look(self, passed: float) -> None:
        with self._lock:
            if self._ended or not self._is_rank():
                return
            waiting = next((each for each in self.rank_states if each.waits), None)
            waits = waiting.waits if waiting else None
            same = waits is not None and waits == self._waits
            self._waits = waits
            self._waited = self._waited + passed if same else 0.0
            self._post(waiting)
        if waiting is None or self._waited < _SURE:
            self._crossed = self._unseen = 0.0
            return
        self._unseen += passed
        if not self._has_turn(len(waiting.members)):
            return
        passed, self._unseen = self._unseen, 0.0
        others = self._others(passed)
        problem = self._problem(waiting, others, passed)
        if problem and waiting.waits == waits:
            self._end_all(problem)

    def _has_turn(self, members: int) -> bool:
        """Whether this rank looks at the others now.

        Where many wait they take turns: each reads what all have written, which would keep the
        cores from those that are waited for.
        """
        turns = -(-min(members, self._of_node) // _LOOKING)
        return (self._beat + self._rank) % max(1, turns) == 0

    def _post(self, waiting: RankState | None = None) -> None:
        assert self._board is not None
        self._beat += 1
        calling = waiting or next((each for each in self.rank_states if each.doing), None)
        text = calling.text() if calling else elsewhere_text()
        if waiting:
            text += f", for {self._waited:.0f} s"
        posted = Posted(
            self.pid,
            self.started,
            self._beat,
            text,
            ended=self._ended,
            busy=calling is not None and waiting is None,
            counts={each.key: each.came for each in self.rank_states},
            waits=waiting.waits if waiting else None,
            members=waiting.members if waiting else (),
        )
        self._board.post(self._rank, posted)

    # -- the others -----------------------------------------------------------------------------

    def _others(self, passed: float) -> dict[int, Posted]:
        """What is on the board, by rank; the seconds of silence of each are counted."""
        assert self._board is not None
        found = self._board.all()
        for rank, posted in found.items():
            beat, silent = self._heard.get(rank, (-1, 0.0))
            self._heard[rank] = (posted.beat, silent + passed if beat == posted.beat else 0.0)
        return found

    def _problem(self, waiting: RankState, others: Mapping[int, Posted], passed: float) -> str:
        """Why what this rank waits for never comes, if that is so."""
        here = f"rank {self._rank} {others[self._rank].text.rpartition(', for ')[0]}"
        members = {rank: others[rank] for rank in waiting.members if rank in others}
        ended = [r for r, each in members.items() if never_comes(each, waiting.key, waiting.came)]
        if ended:
            return f"{ranks_text(ended)} ended while {here}"
        died = [r for r, each in members.items() if not each.ended and not each.lives]
        if died:
            return f"{ranks_text(died)} died while {here}"
        answering = {r: each for r, each in others.items() if self._heard[r][1] < _SILENT}
        crossed = cannot_move(answering)
        self._crossed = self._crossed + passed if self._rank in crossed else 0.0
        if self._crossed > _CROSSED:
            return f"{ranks_text(crossed)} wait for each other in different calls"
        if 0 < self.seconds < self._waited and not any(
            each.busy for rank, each in members.items() if rank in answering
        ):
            return (
                f"{here} for {self._waited:.0f} s, and the other ranks do not come; {VARIABLE} is "
                f"{self.seconds:g}"
            )
        return ""

    def _end_all(self, problem: str) -> None:
        """Say what is wrong and where each rank stands, and end all ranks; one of them does so."""
        assert self._board is not None
        if not self._board.is_first("ending"):
            time.sleep(_PATIENCE)  # it may be killed meanwhile
        lines = [f"distspmd: {problem}; ending all ranks.", *where(self._board.told())]
        lines.append(
            "  All ranks of a communicator make the same calls. Where they only take long, set "
            f"{VARIABLE} to more seconds, or to 0 to wait for ever."
        )
        sys.stderr.write("\n".join(lines) + "\n")
        sys.stderr.flush()
        time.sleep(_LAST_WORDS)
        end_all()


def never_comes(posted: Posted, key: str, meeting: int) -> bool:
    """Whether a rank has ended before a meeting on a communicator."""
    return posted.ended and (posted.counts or {}).get(key, 0) < meeting


def cannot_move(posted: Mapping[int, Posted]) -> list[int]:
    """The ranks that wait for each other, so that none of them ever goes on.

    A rank that waits in a meeting goes on when all ranks of the communicator have come to it; one
    of which nothing is known may come.
    """
    waiting = {rank: each for rank, each in posted.items() if each.waits and not each.waits[2]}
    stuck = set(waiting)

    def can_move(rank: int) -> bool:
        assert waiting[rank].waits is not None
        key, meeting, _ = waiting[rank].waits  # type: ignore[misc]  # it is not None
        missing = [
            member
            for member in waiting[rank].members
            if member not in waiting or (waiting[member].waits or ())[:2] != (key, meeting)
        ]
        past = any(
            (waiting[m].counts or {}).get(key, 0) >= meeting for m in missing if m in waiting
        )
        return not missing or past or any(member not in stuck for member in missing)

    while moving := {rank for rank in stuck if can_move(rank)}:
        stuck -= moving
    return sorted(stuck)


def end_all() -> None:
    """End all ranks, also where the main thread does not answer."""
    from mpi4py import MPI

    killer = threading.Timer(5.0, _kill)
    killer.daemon = True
    killer.start()
    world: Any = MPI.COMM_WORLD
    world.Abort(1)
    _kill()


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
