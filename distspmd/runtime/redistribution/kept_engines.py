"""What a communicator keeps of redistributions between calls: the engines that ran last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from distspmd.plans.machine import Machine
from distspmd.runtime.engine.engine import Engine
from distspmd.runtime.redistribution.ready_calls import Ready
from distspmd.runtime.shared_memory.windows import SharedNode
from distspmd.runtime.watch.agreement import Agreement

if TYPE_CHECKING:  # tiles of the host need nothing of it
    from distspmd.runtime.devices.transport import Transport

Tile = NDArray[Any]

MOST_ENGINES = 256
"""Engines that a communicator keeps: each has memory, and a communicator of its own."""


class Known:
    """What a communicator keeps between calls.

    Engines are made by all ranks together and have the same number on all. Ranks may come to one
    engine by different arguments (the strides of a tile are a rank's own), so they agree on it.
    """

    def __init__(self, agreement: Agreement) -> None:
        self.agreement = agreement
        self.machine: Machine = agreement.bcast(Machine.measured())
        """That of rank 0: all ranks must choose the same plan."""
        self.node: SharedNode | None = None
        self.engines: dict[int, Engine] = {}
        """By their numbers; those that ran last stand last, on all ranks."""
        self._made = 0
        self.ready: dict[Any, Ready] = {}
        """By the arguments of a call, with tiles as ``look`` sees them."""
        self._by_all: dict[Any, int] = {}
        self._asked: Any = None
        self.transports: dict[int, Transport | None] = {}
        """Of engines for tiles in the memory of devices; None: this rank holds none there."""
        agreement.at_close(self._close)

    def look(self, tile: Any) -> Any:
        """All of a tile on which an engine depends, and whether it is right."""
        if not isinstance(tile, np.ndarray):
            return type(tile)
        return tile.shape, tile.strides, tile.dtype, tile.flags.writeable, self.place(tile)

    def place(self, tile: Tile | None) -> tuple[int, int] | None:
        """Where a tile lies in memory that is shared, if it does."""
        return None if self.node is None else self.node.place(tile)

    def shared_node(self) -> SharedNode:
        """The windows of the communicator; all ranks call it together."""
        self.node = self.node or SharedNode(self.agreement.comm)
        return self.node

    def run(
        self,
        serial: int,
        pointers: Sequence[int | None],
        tiles: Sequence[Tile | None],
    ) -> None:
        """Run the plan of an engine, on tiles of which some may lie in the memory of a device."""
        engine, transport = self.engines.pop(serial), self.transports.get(serial)
        self.engines[serial] = engine
        if transport is None:
            engine.run(0, pointers)
            return
        from distspmd.runtime.devices.tiles import run_on

        run_on(transport, engine, pointers, tiles)

    def find(self, asked: Any) -> int:
        """The number of the engine for what all ranks asked for, or -1."""
        self._asked = asked
        return self._by_all.get(asked, -1)

    def add(self, engine: Engine) -> int:
        """Keep an engine for what all ranks asked for, and close those that ran longest ago."""
        serial, self._made = self._made, self._made + 1
        self.engines[serial] = engine
        self._by_all[self._asked] = serial
        while len(self.engines) > MOST_ENGINES:
            self._drop(next(iter(self.engines)))
        return serial

    def _drop(self, serial: int) -> None:
        """Close an engine, and forget what leads to it; all ranks call it together."""
        transport = self.transports.pop(serial, None)
        if transport is not None:
            transport.close()
        self.engines.pop(serial).close()
        self._by_all = {asked: own for asked, own in self._by_all.items() if own != serial}
        self.ready = {asked: own for asked, own in self.ready.items() if own.serial != serial}

    def _close(self) -> None:
        for serial in list(self.engines):
            self._drop(serial)
        if self.node is not None:
            self.node.close()
