"""The line between the driver and the first rank: one message at a time in each direction.

Where both share memory, a message is written there, and a number beside it says so. Who waits looks
at the number for a moment, then sleeps until the other side, which sees that, sends a byte over the
wire. So a call costs microseconds while calls follow each other, and ranks without work leave the
cores to others. Without shared memory, and where a message is long, it goes over the wire.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from distspmd.driver.memory import Segment
from distspmd.driver.wire import Wire

SIDE_BYTES = 2**16
"""Of the memory of each direction."""
LINE_BYTES = 2 * SIDE_BYTES
_HEAD = 512
_SENT, _READ, _SLEEPS, _LENGTH = 0, 8, 16, 24
"""Places of numbers, in words: each is in a line of the cache of its own."""
_ON_WIRE = -1

_LOOKING = 1e-3
"""Seconds for which one looks before one sleeps."""
_ASLEEP = 0.05
"""Seconds of sleep after which one looks again, whatever comes."""

_lock = threading.Lock()


def _fence() -> None:
    """What was written before is seen before what is read after."""
    _lock.acquire()
    _lock.release()


class Line:
    """One end.

    Args:
        wire: to the other end.
        segment: of which the first bytes are the line's; None where none is shared.
        is_driver: which end it is.
        look: is called now and then while one waits; it raises if nothing will ever come.
    """

    def __init__(
        self, wire: Wire, segment: Segment | None, is_driver: bool, look: Callable[[], None]
    ) -> None:
        self.wire, self._look = wire, look
        self.is_shared = segment is not None
        self._waiting = b""
        if segment is not None:
            memory = memoryview(segment.map)
            sides = [memory[at : at + SIDE_BYTES] for at in (0, SIDE_BYTES)]
            self._out, self._in = sides if is_driver else sides[::-1]
            self._out_words, self._in_words = self._out.cast("q"), self._in.cast("q")
            self._sent = self._got = 0

    def send(self, content: bytes) -> None:
        """Send a message, when the last one has been read."""
        if not self.is_shared:
            self.wire.send(content)
            return
        words = self._out_words
        while words[_READ] != self._sent:
            self._look()
            os.sched_yield()
        is_long = len(content) > SIDE_BYTES - _HEAD
        if is_long:
            words[_LENGTH] = _ON_WIRE
        else:
            words[_LENGTH] = len(content)
            self._out[_HEAD : _HEAD + len(content)] = content
        self._sent += 1
        _fence()
        words[_SENT] = self._sent
        _fence()
        if words[_SLEEPS]:
            self.wire.send(b"")
        if is_long:
            self.wire.send(content)

    def receive(self) -> bytes:
        """The next message.

        Raises:
            LostWire: the other side is gone.
        """
        if not self.is_shared:
            while not self.wire.has_more(_ASLEEP):
                self._look()
            return self.wire.receive()
        words = self._in_words
        if words[_SENT] == self._got:
            self._wait()
        _fence()
        self._got += 1
        length = words[_LENGTH]
        if length == _ON_WIRE:
            found = self._waiting
            while not found:
                found = self.wire.receive()
            self._waiting = b""
        else:
            found = bytes(self._in[_HEAD : _HEAD + length])
        words[_READ] = self._got
        return found

    def _wait(self) -> None:
        words, got, give_way = self._in_words, self._got, os.sched_yield
        end = time.perf_counter() + _LOOKING
        while words[_SENT] == got:
            give_way()
            if time.perf_counter() > end:
                self._sleep()
                return

    def _sleep(self) -> None:
        words, got = self._in_words, self._got
        words[_SLEEPS] = 1
        try:
            _fence()
            while words[_SENT] == got:
                if self.wire.has_more(_ASLEEP) and not self._waiting:
                    self._waiting = self.wire.receive()  # nothing, which wakes, or what is long
                self._look()
        finally:
            words[_SLEEPS] = 0
