"""Errors that all ranks raise together: an error on any rank becomes the same error on all."""

from __future__ import annotations

import pickle
import sys
import time
import traceback
from types import TracebackType
from typing import Any

import numpy as np

from distspmd.errors import DistSPMDError, shorten


class Agreement:
    """Tells all ranks of a communicator whether one of them failed.

    The buffers are made once, so that agreeing costs one small Allreduce.
    """

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.ranks: int = comm.Get_size()
        self.rank: int = comm.Get_rank()
        self._mine, self._first = np.zeros(1, np.int32), np.zeros(1, np.int32)

    def check(self, error: Exception | None) -> None:
        """Raise the error of the lowest rank that has one, on all ranks.

        Raises:
            Exception: what that rank gave; the others say which rank it was.
        """
        if self.ranks == 1:
            if error is not None:
                raise error
            return
        from mpi4py import MPI

        self._mine[0] = self.rank if error is not None else self.ranks
        self.comm.Allreduce(self._mine, self._first, op=MPI.MIN)
        first = int(self._first[0])
        if first == self.ranks:
            return
        told = self.comm.bcast(error and pack_error(error), root=first)
        if self.rank == first:
            assert error is not None
            raise error
        raise unpack_error(first, told)


Packed = tuple[type[Exception], str]


def pack_error(error: Exception) -> Packed:
    """What other ranks need to raise an error: an exception itself may hold what cannot travel."""
    text = shorten(str(error))
    try:
        pickle.dumps(type(error))
        type(error)(text)
    except Exception:  # one that takes other arguments, or is known to this rank alone
        return DistSPMDError, f"{type(error).__name__}: {text}"
    return type(error), text


def unpack_error(rank: int, told: Packed) -> Exception:
    """The error of another rank."""
    kind, text = told
    return kind(f"rank {rank}: {text}")


def wait_quietly(comm: Any) -> None:
    """A barrier that sleeps while it waits, so that a rank that compiles has the cores."""
    request = comm.Ibarrier()
    pause = 1e-4
    while not request.Test():
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


def end_all_on_exception() -> None:
    """Let an exception that nobody catches on one rank end all ranks, with its message.

    Python would end that rank alone, and the others would wait for it for ever. Of a long message
    the middle is left out. Without MPI, on one rank, and in an interactive session all is as it
    was.
    """
    if getattr(sys.excepthook, "ends_all", False):
        return
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        comm = None if hasattr(sys, "ps1") else _world()
        if comm is None:
            before(kind, error, trace)
            return
        sys.stderr.write(f"distspmd: rank {comm.Get_rank()} failed; ending all ranks.\n")
        if before is sys.__excepthook__:
            sys.stderr.write(shorten("".join(traceback.format_exception(kind, error, trace))))
        else:
            before(kind, error, trace)
        sys.stderr.flush()
        comm.Abort(1)

    hook.ends_all = True  # type: ignore[attr-defined]  # functions have attributes too
    sys.excepthook = hook


def _world() -> Any:
    """All ranks, if there are several, and MPI runs."""
    if "mpi4py.MPI" not in sys.modules:
        return None
    from mpi4py import MPI

    runs = MPI.Is_initialized() and not MPI.Is_finalized()
    return MPI.COMM_WORLD if runs and MPI.COMM_WORLD.Get_size() > 1 else None
