"""Measures how fast ranks of this host copy on their devices, and bring tiles to each other's.

Each rank runs ``python -m distspmd.runtime.measure_devices KIND``; rank 0 prints figures as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.planning.planner import plan as make_plan
from distspmd.plans.encoding import Storage
from distspmd.plans.staged_boxes import staging_table
from distspmd.runtime.agreement import Agreement
from distspmd.runtime.device_arrays import DeviceArray
from distspmd.runtime.device_machine import DeviceMachine
from distspmd.runtime.device_transports import TRANSPORTS, VARIABLE, use_transport
from distspmd.runtime.devices import Device, Transport, device_kind, device_of_process
from distspmd.runtime.engine import Engine, runnable
from distspmd.runtime.launch import launch
from distspmd.runtime.measure import _least

_REPEAT = 10


def measure(kind: str, ranks: int = 2, timeout: float = 300) -> DeviceMachine:
    """Start ranks that measure.

    Args:
        kind: of device.
        ranks: how many; those of a node take its devices in turn.
        timeout: in seconds.

    Raises:
        LaunchError: the ranks failed.
        ToolchainError: there is no MPI.
    """
    argv = ["-m", "distspmd.runtime.measure_devices", kind]
    done = launch(argv, ranks=ranks, threads=1, capture=True, timeout=timeout).check()
    return DeviceMachine(**json.loads(done.stdout.splitlines()[-1]))


def measured_on(comm: Any, kind: str) -> DeviceMachine:
    """The figures as all ranks of a communicator find them together."""
    found = device_kind(kind)
    device = device_of_process(found)
    large = 1 << 18 if found.emulation else 1 << 26
    host = np.zeros(large, np.uint8)
    one, two = (DeviceArray.of(host, kind) for _ in range(2))

    def rate(copy: Callable[[], None]) -> float:
        return _least(comm, copy, _REPEAT) / large

    rates = (
        rate(lambda: device.copy(two.address, one.address, large)),
        rate(lambda: device.download(one.address, host)),
        rate(lambda: device.upload(host, one.address)),
    )
    transports: dict[str, tuple[float, float]] = {}
    refused: dict[str, str] = {}
    for name in TRANSPORTS:
        least, why = _seconds(comm, device, name, 1)
        if why:
            refused[name] = why
            continue
        most, _ = _seconds(comm, device, name, large // 8)
        transports[name] = least, max(1e-15, (most - least) / large)
    return DeviceMachine(*rates, transports, refused)


def _seconds(comm: Any, device: Device, name: str, elements: int) -> tuple[float, str]:
    """How long ranks take to get their neighbours' tiles by a transport; or why they cannot."""
    mesh = Mesh(x=comm.size)
    rows = Layout.parse(f"[1{{x}}{comm.size}, {elements}]", mesh)
    turned = tuple(rows.box((rank + 1) % comm.size) for rank in mesh)
    target = Layout(mesh, rows.extents, explicit=turned)
    plan = runnable(make_plan(rows, target, np.dtype(float), None, None, None))
    ends = [Storage.of(layout.box(comm.rank)) for layout in (rows, target)]
    engine = Engine(comm, [("measurement", plan, ends)])
    table = staging_table([(plan, ends)], [], comm.rank)
    transport = Transport(device, engine.context, engine.end, table)
    tiles = [DeviceArray.of(np.zeros((1, elements)), device.kind) for _ in range(2)]
    os.environ[VARIABLE] = name
    chosen = use_transport(transport, engine, Agreement.of(comm), [(plan, ends)])
    why = chosen.staged_because or name if chosen.name != name else ""
    found = 0.0
    if not why:
        addresses = [tile.address for tile in tiles]
        found = _least(comm, lambda: transport.run(0, addresses), _REPEAT)
    comm.Barrier()
    transport.close()
    engine.close()
    return found, why


def measure_and_print(kind: str) -> None:
    """Measure on all ranks of the launch; rank 0 prints."""
    from mpi4py import MPI

    found = measured_on(MPI.COMM_WORLD, kind)
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(asdict(found)), flush=True)


if __name__ == "__main__":
    measure_and_print(sys.argv[1])
