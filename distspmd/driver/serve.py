"""A rank of driver mode: it does what the driver asks until the driver is gone.

The first rank hears the driver and tells the others. What all ranks do is a function of the package
with arguments, or the call of a program, which has a form of its own because it must be short.
"""

from __future__ import annotations

import builtins
import ctypes
import io
import os
import pickle
import platform
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from distspmd.driver.command_channel import CommandChannel
from distspmd.driver.line import LINE_BYTES, Line
from distspmd.driver.memory import Segment
from distspmd.driver.wire import Wire, connected
from distspmd.errors import DistSPMDError
from distspmd.runtime.watch.errors_together import pack_error

VARIABLE = "DISTSPMD_DRIVER"
"""Where the driver listens and what both know: ``host port secret``."""

CALL, DO, END = b"C", b"D", b"E"
"""With what messages to all ranks begin: call a program, do something, end."""
MAP, PUT, GET = b"M", b"P", b"G"
"""With what those to the first rank begin: there is a segment; bytes for it; its bytes are
asked."""
DONE, RETURNED, RAISED, SAID, WARNED, FAILED = b"=", b"R", b"!", b">", b"W", b"F"
"""With what messages to the driver begin. A call is done without a value."""


class Server:
    """A rank that serves.

    Attributes:
        comm: of all ranks.
        rank: of this one.
        programs: that were loaded, by the driver's numbers.
        tiles: of arrays that stay here, by the driver's numbers.
        segments: of the memory that the driver and the first rank have in common.
    """

    def __init__(self, comm: Any, wire: Wire | None) -> None:
        self.comm, self.rank = comm, int(comm.Get_rank())
        self.programs: dict[int, Any] = {}
        self.tiles: dict[int, Any] = {}
        self.segments: list[Segment] = []
        self._wire, self._crier = wire, CommandChannel(comm.Dup())
        self.line: Line | None = None
        self._ends = False
        from distspmd.driver.served import call_program

        self._call_program = call_program
        if wire is not None:
            threading.Thread(target=self._watch, args=(wire,), daemon=True).start()

    def _watch(self, wire: Wire) -> None:
        """End this rank when the driver is gone, whatever it does."""
        wire.wait_for_end()
        if not self._ends:
            os.kill(os.getpid(), signal.SIGKILL)

    def run(self) -> None:
        """Serve until the driver ends the ranks."""
        if self.rank == 0:
            self._begin()
        hear: Callable[[], bytes] = self._hear if self.rank == 0 else self._crier.hear
        while True:
            message = hear()
            kind = message[:1]
            if kind == END:
                self._ends = True
                break
            if self.rank == 0:
                self._answered(kind, message)
            else:
                self._done(kind, message)

    # -- the first rank -------------------------------------------------------------------------

    def _begin(self) -> None:
        """Get to know the memory that the driver shares, if it can be seen from here."""
        assert self._wire is not None
        pid, file, nbytes, word = pickle.loads(self._wire.receive())
        segment = _opened(pid, file, nbytes, word) if file >= 0 else None
        self._wire.send(b"shared" if segment else b"apart")
        if segment:
            self._pid = pid
            self.segments.append(segment)
        self.line = Line(self._wire, segment, is_driver=False, look=_nothing)
        self._said = _Said(self.line)
        warnings.showwarning = self._warn  # type: ignore[assignment]

    def _hear(self) -> bytes:
        assert self.line is not None
        while True:
            message = self.line.receive()
            kind = message[:1]
            if kind == MAP:
                self._map(*pickle.loads(message[1:]))
            elif kind == PUT:
                segment, begin, end = np.frombuffer(message, np.int64, 3, 8).tolist()
                self.segments[segment].map[begin:end] = message[32:]
            elif kind == GET:
                segment, begin, end = np.frombuffer(message, np.int64, 3, 8).tolist()
                self.line.send(self.segments[segment].map[begin:end])
            else:
                self._crier.tell(message)
                return message

    def _map(self, file: int, nbytes: int) -> None:
        if file < 0:
            self.segments.append(Segment(nbytes))
            return
        opened = _opened(self._pid, file, nbytes)
        assert opened is not None, "the first one was opened, too"
        self.segments.append(opened)

    def _answered(self, kind: bytes, message: bytes) -> None:
        assert self.line is not None
        out, before = self._said, sys.stdout
        try:
            sys.stdout = out
            found = self._do(kind, message)
            answer = DONE if kind == CALL else RETURNED + pickle.dumps(found)
        except DistSPMDError as problem:
            answer = RAISED + pickle.dumps(pack_error(problem))
        except Exception as problem:  # of whatever runs here: the driver must learn of it
            self._fail(problem)
        finally:
            sys.stdout = before
        out.flush()
        self.line.send(answer)

    def _warn(self, message: Any, category: Any, *_: Any) -> None:
        """A warning of this rank is one of the driver."""
        assert self.line is not None
        try:
            packed = pickle.dumps((category, str(message)))
        except (pickle.PicklingError, AttributeError):  # a category that only this rank knows
            packed = pickle.dumps((UserWarning, str(message)))
        self.line.send(WARNED + packed)

    # -- all ranks ------------------------------------------------------------------------------

    def _done(self, kind: bytes, message: bytes) -> None:
        try:
            self._do(kind, message)
        except DistSPMDError:
            pass  # the first rank has it too, and tells the driver
        except Exception as problem:  # which no other rank may have: all must end
            self._fail(problem)

    def _do(self, kind: bytes, message: bytes) -> Any:
        if kind == CALL:
            return self._call_program(self, message)
        function, arguments = pickle.loads(message[1:])
        return function(self, *arguments)

    def _fail(self, problem: Exception) -> NoReturn:
        """Tell the driver of an error that this rank alone may have, and end all of them."""
        trace = "".join(traceback.format_exception(problem))
        told = FAILED + pickle.dumps((self.rank, pack_error(problem), trace))
        if self.line is not None:
            self.line.send(told)
        elif self._wire is not None:
            self._wire.send(told)
        else:
            sys.stderr.write(trace)
        time.sleep(_HEARD)
        self.comm.Abort(1)
        os._exit(1)


class _Said(io.TextIOBase):
    """What the first rank prints goes to the driver, who prints it."""

    def __init__(self, line: Line) -> None:
        self._line, self._parts = line, list[str]()

    def write(self, text: str) -> int:
        """Send whole lines, and keep the rest."""
        self._parts.append(text)
        if "\n" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what there is."""
        if self._parts:
            text = "".join(self._parts)
            self._parts.clear()
            self._line.send(SAID + text.encode(errors="surrogatepass"))


def _opened(pid: int, file: int, nbytes: int, word: bytes = b"") -> Segment | None:
    """A file of the driver without a name; None where it cannot be seen, or is another one."""
    try:
        mine = os.open(f"/proc/{pid}/fd/{file}", os.O_RDWR)
        if os.fstat(mine).st_size != nbytes:
            os.close(mine)
            return None
        found = Segment(nbytes, mine)
    except (OSError, ValueError):
        return None
    return found if found.map[LINE_BYTES : LINE_BYTES + len(word)] == word else None


def _nothing() -> None:
    """The thread that watches the driver ends this rank."""


def _flush_lines() -> None:
    """What C prints goes out line by line, also through a pipe."""
    try:
        library = ctypes.CDLL(None)
        stream = ctypes.c_void_p.in_dll(library, "stdout")
        library.setvbuf(stream, None, 1, 0)  # _IOLBF
    except (OSError, ValueError, AttributeError):
        builtins.print("distspmd: C prints late.", file=sys.stderr)


def main() -> None:
    """Be a rank."""
    from mpi4py import MPI

    _flush_lines()
    host, port, secret = os.environ[VARIABLE].split()
    comm = MPI.COMM_WORLD
    wire = None
    if comm.Get_rank() < MOST_WIRES:
        wire = connected(host, int(port), bytes.fromhex(secret))
        wire.send(pickle.dumps((comm.Get_rank(), os.getpid(), platform.node())))
    Server(comm, wire).run()


_HEARD = 0.5
"""Seconds for the driver to hear why the ranks end."""
MOST_WIRES = 256
"""So many ranks have a wire to the driver, who has as many files open."""

if __name__ == "__main__":
    # What it reads are classes of the module, not of __main__.
    from distspmd.driver import serve

    serve.main()
