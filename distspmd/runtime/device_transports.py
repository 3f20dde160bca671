"""Which transport moves the tiles of a program between devices.

There are four. Which of them the ranks of a program can use is tried once, when the program is made
ready; whether a plan can, its table says; and whether the tiles of a call lie on devices, the ranks
tell each other in that call. What cannot is staged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from distspmd.errors import ArgumentError, DeviceError
from distspmd.plans.encoding import Storage
from distspmd.plans.packed_table import packed_table
from distspmd.plans.plan import Plan
from distspmd.plans.pull_table import pull_table, why_no_pulls, why_not_combined
from distspmd.runtime import device_groups
from distspmd.runtime.agreement import Agreement
from distspmd.runtime.device_machine import LAST, DeviceMachine
from distspmd.runtime.devices import KINDS, Device, Transport
from distspmd.runtime.engine import Engine

VARIABLE = "DISTSPMD_DEVICE_TRANSPORT"
"""Environment variable with the name of the transport of tiles between devices."""

MPI_VARIABLE = "DISTSPMD_DEVICE_MPI"
"""Environment variable: whether MPI knows the memory of devices, ``aware`` or ``staged``."""

PlanAndStorages = tuple[Plan, Sequence[Storage]]


@dataclass(frozen=True)
class DeviceTransport:
    """A way in which tiles move between devices.

    Attributes:
        name: as the environment variable has it.
        described: what it does, for the user.
        refuses: why it does not carry a plan; empty if it does.
    """

    name: str
    described: str
    refuses: Callable[[Plan], str]


TRANSPORTS = {
    "pulls": DeviceTransport(
        "pulls", "kernels copy out of the memory of the other ranks' devices", why_no_pulls
    ),
    "nccl": DeviceTransport(
        "nccl", "NCCL carries packed buffers from device to device", why_not_combined
    ),
    "mpi": DeviceTransport(
        "mpi", "MPI carries packed buffers from device to device", why_not_combined
    ),
    "staged": DeviceTransport(
        "staged", "tiles go by way of pinned memory of the host", lambda plan: ""
    ),
}
"""All of them, by their names, in the order in which they are tried."""


@dataclass(frozen=True)
class Chosen:
    """The transport of a program.

    Attributes:
        name: of it.
        refused: why those before it in the table are not taken, for the user.
    """

    name: str
    refused: tuple[str, ...] = ()

    @property
    def staged_because(self) -> str:
        """Why no plan goes from device to device; empty if some may."""
        return "; ".join(dict.fromkeys(self.refused)) if self.name == "staged" else ""


def use_transport(
    transport: Transport,
    engine: Engine,
    agreement: Agreement,
    plans: Sequence[PlanAndStorages],
    takes_part: bool = True,
) -> Chosen:
    """Let a program's plans go from device to device where they can; all ranks call it.

    Args:
        transport: of the rank.
        engine: of the plans.
        agreement: of the ranks.
        plans: with this rank's storages.
        takes_part: whether this rank runs the plans.

    Raises:
        ArgumentError: on all ranks; the variable of rank 0 names no transport.
    """
    asked = agreement.bcast(os.environ.get(VARIABLE, ""))
    if asked and asked not in TRANSPORTS:
        raise ArgumentError(f"{VARIABLE} is {asked!r}; there are {', '.join(TRANSPORTS)}.")
    if agreement.ranks == 1:
        return Chosen("staged", ("there is one rank",))
    if asked == "staged":
        return Chosen("staged", (f"{VARIABLE} is {asked!r}",))
    if not all(agreement.allgather(takes_part)):
        return Chosen("staged", ("some ranks take no part in the program",))
    order = [asked] if asked else _order(transport.device.kind, agreement, plans)
    refused: list[str] = []
    for name in order:
        why = _BEGINNINGS[name](transport, engine, agreement, plans)
        if not why:
            return Chosen(name, tuple(refused))
        refused.append(why)
    return Chosen("staged", tuple(refused or ["that was measured to be the fastest here"]))


def _order(kind: str, agreement: Agreement, plans: Sequence[PlanAndStorages]) -> list[str]:
    """In which order transports are tried: by what was measured, where that holds for all ranks."""
    nodes = agreement.allgather(_machine())
    order = list(_BEGINNINGS)
    figures = DeviceMachine.measured(kind) if agreement.rank == 0 else None
    if figures is not None and len(set(nodes)) == 1:
        order = by_figures(figures, [plan for plan, _ in plans])
    return agreement.bcast(order)  # type: ignore[no-any-return]


def by_figures(figures: DeviceMachine, plans: Sequence[Plan]) -> list[str]:
    """Transports that are faster than staging for some plans, the fastest first."""
    known = [name for name in figures.transports if name in TRANSPORTS]
    seconds = {name: figures.seconds(name, plans, TRANSPORTS[name].refuses) for name in known}
    found = sorted(seconds, key=lambda name: seconds[name])
    return [name for name in found if name != LAST and seconds[name] < seconds[LAST]]


def _use_pulls(
    transport: Transport, engine: Engine, agreement: Agreement, plans: Sequence[PlanAndStorages]
) -> str:
    refused = why_no_handles(transport.device, agreement)
    if not refused:
        held = agreement.allgather([tuple(ends) for _, ends in plans])
        table = pull_table([plan for plan, _ in plans], held, agreement.rank)
        transport.use_pulls(engine.meeting, table)
    return refused


def _use_groups(
    transport: Transport, engine: Engine, agreement: Agreement, plans: Sequence[PlanAndStorages]
) -> str:
    emulated = KINDS[transport.device.kind].emulation is not None
    if emulated and len(set(agreement.allgather(_machine()))) > 1:
        return "the ranks are on several nodes, where an emulated NCCL has no way"
    group, why = device_groups.join(transport.device, agreement)
    if group:
        _use_messages(transport, engine, agreement, plans, group)
    return why


def _use_mpi(
    transport: Transport, engine: Engine, agreement: Agreement, plans: Sequence[PlanAndStorages]
) -> str:
    why = next(filter(None, agreement.allgather(why_mpi_is_blind(transport.device, engine))), "")
    if not why:
        _use_messages(transport, engine, agreement, plans, 0)
    return why


def _use_messages(
    transport: Transport,
    engine: Engine,
    agreement: Agreement,
    plans: Sequence[PlanAndStorages],
    group: int,
) -> None:
    named, held = [plan for plan, _ in plans], [ends for _, ends in plans]
    table = packed_table(named, held, agreement.rank, agreement.ranks)
    transport.use_messages(engine.meeting, engine.carrying, group, table)


_BEGINNINGS = {"pulls": _use_pulls, "nccl": _use_groups, "mpi": _use_mpi}


def why_mpi_is_blind(device: Device, engine: Engine) -> str:
    """Why MPI of this rank cannot be given addresses of a device; empty if it can."""
    told = os.environ.get(MPI_VARIABLE)
    emulated = KINDS[device.kind].emulation is not None
    if told == "aware":
        if emulated and os.environ.get("DISTSPMD_EMULATED_GUARD", "1") != "0":
            return "the memory of the emulated device is guarded (DISTSPMD_EMULATED_GUARD)"
        return ""
    if told:
        return f"{MPI_VARIABLE} is {told!r}"
    by_cray = os.environ.get("MPICH_GPU_SUPPORT_ENABLED") == "1"
    if not emulated and (by_cray or engine.mpi_knows_cuda):
        return ""
    return "MPI does not say that it knows the memory of devices"


def why_no_handles(device: Device, agreement: Agreement) -> str:
    """Why ranks cannot open each other's memory; all ranks call it, and try it; empty if they can.

    Only ranks of one machine try: a handle means nothing on another one.
    """
    nodes = agreement.allgather(_machine())
    if len(set(nodes)) > 1:
        return "the ranks are on several nodes"
    try:
        address = device.allocate(1 << 12)
    except DeviceError:  # which whoever needs more memory raises, on all ranks
        address = 0
    handle = device.export(address) if address else None
    handles = agreement.allgather(None if handle is None else handle.tobytes())
    others = [handles[rank] for rank in range(agreement.ranks) if rank != agreement.rank]
    opened = all(
        one is not None and device.can_open(np.frombuffer(one, np.uint8)) for one in others
    )
    everywhere = agreement.allgather(opened)
    if address:
        device.free(address)
    if all(everywhere):
        return ""
    rank = everywhere.index(False)
    return f"rank {rank} cannot open the memory of the other ranks' devices"


def _machine() -> str:
    """What is the same on all processes of a machine that is running, and on no other one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return os.uname().nodename
