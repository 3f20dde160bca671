"""Where programs run that this process calls: on ranks that it has started, or on those of MPI.

A driver (`distspmd/driver/`) starts ranks and stands for them as a communicator does: whoever is
given it takes its agreement, which is that of one process.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from distspmd.layouts.layout import Layout
from distspmd.plans.calibration import adjusted, known_of
from distspmd.plans.machine import Machine
from distspmd.runtime.allocation import is_job, launched_ranks, ranks_of_node
from distspmd.runtime.watch.agreement import Agreement


class Driven:
    """Ranks that serve this process.

    Attributes:
        agreement: of this process with itself, in the place of that of a communicator.
        lock: of a thread that calls.
    """

    agreement: DriverAgreement
    lock: threading.RLock

    def load(self, built: Any, lowering: Any, binding: Any) -> Any:
        """Load a compiled program on the ranks."""
        raise NotImplementedError

    def together(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Let all ranks call a function of the package; what it returns on the first one."""
        raise NotImplementedError

    def check_devices(self, device: str) -> None:
        """See to it that all ranks can run on a device."""
        raise NotImplementedError

    def redistribute(
        self, tile: Any, source: Layout, target: Layout, out: Any, options: tuple[Any, ...]
    ) -> Any:
        """Bring an array from one layout to another."""
        raise NotImplementedError

    def shared_node(self) -> Driven:
        """Who lends memory that the first rank sees, too: itself."""
        return self

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An array of zeros that the first rank sees, too."""
        raise NotImplementedError

    def Get_size(self) -> int:  # noqa: N802  as of a communicator
        """How many ranks there are."""
        return self.agreement.ranks

    def Get_rank(self) -> int:  # noqa: N802
        """This process stands in the place of rank 0."""
        return 0


class OnRanks:
    """An array that lies on the ranks of a driver."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def stand_in(self) -> Any:
        """An array of its form, without its values."""
        return np.empty(self.shape, self.dtype)


class DriverAgreement(Agreement):
    """What code that ranks run together asks of its agreement, for a process that drives ranks.

    There is nobody to agree with here: the ranks agree among themselves.
    """

    def __init__(self, driver: Driven, ranks: int, alive: Callable[[object], None]) -> None:
        self.comm = self.driver = driver
        self.rank, self.ranks = 0, ranks
        self.kept, self.programs = None, 0
        self._alive = alive

    def hold(self) -> DriverAgreement:
        """Itself."""
        return self

    def release(self) -> None:
        """The end of :meth:`hold`."""

    def enter(self, doing: object) -> object:
        """Begin a call.

        Raises:
            LaunchError: the ranks are gone.
        """
        self._alive(doing)
        return None

    def leave(self, outer: object) -> None:
        """End a call."""

    @contextmanager
    def calling(self, doing: object) -> Iterator[None]:
        """A call, as a block; those of other threads come after it."""
        self.enter(doing)
        with self.driver.lock:
            yield

    def meet(self, tag: int, error: Exception | None = None) -> int:
        """Raise an error if there is one."""
        self.check(error)
        return tag

    def check(self, error: Exception | None = None) -> None:
        """Raise an error if there is one."""
        if error is not None:
            raise error

    def wait(self, error: Exception | None = None) -> None:
        """Raise an error if there is one."""
        self.check(error)

    def bcast(self, value: Any) -> Any:
        """What this process has."""
        return value

    def allgather(self, value: Any) -> list[Any]:
        """What this process has, alone."""
        return [value]

    def compare(self, value: object, text: str, what: str) -> None:
        """There is nobody who could have another value."""


VARIABLE = "DISTSPMD_DRIVER_RANKS"
"""The variable by which ``distspmd run --driver`` asks a script to start ranks at its first
call."""

_started: list[Driven] = []


def enter(driven: Driven) -> None:
    """Let calls without a communicator go to these ranks."""
    _started.append(driven)


def leave(driven: Driven) -> None:
    """The end of :func:`enter`."""
    if driven in _started:
        _started.remove(driven)


def started() -> Driven | None:
    """The ranks that this process has started, or was asked to start, if there are some."""
    if not _started and VARIABLE in os.environ:
        asked = os.environ.pop(VARIABLE)
        if asked:
            importlib.import_module("distspmd.driver.session").start(int(asked))
    return _started[-1] if _started else None


def ranks_here() -> int | None:
    """How many ranks this process has started, or was started with; None if there are none."""
    found = started()
    return launched_ranks() if found is None else found.Get_size()


def machine_here() -> Machine:
    """The machine as measured and as first calls were, with cores that ranks share, if they do."""
    measured, ranks = Machine.measured(), ranks_here()
    found = adjusted(measured, known_of(measured))
    if ranks is None or is_job():
        return found
    return found.shared_by(ranks_of_node(ranks), os.cpu_count() or ranks)


def default_comm() -> Any:
    """Who runs what is called without a communicator: ranks that were started, or all of MPI."""
    found = started()
    if found is not None:
        return found
    from mpi4py import MPI

    return MPI.COMM_WORLD
