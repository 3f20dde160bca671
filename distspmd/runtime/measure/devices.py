"""Measures how fast ranks of this host copy on their devices, and bring tiles to each other's.

Each rank runs ``python -m distspmd.runtime.measure.devices KIND [try]``; rank 0 prints figures as
JSON, or only which ways work.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.planning.planner import plan as make_plan
from distspmd.plans.encoding import Storage
from distspmd.plans.staged_boxes import staging_table
from distspmd.runtime.allocation import allocated_tasks, ranks_of_node
from distspmd.runtime.devices.arrays import DeviceArray
from distspmd.runtime.devices.kinds import Device, device_kind, device_of_process
from distspmd.runtime.devices.machine import DeviceMachine, Figures
from distspmd.runtime.devices.transport import Transport
from distspmd.runtime.devices.transports import (
    TRANSPORTS,
    VARIABLE,
    is_on_several_nodes,
    use_transport,
)
from distspmd.runtime.engine.engine import Engine, runnable
from distspmd.runtime.launch.mpiexec import launch
from distspmd.runtime.measure.hosts import _least
from distspmd.runtime.watch.agreement import Agreement

_REPEAT = 10


def measure(kind: str, ranks: int = 3, timeout: float = 300) -> DeviceMachine:
    """Start ranks that measure; in a job of several nodes also ranks on all of these.

    Args:
        kind: of device.
        ranks: how many, if a node has so many; those of a node take its devices in turn.
        timeout: in seconds.

    Raises:
        LaunchError: the ranks failed.
        ToolchainError: there is no MPI.
    """
    tasks = allocated_tasks() or [ranks]
    found = DeviceMachine()
    if tasks[0] > 1:
        found = _launched(kind, min(ranks, tasks[0]), timeout)
    if len(tasks) == 1:
        return found
    far = _launched(kind, sum(tasks), timeout)
    further = {f"{name} between nodes": why for name, why in far.refused.items()}
    refused = {**found.refused, **further}
    return replace(far, transports=found.transports, refused=refused)


def tried(kind: str, timeout: float = 120) -> dict[str, str]:
    """Start two ranks that bring tiles to each other's devices in each way.

    Returns:
        Why a way is not taken here, by its name; empty if it brings what it should.

    Raises:
        LaunchError: the ranks failed.
        ToolchainError: there is no MPI.
    """
    return dict(_printed([kind, "try"], 2, timeout))


def _launched(kind: str, ranks: int, timeout: float) -> DeviceMachine:
    return DeviceMachine(**_printed([kind], ranks, timeout))


def _printed(arguments: list[str], ranks: int, timeout: float) -> dict[str, Any]:
    """What rank 0 of a launch of this module prints at last."""
    argv = ["-m", "distspmd.runtime.measure.devices", *arguments]
    done = launch(argv, ranks=ranks, threads=1, capture=True, timeout=timeout).check()
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


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
    ways: dict[str, Figures] = {}
    refused: dict[str, str] = {}
    for name in TRANSPORTS:
        least, why = _seconds(comm, device, name, _neighbours(comm, 1))
        if why:
            refused[name] = why
            continue
        most, _ = _seconds(comm, device, name, _neighbours(comm, large // 8))
        all_to_all, _ = _seconds(comm, device, name, _everybody(comm))
        further = max(0.0, all_to_all - least) / max(1, comm.size - 2)
        ways[name] = least, max(1e-15, (most - least) / large), further
    if is_on_several_nodes(kind, Agreement.of(comm)):
        return DeviceMachine(*rates, refused=refused, far=ways)
    return DeviceMachine(*rates, ways, refused)


def _neighbours(comm: Any, elements: int) -> tuple[Layout, Layout]:
    """Ranks get each other's tiles: of a rank of another node, if there are several."""
    mesh = Mesh(x=comm.size)
    rows = Layout.parse(f"[1{{x}}{comm.size}, {elements}]", mesh)
    of_node = max(1, ranks_of_node(comm.size) % comm.size)
    turned = tuple(rows.box((rank + of_node) % comm.size) for rank in mesh)
    return rows, Layout(mesh, rows.extents, explicit=turned)


def _everybody(comm: Any) -> tuple[Layout, Layout]:
    """Each rank gets an element of each other one."""
    mesh, ranks = Mesh(x=comm.size), comm.size
    texts = f"[1{{x}}{ranks}, {ranks}]", f"[{ranks}, 1{{x}}{ranks}]"
    rows, columns = (Layout.parse(text, mesh) for text in texts)
    return rows, columns


def _seconds(
    comm: Any, device: Device, name: str, layouts: tuple[Layout, Layout], repeat: int = _REPEAT
) -> tuple[float, str]:
    """How long ranks take to bring tiles to another layout by a transport; or why they cannot."""
    plan = runnable(make_plan(*layouts, np.dtype(float), None, None, None))
    ends = [Storage.of(layout.box(comm.rank)) for layout in layouts]
    engine = Engine(comm, [("measurement", plan, ends)])
    table = staging_table([(plan, ends)], [], comm.rank)
    transport = Transport(device, engine.context, engine.end, table)
    whole = np.arange(float(np.prod(layouts[0].extents))).reshape(layouts[0].extents)
    held, wanted = (whole[intervals.slices(layout.box(comm.rank))] for layout in layouts)
    tiles = [DeviceArray.of(array, device.kind) for array in (held.copy(), np.zeros(wanted.shape))]
    os.environ[VARIABLE] = name
    chosen = use_transport(transport, engine, Agreement.of(comm), [(plan, ends)])
    why = chosen.staged_because or name if chosen.name != name else ""
    found = 0.0
    if not why:
        addresses = [tile.address for tile in tiles]
        found = _least(comm, lambda: transport.run(0, addresses), repeat)
        right = comm.allgather(bool(np.array_equal(tiles[1].numpy(), wanted)))
        why = "" if all(right) else "it brings other values"
    comm.Barrier()
    transport.close()
    engine.close()
    return found, why


def tried_on(comm: Any, kind: str) -> dict[str, str]:
    """Which ways work, as :func:`tried` gives them; all ranks call it."""
    device = device_of_process(device_kind(kind))
    layouts = _neighbours(comm, 100)
    return {name: _seconds(comm, device, name, layouts, 1)[1] for name in TRANSPORTS}


def print_all(kind: str, how: str = "") -> None:
    """Measure, or try, on all ranks of the launch; rank 0 prints."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    found = tried_on(comm, kind) if how else asdict(measured_on(comm, kind))
    if comm.rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    print_all(*sys.argv[1:])
