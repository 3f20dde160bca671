"""Errors that all ranks raise together: an error on any rank becomes the same error on all."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

import numpy as np


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
        told = self.comm.bcast(error if self.rank == first else None, root=first)
        if self.rank == first:
            assert error is not None
            raise error
        raise type(told)(f"rank {first}: {told}")


def wait_quietly(comm: Any) -> None:
    """A barrier that sleeps while it waits, so that a rank that compiles has the cores."""
    request = comm.Ibarrier()
    pause = 1e-4
    while not request.Test():
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


def end_all_on_exception() -> None:
    """Let an exception that nobody catches on one rank end all ranks, with its message.

    Python would end that rank alone, and the others would wait for it for ever. Without MPI, on one
    rank, and in an interactive session all is as before.
    """
    if getattr(sys.excepthook, "ends_all", False):
        return
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        comm = None if hasattr(sys, "ps1") else _world()
        if comm is not None:
            sys.stderr.write(f"distspmd: rank {comm.Get_rank()} failed; ending all ranks.\n")
        before(kind, error, trace)
        if comm is not None:
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
