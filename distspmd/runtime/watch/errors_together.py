"""Errors that all ranks raise together: an error on any rank becomes the same error on all."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from distspmd.errors import DistSPMDError, MissingResultError, shorten
from distspmd.runtime.tracebacks import is_full, report
from distspmd.runtime.watch import watchdog

_Error = TypeVar("_Error", bound=Exception)
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
    return told_elsewhere(kind(f"rank {rank}: {text}"))


def wait_quietly(comm: Any) -> None:
    """A barrier that sleeps while it waits, so that a rank that compiles has the cores.

    To look costs a rank a part of a millisecond, and there may be many ranks on a core: the longer
    they have waited, the longer they sleep, a tenth of that time.
    """
    request = comm.Ibarrier()
    start = time.monotonic()
    while not request.Test():
        time.sleep(min(max((time.monotonic() - start) / 10, 1e-3), 0.2))


def told_elsewhere(error: _Error) -> _Error:
    """Note of an error that all ranks raise that another rank tells of it; the error."""
    error.__dict__[_ELSEWHERE] = True
    return error


_ELSEWHERE = "_distspmd_told_elsewhere"
_PATIENCE = 5.0
"""Seconds for which a rank waits for the one that tells of an error, which ends all."""


def _is_told_elsewhere(error: BaseException | None, rank: int) -> bool:
    """Whether another rank tells of an error, or of one that led to it.

    A file that cannot be read as Python is so on all ranks, and a module is missing on all.
    """
    if isinstance(error, SyntaxError | ImportError) and rank:
        return True
    if isinstance(error, MissingResultError):
        return rank > error.first
    while error is not None:
        if _ELSEWHERE in getattr(error, "__dict__", {}):
            return True
        error = error.__cause__ or error.__context__
    return False


def end_all_on_exception() -> None:
    """Let an exception that nobody catches on one rank end all ranks, with its message.

    Python would end that rank alone, and the others would wait for it for ever. So do exceptions of
    threads that have made calls together with other ranks. An error that all ranks raise is told by
    one of them. Of a long message the middle is left out. In an interactive session all is as it
    was.
    """
    if getattr(sys.excepthook, "ends_all", False):
        return
    before, before_in_thread = sys.excepthook, threading.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if hasattr(sys, "ps1"):
            before(kind, error, trace)
            return

        def show() -> None:
            if before is not sys.__excepthook__ or not isinstance(error, Exception):
                before(kind, error, trace)
            else:
                _print(error)

        if not _end_all(error, show):
            _wait_for_others(error, _launched_rank())
            show()

    def hook_of_thread(given: threading.ExceptHookArgs) -> None:
        error = given.exc_value
        called = given.thread is not None and watchdog.has_called(given.thread.ident)
        if not (called and error and _end_all(error, lambda: _print(error))):
            before_in_thread(given)

    hook.ends_all = True  # type: ignore[attr-defined]  # functions have attributes too
    sys.excepthook, threading.excepthook = hook, hook_of_thread


def _print(error: BaseException) -> None:
    sys.stderr.write(report(error))


def _end_all(error: BaseException, show: Callable[[], None]) -> bool:
    """Show an error and end all ranks, if this is one of several."""
    comm = None if hasattr(sys, "ps1") else _world()
    if comm is None:
        return False
    rank = comm.Get_rank()
    _wait_for_others(error, rank)
    sys.stderr.write(f"distspmd: rank {rank} failed; ending all ranks.\n")
    show()
    sys.stderr.flush()
    comm.Abort(1)
    return True


def _wait_for_others(error: BaseException, rank: int) -> None:
    """Give the rank that tells of an error the time to end this one, too."""
    if _is_told_elsewhere(error, rank) and not is_full():
        time.sleep(_PATIENCE)


def _launched_rank() -> int:
    """The rank of this process as its launcher has it; 0 without one."""
    names = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK")
    found = next((os.environ[name] for name in names if name in os.environ), "0")
    return int(found) if found.isdecimal() else 0


def _world() -> Any:
    """All ranks, if there are several, and MPI runs."""
    if "mpi4py.MPI" not in sys.modules:
        return None
    from mpi4py import MPI

    runs = MPI.Is_initialized() and not MPI.Is_finalized()
    return MPI.COMM_WORLD if runs and MPI.COMM_WORLD.Get_size() > 1 else None
