"""Which transport moves the tiles of a program between devices: pulls inside a node, else staging.

A pull copies out of the memory of another rank's device, by CUDA's inter-process handles. Whether
the ranks of a program can do so is tried once, when the program is made ready; whether a plan can,
its table says; and whether the tiles of a call can, the ranks tell each other in that call.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from distspmd.errors import ArgumentError, DeviceError
from distspmd.plans.encoding import Storage
from distspmd.plans.plan import Plan
from distspmd.plans.pull_table import pull_table
from distspmd.runtime.agreement import Agreement
from distspmd.runtime.devices import Device, Transport
from distspmd.runtime.engine import Engine

VARIABLE = "DISTSPMD_DEVICE_TRANSPORT"
"""Environment variable with the transport of tiles between devices: ``pulls`` or ``staged``."""

_KINDS = ("pulls", "staged")


def use_pulls(
    transport: Transport,
    engine: Engine,
    agreement: Agreement,
    plans: Sequence[tuple[Plan, Sequence[Storage]]],
    takes_part: bool = True,
) -> str:
    """Let a program's plans be pulled where they can; all ranks call it.

    Args:
        transport: of the rank.
        engine: of the plans.
        agreement: of the ranks.
        plans: with this rank's storages.
        takes_part: whether this rank runs the plans.

    Returns:
        why no plan is pulled, for the user; empty if some may be.

    Raises:
        ArgumentError: on all ranks; the variable of rank 0 names no transport.
    """
    asked = agreement.bcast(os.environ.get(VARIABLE) or _KINDS[0])
    if asked not in _KINDS:
        raise ArgumentError(f"{VARIABLE} is {asked!r}; there are {', '.join(_KINDS)}.")
    if agreement.ranks == 1:
        return "there is one rank"
    if asked != _KINDS[0]:
        return f"{VARIABLE} is {asked!r}"
    if not all(agreement.allgather(takes_part)):
        return "some ranks take no part in the program"
    refused = why_no_handles(transport.device, agreement)
    if refused:
        return refused
    held = agreement.allgather([tuple(ends) for _, ends in plans])
    table = pull_table([plan for plan, _ in plans], held, agreement.rank)
    transport.use_pulls(engine.meeting, table)
    return ""


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
