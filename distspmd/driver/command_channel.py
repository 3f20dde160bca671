"""How the first rank tells the others what to do next, and how these wait without a busy core.

A message goes down a binary tree of messages of MPI. Who waits for one looks at once and again,
and sleeps the longer the longer it has waited, for a user may think for minutes.
"""

from __future__ import annotations

import os
import time
from typing import Any

from distspmd.errors import DistSPMDError

_BYTES = 512
_HEAD = 8
_TAG = 17

_LOOKING = 1e-3
"""Seconds for which one looks before one sleeps."""
_LONGEST = 5e-3
"""Seconds of sleep at most: after a pause the first call waits for that long."""


class CommandChannel:
    """One rank's part.

    Args:
        comm: of all ranks, for this alone.
    """

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI

        self._comm, rank, ranks = comm, comm.Get_rank(), comm.Get_size()
        self._memory = bytearray(_BYTES)
        message = [self._memory, MPI.BYTE]
        self._sends = [
            comm.Send_init(message, child, _TAG)
            for child in (2 * rank + 1, 2 * rank + 2)
            if child < ranks
        ]
        self._receive = comm.Recv_init(message, (rank - 1) // 2, _TAG) if rank else None

    def tell(self, content: bytes) -> None:
        """Tell all other ranks; the first rank calls it."""
        if not self._sends:
            return
        self._memory[:_HEAD] = len(content).to_bytes(_HEAD, "little")
        is_short = len(content) <= _BYTES - _HEAD
        if is_short:
            self._memory[_HEAD : _HEAD + len(content)] = content
        self._pass_on()
        if not is_short:
            self._comm.bcast(content)

    def hear(self) -> bytes:
        """What the first rank tells; all others call it."""
        assert self._receive is not None
        self._receive.Start()
        test, give_way = self._receive.Test, os.sched_yield
        begin = time.perf_counter()
        while not test():
            give_way()
            waited = time.perf_counter() - begin
            if waited > _LOOKING:
                time.sleep(min(waited / 10, _LONGEST))
        length = int.from_bytes(self._memory[:_HEAD], "little")
        self._pass_on()
        if length <= _BYTES - _HEAD:
            return bytes(self._memory[_HEAD : _HEAD + length])
        found = self._comm.bcast(None)
        if not isinstance(found, bytes):
            raise DistSPMDError("the first rank has told something else than a message.")
        return found

    def _pass_on(self) -> None:
        for send in self._sends:
            send.Start()
        for send in self._sends:
            send.Wait()
