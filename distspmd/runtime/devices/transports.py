"""Which transport moves the tiles of a program between devices.

There are four, and each plan has one of them. Which the ranks of a program can use is tried once,
when the program is made ready; whether the tiles of a call lie on devices, the ranks tell each
other in that call. What no kernel can pack is moved by way of mirrors (device/transport.hpp).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from distspmd.errors import ArgumentError, DeviceError
from distspmd.plans.encoding import Storage
from distspmd.plans.packed_table import MOST_BYTES, packed_table
from distspmd.plans.plan import Plan
from distspmd.plans.pull_table import pull_table, why_no_pulls, why_not_combined
from distspmd.runtime.compilers import cuda_toolkit
from distspmd.runtime.devices import groups as device_groups
from distspmd.runtime.devices.kinds import KINDS, Device
from distspmd.runtime.devices.machine import LAST, DeviceMachine
from distspmd.runtime.devices.transport import Transport
from distspmd.runtime.engine.engine import Engine
from distspmd.runtime.watch.agreement import Agreement

VARIABLE = "DISTSPMD_DEVICE_TRANSPORT"
"""Environment variable with the name of the transport of tiles between devices."""

MPI_VARIABLE = "DISTSPMD_DEVICE_MPI"
"""Environment variable: whether MPI knows the memory of devices, ``aware`` or ``staged``."""

PIECE_VARIABLE = "DISTSPMD_DEVICE_PIECE_BYTES"
"""Environment variable: bytes of the pieces in which tiles pass through the host's memory."""

NODE_VARIABLE = "DISTSPMD_EMULATED_NODE_RANKS"
"""Environment variable: how many ranks a node is taken to have, on emulated devices."""

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
        "staged",
        "tiles go through pinned memory of the host, and one piece is packed while another travels",
        why_not_combined,
    ),
}
"""All of them, by their names, in the order in which they are tried."""


@dataclass(frozen=True)
class Chosen:
    """The transports of a program.

    Attributes:
        of_plans: of each plan.
        refused: by name, why a transport is not used by plans that it could carry.
        portions: of each plan, bytes of the pieces in which it passes through the host's memory; 0
            for one that does not. Empty where no plan does.
    """

    of_plans: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    portions: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The transports of all plans, in the order of the table."""
        return ", ".join(name for name in TRANSPORTS if name in self.of_plans) or LAST

    @property
    def staged_because(self) -> str:
        """Why no plan goes from device to device; empty if some may."""
        return "; ".join(dict.fromkeys(self.refused.values())) if self.name == LAST else ""


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
        ArgumentError: on all ranks; a variable of rank 0 names no transport, or no number.
    """
    asked, piece = agreement.bcast((os.environ.get(VARIABLE, ""), os.environ.get(PIECE_VARIABLE)))
    if asked and asked not in TRANSPORTS:
        raise ArgumentError(f"{VARIABLE} is {asked!r}; there are {', '.join(TRANSPORTS)}.")
    if piece is not None and not (piece.isdigit() and int(piece)):
        raise ArgumentError(f"{PIECE_VARIABLE} is {piece!r}; it is a number of bytes from 1 on.")
    if not all(agreement.allgather(takes_part)):
        why = "some ranks take no part in the program"
        return Chosen((LAST,) * len(plans), {LAST: why})
    named = [plan for plan, _ in plans]
    orders, portions, refused = _orders(transport.device.kind, agreement, named, asked)

    def can_use(name: str) -> bool:
        if name not in refused:
            refused[name] = _WHY_NOT[name](transport, engine, agreement)
        return not refused[name]

    chosen = tuple(
        next((n for n in order if not TRANSPORTS[n].refuses(plan) and can_use(n)), LAST)
        for plan, order in zip(named, orders, strict=True)
    )
    portions = [int(piece or most) for most in portions]
    staged = tuple(n if name == LAST else 0 for name, n in zip(chosen, portions, strict=True))
    for name in dict.fromkeys(chosen):
        uses = [own == name for own in chosen]
        if name == "pulls":
            _use_pulls(transport, engine, agreement, plans, uses)
        else:
            pieces = staged if name == LAST else [MOST_BYTES * own for own in uses]
            _use_messages(transport, engine, agreement, plans, name, pieces)
    return Chosen(chosen, {name: why for name, why in refused.items() if why}, staged)


def _orders(
    kind: str, agreement: Agreement, plans: Sequence[Plan], asked: str
) -> tuple[list[list[str]], list[int], dict[str, str]]:
    """In which order each plan tries transports; bytes of its pieces; why some are not tried.

    By what was measured, where that is so for all ranks: on one node, or between several.
    """
    several = is_on_several_nodes(kind, agreement)
    refused: dict[str, str] = {}
    if agreement.rank == 0:
        measured = DeviceMachine.measured(kind)
        figures = measured or DeviceMachine()
        portions = [figures.portion(plan, several) for plan in plans]
        orders = [list(_WHY_NOT)] * len(plans)
        if agreement.ranks == 1:
            orders, refused = [[]] * len(plans), {LAST: "there is one rank"}
        elif asked:
            orders = [[asked]] * len(plans)
            refused = {LAST: f"{VARIABLE} is {asked!r}"} if asked == LAST else {}
        elif measured is not None and LAST in measured.ways(several):
            orders = [by_figures(measured, plan, several) for plan in plans]
            refused = {} if any(orders) else {LAST: "that was measured to be the fastest here"}
        found = orders, portions, refused
    else:
        found = [], [], refused
    return agreement.bcast(found)  # type: ignore[no-any-return]


def by_figures(figures: DeviceMachine, plan: Plan, several_nodes: bool = False) -> list[str]:
    """Transports that are faster than staging for a plan, the fastest first."""
    known = [name for name in figures.ways(several_nodes) if name in TRANSPORTS]
    seconds = {
        name: figures.seconds(name, plan, TRANSPORTS[name].refuses, several_nodes) for name in known
    }
    found = sorted(seconds, key=lambda name: seconds[name])
    return [name for name in found if name != LAST and seconds[name] < seconds[LAST]]


def _use_pulls(
    transport: Transport,
    engine: Engine,
    agreement: Agreement,
    plans: Sequence[PlanAndStorages],
    uses: Sequence[bool],
) -> None:
    held = agreement.allgather([tuple(ends) for _, ends in plans])
    table = pull_table([plan for plan, _ in plans], held, agreement.rank, uses)
    transport.use_pulls(engine.meeting, table)


def _use_messages(
    transport: Transport,
    engine: Engine,
    agreement: Agreement,
    plans: Sequence[PlanAndStorages],
    name: str,
    portions: Sequence[int],
) -> None:
    """Let packed messages carry those plans of which pieces have some bytes."""
    named, held = [plan for plan, _ in plans], [ends for _, ends in plans]
    table = packed_table(named, held, agreement.rank, agreement.ranks, portions)
    group = device_groups.join(transport.device, agreement)[0] if name == "nccl" else 0
    transport.use_messages(engine.meeting, engine.by_mpi, table, group, pinned=name == LAST)


def _why_no_pulls(transport: Transport, engine: Engine, agreement: Agreement) -> str:
    return why_no_handles(transport.device, agreement)


def _why_no_groups(transport: Transport, engine: Engine, agreement: Agreement) -> str:
    emulated = KINDS[transport.device.kind].emulation is not None
    if emulated and len(set(agreement.allgather(_host()))) > 1:
        return "the ranks are on several nodes, where an emulated NCCL has no way"
    return device_groups.join(transport.device, agreement)[1]


def _why_no_mpi(transport: Transport, engine: Engine, agreement: Agreement) -> str:
    blind = agreement.allgather(why_mpi_is_blind(transport.device, engine))
    return next(filter(None, blind), "")


_WHY_NOT = {"pulls": _why_no_pulls, "nccl": _why_no_groups, "mpi": _why_no_mpi}
"""Why ranks cannot use a transport, which they try together; in the order in which plans do."""


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
    if is_on_several_nodes(device.kind, agreement):
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


def is_on_several_nodes(kind: str, agreement: Agreement) -> bool:
    """Whether the ranks of devices of a kind are on several nodes; all ranks call it."""
    ranks = os.environ.get(NODE_VARIABLE, "")
    part = cuda_toolkit.rank_on_node() // int(ranks) if KINDS[kind].emulation and ranks else 0
    return len(set(agreement.allgather((_host(), part)))) > 1


def _host() -> str:
    """What is the same on all processes of a machine that is running, and on no other one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return os.uname().nodename
