"""Ranks that serve this process: programs are loaded on them, called, and passed arrays.

All that goes to them goes through the first one, in a conversation of one message and its answer.
"""

from __future__ import annotations

import mmap
import os
import pickle
import secrets
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.driver import serve, served
from distspmd.driver.handle import Handle
from distspmd.driver.line import LINE_BYTES, Line
from distspmd.driver.memory import Memory, Place, Segment
from distspmd.driver.peers import Peers
from distspmd.driver.wire import LostWire, Wire
from distspmd.errors import ArgumentError, LaunchError
from distspmd.layouts.intervals import Box
from distspmd.layouts.layout import Layout
from distspmd.runtime.launch import driver_ranks as driven
from distspmd.runtime.launch.driver_ranks import Driven, DriverAgreement


class RankError(Exception):
    """The traceback of a rank, as the cause of what the driver raises."""


class Ranks(Driven):
    """Ranks that serve this process; :func:`ranks` and :func:`start` make it.

    It stands where a communicator is wanted: ``distspmd.compile(lowering, ranks)``.

    Attributes:
        agreement: of this process with itself.
        memory: that the first rank sees, too.
    """

    memory: Memory

    def __init__(self, count: int, *, threads: int | None = None) -> None:
        self._process, self._number = os.getpid(), 0
        self.lock = threading.RLock()
        self._gone = ""
        self._line: Line | None = None
        self._forgotten: list[int] = []
        self.agreement = DriverAgreement(self, count, self._check_usable)
        self._peers = Peers(count, threads)
        _ALL.add(self)

    def __repr__(self) -> str:
        state = f"gone, for {self._gone}" if self._gone else "at work"
        return f"<distspmd.driver.Ranks: {self.Get_size()} ranks, {state}>"

    @staticmethod
    def started() -> Ranks | None:
        """The ranks that were started, by this process or by the command that runs the script."""
        found = driven.started()
        return found if isinstance(found, Ranks) else None

    @property
    def processes(self) -> Mapping[int, tuple[int, str]]:
        """By rank, its process and its host, for debuggers; of many ranks the first ones."""
        self._ready("processes")
        return dict(sorted(self._peers.processes.items()))

    # -- what is asked of them ------------------------------------------------------------------

    def together(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Let all ranks call a function of the package; what it returns on the first one.

        Raises:
            Exception: what it raises there.
        """
        message = serve.DO + pickle.dumps((function, arguments), protocol=5)
        return self.ask(message, f"{function.__name__}(...)")

    def ask(self, message: bytes, what: str) -> Any:
        """Send a message, and wait for the answer.

        Raises:
            Exception: what the ranks raise.
            LaunchError: they are gone.
        """
        with self.lock:
            line = self._line
            if line is None or self._gone or os.getpid() != self._process:
                line = self._ready(what)
            try:
                if self._forgotten:
                    numbers, self._forgotten = self._forgotten, []
                    line.send(serve.DO + pickle.dumps((served.forget, (numbers,))))
                    self._answer(line)
                line.send(message)
                return self._answer(line)
            except LostWire:
                error = self._lost(what)
            except KeyboardInterrupt:
                self._interrupted(what)
                raise
            raise error

    def load(self, built: Any, lowering: Any, binding: Any) -> Any:
        """Load a compiled program on the ranks."""
        from distspmd.driver.program import DrivenProgram

        return DrivenProgram(built, lowering, self, binding)

    def check_devices(self, device: str) -> None:
        """See to it that all ranks can run on a device."""
        self.together(served.check_devices, device)

    def new_number(self) -> int:
        """A number for something that the ranks keep."""
        self._number += 1
        return self._number

    def forget(self, number: int) -> None:
        """Let the ranks free an array, with the next call."""
        self._forgotten.append(number)

    def _answer(self, line: Line) -> Any:
        while True:
            answer = line.receive()
            kind = answer[:1]
            if kind == serve.DONE:
                return None
            if kind == serve.RETURNED:
                return pickle.loads(answer[1:])
            if kind == serve.RAISED:
                error, text = pickle.loads(answer[1:])
                raise error(text)
            if kind == serve.SAID:
                sys.stdout.write(answer[1:].decode(errors="surrogatepass"))
            elif kind == serve.WARNED:
                category, text = pickle.loads(answer[1:])
                warnings.warn(text, category, stacklevel=_level_of_user())
            else:
                raise self._failure(answer)

    # -- arrays ---------------------------------------------------------------------------------

    @property
    def is_there(self) -> bool:
        """Whether they serve this process."""
        return not self._gone and os.getpid() == self._process

    @property
    def is_shared(self) -> bool:
        """Whether the first rank sees the memory of this process."""
        return self._ready("memory").is_shared

    def memory_for(self, shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
        """A new array that the first rank sees."""
        with self.lock:
            if self._line is None:
                self._ready("memory")
            return self.memory.lent(shape, dtype)

    def put(self, place: Place, nbytes: int) -> None:
        """Let the first rank have what was written to a place, where it does not see it."""
        line = self._ready("put")
        if not line.is_shared:
            end = place.offset + nbytes
            head = serve.PUT.ljust(8) + np.array([*place, end], np.int64).tobytes()
            line.send(head + self.memory.segments[place.segment].map[place.offset : end])

    def get(self, place: Place, nbytes: int) -> None:
        """Have what the first rank has written to a place, where this process does not see it."""
        line = self._ready("get")
        if not line.is_shared:
            end = place.offset + nbytes
            line.send(serve.GET.ljust(8) + np.array([*place, end], np.int64).tobytes())
            self.memory.segments[place.segment].map[place.offset : end] = line.receive()

    def place(self, array: NDArray[Any], layout: Layout) -> Handle:
        """Give the ranks an array of this process, in a layout."""
        whole = np.asarray(array)
        number = self.new_number()
        found = Handle(self, number, whole.shape, whole.dtype, layout)
        room, place = self._room_of(whole)
        self.put(place, room.nbytes)
        self.together(served.scatter, place, number, layout, whole.dtype)
        return found

    def redistribute(
        self, tile: Any, source: Layout, target: Layout, out: Any, options: tuple[Any, ...]
    ) -> Any:
        """Bring an array from one layout to another; arrays of this process are whole."""
        from distspmd.driver.redistribution import redistribute

        return redistribute(self, tile, source, target, out, options)

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An array of zeros that the first rank sees, too: passing it copies nothing."""
        found = self.memory_for(shape, dtype)
        found.fill(0)
        return found

    def gather(self, handle: Handle, place: Place) -> None:
        """Bring an array to the first rank, as a whole."""
        self.together(served.gather, handle.number, handle.layout, place, handle.dtype)

    def scatter_into(self, place: Place, handle: Handle) -> None:
        """Give the ranks back what :meth:`gather` has brought."""
        self.together(served.scatter, place, handle.number, handle.layout, handle.dtype)

    def fetch(self, handle: Handle, out: NDArray[Any], box: Box | None = None) -> None:
        """Bring an array that the ranks hold, or a box of it, into one of this process."""
        room, place = self._room_of(out, is_read=False)
        given = handle.number, handle.layout, place, handle.dtype, box
        self.together(served.gather, *given)
        self.get(place, room.nbytes)
        if room is not out:
            np.copyto(out, room, casting="no")

    def rearrange(self, handle: Handle, layout: Layout) -> None:
        """Bring an array from rank to rank into another layout."""
        new = self.new_number()
        self.together(served.move, handle.number, handle.layout, new, layout, handle.dtype)
        self.forget(handle.number)
        handle.number, handle.layout = new, layout

    def _room_of(self, array: NDArray[Any], is_read: bool = True) -> tuple[NDArray[Any], Place]:
        """An array where the first rank sees it, itself or a copy, and its place."""
        self._ready("memory")
        place = self.memory.find(array) if array.flags.c_contiguous and array.nbytes else None
        if place is not None:
            return array, place
        room = self.memory_for(array.shape, array.dtype)
        if is_read:
            np.copyto(room, array, casting="no")
        return room, (self.memory.find(room) if room.nbytes else None) or Place(0, 0)

    # -- their start ----------------------------------------------------------------------------

    def _ready(self, what: object) -> Line:
        """The line, once the ranks have started.

        Raises:
            LaunchError: they are gone, or do not start.
            ArgumentError: this process was forked from the driver.
        """
        self._check_usable(what)
        with self.lock:
            if self._line is None:
                try:
                    self._share_memory(self._peers.meet())
                except LostWire:
                    raise self._lost("their start") from None
                except KeyboardInterrupt:
                    self._interrupted("their start")
                    raise
        assert self._line is not None
        return self._line

    def _share_memory(self, wire: Wire) -> None:
        """Have memory in common with the first rank, if it sees this process's."""
        memory = Memory(hasattr(os, "memfd_create"), self._tell_segment)
        memory.allocate(LINE_BYTES + mmap.PAGESIZE)
        first = memory.segments[0]
        word = secrets.token_bytes(32)
        first.map[LINE_BYTES : LINE_BYTES + len(word)] = word
        wire.send(pickle.dumps((os.getpid(), first.file, first.nbytes, word)))
        is_shared = wire.receive() == b"shared"
        self.memory = memory if is_shared else Memory(False, self._tell_segment)
        look = self._peers.look
        self._line = Line(wire, first if is_shared else None, is_driver=True, look=look)

    def _tell_segment(self, segment: Segment) -> None:
        if self._line is not None:
            self._line.send(serve.MAP + pickle.dumps((segment.file, segment.nbytes)))

    # -- their end ------------------------------------------------------------------------------

    def _check_usable(self, what: object) -> None:
        if os.getpid() != self._process:
            raise ArgumentError(
                f"{what} cannot be called: this process was forked from the one that started the "
                "ranks, which they serve alone. Call it there, or start ranks here."
            )
        if self._gone:
            raise LaunchError(
                f"{what} cannot be called: the ranks are gone, for {self._gone}. Start new ones: "
                f"distspmd.start(ranks={self.Get_size()})."
            )

    def _lost(self, what: str) -> Exception:
        """What became of the ranks, as an error."""
        told = self._peers.last_words()
        if told:
            return self._failure(told)
        died = self._peers.death()
        self._end(died)
        return LaunchError(f"{died} in {what}; all ranks are ended.")

    def _failure(self, told: bytes) -> Exception:
        """What a rank has told that nobody there has caught."""
        rank, (kind, text), trace = pickle.loads(told[1:])
        self._end(f"rank {rank} failed with a {kind.__name__}")
        found: Exception = kind(f"rank {rank}: {text}")
        found.__cause__ = RankError(f"\n{trace}")
        return found

    def _interrupted(self, what: str) -> None:
        self._end("an interrupt from the keyboard ended them in a call")
        sys.stderr.write(
            f"distspmd: an interrupt from the keyboard ends {what}, and all ranks with it.\n"
        )

    def close(self) -> None:
        """End the ranks; what they print comes before."""
        with self.lock:
            if not self.is_there:
                driven.leave(self)
                return
            if self._line is not None:
                with suppress(LostWire):
                    self._line.send(serve.END)
                    self._peers.wait()
            self._end("the session has ended")
            driven.leave(self)

    def _end(self, why: str) -> None:
        self._gone = self._gone or why
        self._peers.end()

    def leave_to_parent(self) -> None:
        """In a process that was forked from the driver."""
        if not self._gone:
            self._peers.leave_to_parent()


_ALL: weakref.WeakSet[Ranks] = weakref.WeakSet()


def every() -> list[Ranks]:
    """All that are known here."""
    return list(_ALL)


def _note_a_fork() -> None:
    for each in every():
        each.leave_to_parent()


os.register_at_fork(after_in_child=_note_a_fork)

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def _level_of_user() -> int:
    """How many frames above who asks the user's is."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
