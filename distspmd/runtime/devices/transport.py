"""What brings tiles of devices from rank to rank, for a program or for a redistribution."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.runtime.devices.kinds import Device
from distspmd.runtime.devices.library import NUMBERS, address_of


class Transport:
    """Stands between a program and the engine of its plans: brings device tiles to the host.

    Args:
        device: the device of the process.
        engine: the context of an engine.
        end: ends all ranks with a message; a function of C, of a context and a text.
        table: of :func:`distspmd.plans.staged_boxes.staging_table`.
        names: of its plans and then of its fetches, for messages about errors.
    """

    def __init__(
        self,
        device: Device,
        engine: int,
        end: Any,
        table: NDArray[np.int64],
        names: Sequence[str] = (),
    ) -> None:
        self._library = device._library
        self.device = device
        self.context: int = self._library.distspmd_transport_create(
            engine, ctypes.cast(end, ctypes.c_void_p), table.ctypes.data_as(NUMBERS)
        )
        for name in names:
            self._library.distspmd_transport_name(self.context, name.encode())

    def run(self, plan: int, pointers: Sequence[int | None]) -> None:
        """Run a plan of the engine on tiles, each in the memory of the device or of the host."""
        self._library.distspmd_transport_run(self.context, plan, *pointers)

    def use_pulls(self, meeting: tuple[Any, Any], table: NDArray[np.int64]) -> None:
        """Let ranks pull out of the memory of each other's devices; all ranks call it.

        Args:
            meeting: of the engine (:attr:`distspmd.runtime.engine.engine.Engine.meeting`).
            table: of :func:`distspmd.plans.pull_table.pull_table`.
        """
        functions = (ctypes.cast(one, ctypes.c_void_p) for one in meeting)
        self._library.distspmd_transport_use_pulls(
            self.context, *functions, table.ctypes.data_as(NUMBERS)
        )

    def use_messages(
        self,
        meeting: tuple[Any, Any],
        by_mpi: tuple[Any, Any, Any],
        table: NDArray[np.int64],
        group: int = 0,
        pinned: bool = False,
    ) -> None:
        """Let ranks send packed buffers; all ranks call it.

        Args:
            meeting: of the engine (:attr:`distspmd.runtime.engine.engine.Engine.meeting`).
            by_mpi: likewise (:attr:`distspmd.runtime.engine.engine.Engine.by_mpi`).
            table: of :func:`distspmd.plans.packed_table.packed_table`.
            group: of the library of collectives, which carries; 0: MPI does.
            pinned: whether buffers lie in pinned memory of the host, for any MPI; else in the
                memory of the device, which MPI has to know.
        """
        functions = (ctypes.cast(one, ctypes.c_void_p) for one in meeting)
        carriers = (ctypes.c_void_p * 3)(*map(address_of, by_mpi))
        self._library.distspmd_transport_use_messages(
            self.context, *functions, carriers, group or None, pinned, table.ctypes.data_as(NUMBERS)
        )

    def messages(self) -> int:
        """Calls of plans so far whose messages went from device to device."""
        found: int = self._library.distspmd_transport_messages(self.context, 0)
        return found

    def in_pieces(self) -> int:
        """Calls of plans so far whose tiles went through pinned memory in pieces."""
        found: int = self._library.distspmd_transport_messages(self.context, 1)
        return found

    def lend(self, address: int) -> None:
        """Tell it of memory that may be freed after a call; 0 takes back all."""
        self._library.distspmd_transport_lend(self.context, address)

    def pulls(self) -> int:
        """Calls of plans that were pulls so far."""
        found: int = self._library.distspmd_transport_pulls(self.context)
        return found

    def nbytes(self) -> tuple[int, int]:
        """Bytes that were copied from the device to the host so far, and back."""
        both = np.zeros(2, dtype=np.int64)
        self._library.distspmd_transport_bytes(self.context, both.ctypes.data_as(NUMBERS))
        return int(both[0]), int(both[1])

    def close(self) -> None:
        """Free its memory."""
        self._library.distspmd_transport_destroy(self.context)
