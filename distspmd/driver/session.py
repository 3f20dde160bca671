"""Sessions: ranks behind this process, from their start to their end.

The ranks start while the script goes on; the first call waits for them. A session ends with its
block, with :func:`stop`, or with the process, however that ends: a guard beside it ends the ranks
if it is killed, and ranks that no longer hear the driver end themselves.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager

from distspmd.driver.ranks import Ranks, every
from distspmd.errors import ArgumentError, LaunchError, describe
from distspmd.runtime.allocation import launched_ranks
from distspmd.runtime.launch import driver_ranks as driven


def start(ranks: int, *, threads: int | None = None) -> Ranks:
    """Start ranks behind this process, which serve it until :func:`stop` or the end of the process.

    Programs, training steps and redistributions that are given no communicator run on them from
    now on. The ranks start while the script goes on.

    Args:
        ranks: how many.
        threads: of each; by default the cores are shared among the ranks.

    Raises:
        LaunchError: they cannot be started, or this process is a rank itself.
        ArgumentError: others have been started and not ended yet, or no number of ranks.
    """
    if not isinstance(ranks, int) or isinstance(ranks, bool) or ranks < 1:
        raise ArgumentError(f"the number of ranks is 1 or more, but {describe(ranks)} was given.")
    known = launched_ranks()
    if known is not None:
        raise LaunchError(
            f"this process is one of {known} rank(s) that were launched together; they call "
            "programs together as they are. Take out start(...) or ranks(...), or start the script "
            "as one process that starts its ranks: `python script.py`."
        )
    there = driven.started()
    if isinstance(there, Ranks) and not there.is_there:
        there.close()
    elif there is not None:
        raise ArgumentError(
            f"{there.Get_size()} ranks have been started already, and serve this process. Use "
            "these, or call distspmd.stop() or leave the block of ranks(...) first."
        )
    made = Ranks(ranks, threads=threads)
    driven.enter(made)
    return made


def stop() -> None:
    """End the ranks that :func:`start` has started.

    Raises:
        ArgumentError: there are none.
    """
    there = driven.started()
    if not isinstance(there, Ranks):
        raise ArgumentError("stop: no ranks have been started, or they are gone already.")
    there.close()


@contextmanager
def ranks(count: int, *, threads: int | None = None) -> Iterator[Ranks]:
    """Ranks behind this process, as :func:`start` starts them, until the block ends.

    ::

        with distspmd.ranks(4):
            y = program(x)
    """
    made = start(count, threads=threads)
    try:
        yield made
    finally:
        made.close()


@atexit.register
def _end_all() -> None:
    for each in every():
        each.close()
