"""Errors that all ranks raise together: an error on any rank becomes the same error on all."""

from __future__ import annotations

import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from distspmd.errors import DistSPMDError, ResultElsewhere, shorten
from distspmd.runtime import watchdog

_SECONDS_TO_TELL = 5.0
"""For a rank to tell of an error that others have as well."""
Packed = tuple[type[Exception], str]


def pack_error(error: Exception) -> Packed:
    """What other ranks need to raise an error: an exception itself may hold what cannot travel."""
    text, kind = shorten(str(error)), _public_kind(error)
    try:
        pickle.dumps(kind)
        kind(text)
    except Exception:  # one that takes other arguments, or is known to this rank alone
        return DistSPMDError, f"{type(error).__name__}: {text}"
    return kind, text


def _public_kind(error: Exception) -> type[Exception]:
    """The class of an error, or the one above it that callers know.

    Our other classes are of modules that only the rank that compiles has imported.
    """
    own, known = __name__.partition(".")[0], DistSPMDError.__module__
    kinds = (kind for kind in type(error).__mro__ if issubclass(kind, Exception))
    return next(k for k in kinds if k.__module__ == known or k.__module__.split(".")[0] != own)


def unpack_error(rank: int, told: Packed) -> Exception:
    """The error of another rank."""
    kind, text = told
    return kind(f"rank {rank}: {text}")


def wait_quietly(comm: Any) -> None:
    """A barrier that sleeps while it waits, so that a rank that compiles has the cores.

    To look costs a rank a part of a millisecond, and there may be many ranks on a core: the longer
    they have waited, the longer they sleep, a tenth of that time.
    """
    request = comm.Ibarrier()
    start = time.monotonic()
    while not request.Test():
        time.sleep(min(max((time.monotonic() - start) / 10, 1e-3), 0.2))


def end_all_on_exception() -> None:
    """Let an exception that nobody catches on one rank end all ranks, with its message.

    Python would end that rank alone, and the others would wait for it for ever. So do exceptions of
    threads that have made calls together with other ranks. Of a long message the middle is left
    out. Without MPI, on one rank, and in an interactive session all is as it was.
    """
    if getattr(sys.excepthook, "ends_all", False):
        return
    before, before_in_thread = sys.excepthook, threading.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        def show() -> None:
            before(kind, error, trace)

        if not _end_all(error, None if before is sys.__excepthook__ else show):
            show()

    def hook_of_thread(given: threading.ExceptHookArgs) -> None:
        called = given.thread is not None and watchdog.has_called(given.thread.ident)
        if not (called and given.exc_value and _end_all(given.exc_value, None)):
            before_in_thread(given)

    hook.ends_all = True  # type: ignore[attr-defined]  # functions have attributes too
    sys.excepthook, threading.excepthook = hook, hook_of_thread


def _end_all(error: BaseException, show: Callable[[], None] | None) -> bool:
    """Show an error and end all ranks, if this is one of several."""
    comm = None if hasattr(sys, "ps1") else _world()
    if comm is None:
        return False
    if isinstance(error, ResultElsewhere) and comm.Get_rank() > error.first:
        time.sleep(_SECONDS_TO_TELL)  # the first one tells it for all, and ends this process
    sys.stderr.write(f"distspmd: rank {comm.Get_rank()} failed; ending all ranks.\n")
    if show is None:
        sys.stderr.write(_report(error))
    else:
        show()
    sys.stderr.flush()
    comm.Abort(1)
    return True


def _report(error: BaseException) -> str:
    """What Python prints of an exception; without those that led to it if its message is long.

    Python looks at each line of a message, which takes seconds for megabytes.
    """
    text = str(error)
    told = shorten(text)
    if told == text:
        return shorten("".join(traceback.format_exception(error)))
    lines = ["Traceback (most recent call last):\n", *traceback.format_tb(error.__traceback__)]
    return f"{''.join(lines)}{type(error).__qualname__}: {told}\n"


def _world() -> Any:
    """All ranks, if there are several, and MPI runs."""
    if "mpi4py.MPI" not in sys.modules:
        return None
    from mpi4py import MPI

    runs = MPI.Is_initialized() and not MPI.Is_finalized()
    return MPI.COMM_WORLD if runs and MPI.COMM_WORLD.Get_size() > 1 else None
