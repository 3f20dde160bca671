"""What the ranks of a communicator agree on before they do anything together.

All calls that ranks make together on a communicator (of programs, compilations, redistributions)
meet on one duplicate of it, which is kept with it. To a meeting each rank brings what it calls, as
a number, and whether it has an error, in one small Allreduce. So all ranks know at once that one of
them calls something else or has ended, and raise the same error, which says who called what.
"""

from __future__ import annotations

import hashlib
import os
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import get_ident
from typing import Any

import numpy as np

from distspmd.errors import ArgumentError, DisagreementError
from distspmd.runtime.allocation import check_started_together
from distspmd.runtime.watch import watchdog
from distspmd.runtime.watch.errors_together import (
    pack_error,
    told_elsewhere,
    unpack_error,
    wait_quietly,
)
from distspmd.runtime.watch.rank_state import RankState, calling_line, ranks_text

_STATE_BITS = 32
"""A tag is a kind of call, and below it the state in which a rank comes to it."""
_LAST_KIND = 2**30
_TEXT_BYTES = 1024
"""Of what a rank tells of its call where ranks disagree; api/farewell.hpp knows it too."""
_ENDED = "ended"
"""What a rank tells that has come to its end; api/farewell.hpp knows it too."""

REDISTRIBUTION = 1 << _STATE_BITS
"""The tag of redistributions, whose state is the number of the engine."""


@dataclass(frozen=True, slots=True)
class Call:
    """Something that ranks call together.

    Attributes:
        text: for messages, such as ``mm(...)``.
        tag: the number by which ranks compare their calls.
        wording: for messages about calls that differ.
    """

    text: str
    tag: int
    wording: str

    @classmethod
    def of(cls, text: str, *details: object, wording: str = "") -> Call:
        """A call that others equal in their text and in details, which print alike on all ranks."""
        digest = hashlib.blake2b(repr((text, *details)).encode(), digest_size=8).digest()
        kind = int.from_bytes(digest, "little") % (_LAST_KIND - 2) + 2
        return cls(text, kind << _STATE_BITS, wording or text)

    def __str__(self) -> str:
        return self.text


_PLAIN = Call.of("a call of distspmd")

_lost = ""
"""Why this process can no longer call anything together with other ranks, if so."""


class Agreement:
    """The meetings of the ranks of a communicator; all of them make it together.

    Attributes:
        driver: who runs programs for this process, if the ranks of the communicator do not.
        comm: the duplicate on which they meet.
        rank_state: what this rank is in; the watchdog reads it.
        kept: what redistributions keep with the communicator.
        device_groups: of each kind of device, a group of its library of collectives, or why there
            is none (runtime/devices/groups.py).
        programs: how many its ranks have made.
        meets_at_the_end: whether its ranks meet once more when their programs end.
    """

    driver: Any = None

    def __init__(self, comm: Any, doing: object = _PLAIN) -> None:
        self.ranks: int = comm.Get_size()
        self.rank: int = comm.Get_rank()
        self.rank_state = RankState(_members(comm))
        self.kept: Any = None
        self.device_groups: dict[str, tuple[int, str]] = {}
        self.programs = 0
        self._users, self._orphaned = 0, False
        self._word = array("q", [0, 0, 0])
        if self.ranks > 1:
            watchdog.watch(self.rank_state)
        self.rank_state.begin(doing)
        if self.ranks > 1:
            wait_quietly(comm)  # many come late, since the cores that they share start them
        self.comm: Any = comm.Dup()
        self.rank_state.end()
        self.comm.Set_attr(_keyval(), self)
        self.meets_at_the_end = False
        self._reduce: Callable[..., None] = self.comm.Allreduce
        self._minimum = _minimum(self._word)
        self._on_close: list[Callable[[], None]] = []

    @classmethod
    def of(cls, comm: Any, doing: object = _PLAIN) -> Agreement:
        """That of a communicator, which is made at the first call; `doing` is that call.

        Raises:
            ArgumentError: something else than a communicator of mpi4py that is in use.
            LaunchError: the ranks of the job do not see each other.
        """
        own = getattr(comm, "agreement", None)  # of ranks that this process drives
        if isinstance(own, Agreement):
            return own
        if _lost:
            raise ArgumentError(f"{doing} cannot be called: {_lost}")
        try:
            found: Agreement | None = comm.Get_attr(_keyval())
        except Exception:  # it is no communicator, or MPI says what is wrong with it
            raise ArgumentError(_refusal(comm)) from None
        if found is None:
            found = _made(comm, doing)
        return found

    # -- calls ----------------------------------------------------------------------------------

    def enter(self, doing: object) -> object:
        """Begin a call; what is returned goes to :meth:`leave`.

        Raises:
            ArgumentError: another thread is in a call, or this process can make none.
        """
        if _lost:
            raise ArgumentError(f"{doing} cannot be called: {_lost}")
        rank_state = self.rank_state
        outer = rank_state.doing
        if outer is None:
            rank_state.doing, rank_state.thread = doing, get_ident()
        elif rank_state.thread != get_ident() and self.ranks > 1:
            raise ArgumentError(
                f"rank {self.rank} calls {doing} in one thread, and {outer} in another one, on the "
                "same communicator. Call them one after the other, or give each thread a "
                "communicator of its own (comm.Dup())."
            )
        return outer

    def leave(self, outer: object) -> None:
        """End a call."""
        self.rank_state.doing = outer

    @contextmanager
    def calling(self, doing: object) -> Iterator[None]:
        """A call, as a block."""
        outer = self.enter(doing)
        try:
            yield
        finally:
            self.leave(outer)

    # -- meetings -------------------------------------------------------------------------------

    def meet(self, tag: int, error: Exception | None = None) -> int:
        """Come together for a call.

        Returns:
            The tag if all ranks have the same; where they come in several states, that of state 0.

        Raises:
            DisagreementError: on all ranks; they call different things, or one of them has ended.
            Exception: the error of the lowest rank that has one, on all ranks.
        """
        if self.ranks == 1:
            if error is not None:
                raise error
            return tag
        word, rank_state = self._word, self.rank_state
        word[0], word[1], word[2] = self.ranks if error is None else self.rank, tag, -tag
        rank_state.came += 1
        self._reduce(*self._minimum)
        rank_state.met = rank_state.came
        failed, least, most = word[0], word[1], -word[2]
        if least != most:
            if least >> _STATE_BITS != most >> _STATE_BITS:
                doing = rank_state.doing
                told = doing.wording if isinstance(doing, Call) else str(doing)
                raise self._disagreement(told, "call different things")
            tag = least >> _STATE_BITS << _STATE_BITS
        if failed < self.ranks:
            self._raise(error, failed)
        return tag

    def check(self, error: Exception | None = None) -> None:
        """Come together within a call; raise the error of the lowest rank that has one, on all.

        Raises:
            DisagreementError: on all ranks; they are in different calls, or one of them has ended.
            Exception: what that rank gave; the others say which rank it was.
        """
        doing = self.rank_state.doing
        self.meet(doing.tag if isinstance(doing, Call) else _PLAIN.tag, error)

    def wait(self, error: Exception | None = None) -> None:
        """The same after work that takes some ranks long: the others sleep until it is done."""
        if self.ranks > 1:
            self.rank_state.came += 1
            wait_quietly(self.comm)
            self.rank_state.met = self.rank_state.came
        self.check(error)

    def bcast(self, value: Any) -> Any:
        """What rank 0 has."""
        self.rank_state.came += 1
        found = self.comm.bcast(value)
        self.rank_state.met = self.rank_state.came
        return found

    def allgather(self, value: Any) -> list[Any]:
        """What all ranks have."""
        self.rank_state.came += 1
        found: list[Any] = self.comm.allgather(value)
        self.rank_state.met = self.rank_state.came
        return found

    def compare(self, value: object, text: str, what: str) -> None:
        """See to it that all ranks have the same value as rank 0, apart from those that have None.

        Args:
            value: to be compared; rank 0 sends it to the others.
            text: it, as a rank tells it.
            what: what the ranks do that is wrong, such as "pass different schedules".

        Raises:
            DisagreementError: on all ranks.
        """
        if self.ranks == 1:
            return
        first = self.bcast(value)
        self._word[0] = int(value is None or first is None or value == first)
        self.rank_state.came += 1
        self._reduce(*self._minimum)
        self.rank_state.met = self.rank_state.came
        if self._word[0] == 0:
            raise self._disagreement(text, what)

    def _raise(self, error: Exception | None, failed: int) -> None:
        """The error of a rank."""
        told = self.comm.bcast(error and pack_error(error), root=failed)
        if self.rank == failed:
            assert error is not None
            raise error
        raise unpack_error(failed, told)

    def _disagreement(self, mine: str, what: str) -> DisagreementError:
        """What is wrong, from what all ranks tell."""
        from mpi4py import MPI

        line = calling_line()
        text = f"{mine} at {line}" if line else mine
        told = np.zeros(_TEXT_BYTES, np.uint8)
        content = text.encode()[:_TEXT_BYTES]
        told[: len(content)] = np.frombuffer(content, np.uint8)
        all_told = np.zeros((self.ranks, _TEXT_BYTES), np.uint8)
        self.comm.Allgather([told, MPI.BYTE], [all_told, MPI.BYTE])
        texts = [row.tobytes().rstrip(b"\0").decode(errors="replace") for row in all_told]
        error = DisagreementError(disagreement(texts, what, self.rank_state.members))
        teller = next(rank for rank, text in enumerate(texts) if text != _ENDED)
        return error if self.rank == teller else told_elsewhere(error)

    # -- the end --------------------------------------------------------------------------------

    def at_close(self, close: Callable[[], None]) -> None:
        """Call something before the duplicate is freed; the last that was given comes first."""
        self._on_close.append(close)

    def hold(self) -> Agreement:
        """Itself, which stays after the communicator is freed, until it is released."""
        self._users += 1
        return self

    def release(self) -> None:
        """The end of :meth:`hold`; all ranks call it together."""
        self._users -= 1
        self._free()

    def abandon(self) -> None:
        """The communicator is freed, by all ranks together."""
        self._orphaned = True
        self._free()

    def _free(self) -> None:
        if self._orphaned and not self._users and self.comm is not None:
            for close in reversed(self._on_close):
                close()
            watchdog.forget(self.rank_state)
            comm, self.comm = self.comm, None
            comm.Free()


def disagreement(texts: Sequence[str], what: str, members: Sequence[int]) -> str:
    """Of what each rank tells, what is wrong.

    Args:
        texts: by rank of the communicator.
        what: what they do that is wrong.
        members: the rank of each in ``MPI.COMM_WORLD``.
    """
    by_text: dict[str, list[int]] = {}
    for rank, text in zip(members, texts, strict=True):
        by_text.setdefault(text, []).append(rank)
    gone = by_text.pop(_ENDED, [])
    if gone:
        return ended_text(gone, by_text)
    lines = [f"  {ranks_text(ranks)}: {text}" for text, ranks in by_text.items()]
    if len(lines) == 1:
        lines.append("  with options or sizes that differ.")
    return "\n".join(
        [
            f"the ranks {what}:",
            *lines,
            "  All ranks of a communicator make the same calls, in the same order. Let them agree, "
            "or give those that shall not take part a communicator without them.",
        ]
    )


def ended_text(gone: Sequence[int], waiting: Mapping[str, Sequence[int]]) -> str:
    """That ranks ended while others wait in something."""
    waits = " and ".join(
        f"{ranks_text(ranks)} wait{'s' * (len(ranks) == 1)} in {text}"
        for text, ranks in waiting.items()
    )
    return (
        f"{ranks_text(gone)} ended while {waits}.\n"
        "  All ranks of a communicator make the same calls: let those that ended make this one "
        "too (rank 0 passes the arguments), or let no rank make it."
    )


def _made(comm: Any, doing: object) -> Agreement:
    if not hasattr(comm, "Dup"):
        raise ArgumentError(_refusal(comm))
    from mpi4py import MPI

    if comm.Is_inter():
        raise ArgumentError(
            "an intercommunicator was given, which has two groups of ranks. Pass one of its own "
            "ranks alone, such as comm.Merge()."
        )
    check_started_together(MPI.COMM_WORLD.Get_size())
    _note_the_end_of_mpi()
    found = Agreement(comm, doing)
    comm.Set_attr(_keyval(), found)
    return found


def _refusal(comm: Any) -> str:
    """Why something is no communicator that can be used."""
    if not hasattr(comm, "Dup"):
        return f"a communicator of mpi4py is needed, but {comm!r} was given. Pass MPI.COMM_WORLD."
    return (
        "the communicator is MPI.COMM_NULL: it was freed, or this rank is none of its ranks. Call "
        "this before comm.Free(), on its ranks alone."
    )


@cache
def _keyval() -> int:
    from mpi4py import MPI

    found: int = MPI.Comm.Create_keyval(delete_fn=_abandon)
    return found


def _abandon(comm: Any, _keyval: int, agreement: Agreement) -> None:
    if comm != agreement.comm:  # not the duplicate itself
        agreement.abandon()


def _minimum(word: array[int]) -> tuple[Any, Any, Any]:
    """What Allreduce gets for the smallest of each number that the ranks have in a word."""
    from mpi4py import MPI

    return MPI.IN_PLACE, [word, MPI.INT64_T], MPI.MIN


def _members(comm: Any) -> tuple[int, ...]:
    """The ranks in ``MPI.COMM_WORLD`` of the ranks of a communicator."""
    from mpi4py import MPI

    group, world = comm.Get_group(), MPI.COMM_WORLD.Get_group()
    found = tuple(group.Translate_ranks(range(group.Get_size()), world))
    group.Free()
    world.Free()
    return found


@cache
def _note_the_end_of_mpi() -> None:
    """See to it that calls after MPI.Finalize are refused."""
    from mpi4py import MPI

    def ended(_comm: Any, _keyval: int, _value: Any) -> None:
        global _lost
        _lost = "MPI has been finalized. Call it before MPI.Finalize()."
        watchdog.end()

    MPI.COMM_SELF.Set_attr(MPI.Comm.Create_keyval(delete_fn=ended), True)


def _note_a_fork() -> None:
    global _lost
    if "mpi4py.MPI" not in sys.modules:
        return
    from mpi4py import MPI

    if MPI.Is_initialized() and not MPI.Is_finalized() and MPI.COMM_WORLD.Get_size() > 1:
        _lost = (
            "this process was forked from a rank, and is no rank itself. Call it in the rank, or "
            "start workers with multiprocessing's method 'spawn', without MPI."
        )


os.register_at_fork(after_in_child=_note_a_fork)
