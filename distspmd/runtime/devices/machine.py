"""What copies and messages between devices cost, as it was measured on a host, and what follows.

The figures decide by which transport each plan goes (runtime/devices/transports.py), and how large
the pieces are in which it passes through the memory of the host.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from distspmd.cache.folders import cache_folder
from distspmd.plans.plan import Plan

LAST = "staged"
"""The transport that carries all that the others refuse."""

Figures = Sequence[float]
"""Of a transport, seconds of a step without bytes, of a byte, and of each further message."""

LEAST_PORTION, MOST_PORTION = 1 << 16, 1 << 30
"""Bytes of a piece: smaller ones are mostly overhead, and MPI counts in int."""


@dataclass(frozen=True)
class DeviceMachine:
    """Devices of one kind on this host; what is assumed of them where nothing was measured.

    Attributes:
        copy: seconds a byte is copied within a device.
        to_host: likewise, to pinned memory of the host.
        to_device: likewise, back.
        transports: figures by name, between ranks of a node.
        refused: by name, why a transport cannot be used here.
        far: as ``transports``, between ranks of several nodes; empty where it was not measured.
    """

    copy: float = 1e-12
    to_host: float = 4e-11
    to_device: float = 4e-11
    transports: Mapping[str, Figures] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    far: Mapping[str, Figures] = field(default_factory=dict)

    @classmethod
    def measured(cls, kind: str) -> DeviceMachine | None:
        """What was measured on this host for a kind of device; None if nothing was."""
        try:
            found = cls(**_read()[kind])
            ways = (*found.transports.values(), *found.far.values())
            known = all(len(way) == 3 for way in ways) and (found.transports or found.far)
        except (KeyError, TypeError):  # nothing, or of another version
            return None
        return found if known else None

    def store(self, kind: str) -> Path:
        """Keep it as that of this host, beside what was measured between nodes or within one."""
        known = DeviceMachine.measured(kind)
        near = known.transports if known and not self.transports else self.transports
        far = known.far if known and not self.far else self.far
        kept = {**asdict(self), "transports": dict(near), "far": dict(far)}
        file = measurements()
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({**_read(), kind: kept}, indent=2) + "\n")
        return draft.replace(file)

    def ways(self, several_nodes: bool) -> Mapping[str, Figures]:
        """What was measured between ranks of one node, or of several."""
        return self.far if several_nodes else self.transports

    def seconds(
        self, name: str, plan: Plan, refuses: Callable[[Plan], str], several_nodes: bool = False
    ) -> float:
        """What a run of a plan takes by a transport, or staged where that one refuses it."""
        way = self.ways(several_nodes)[LAST if refuses(plan) else name]
        step, byte, message = way
        most = max((plan.received(rank) for rank in range(plan.ranks)), default=0)
        further = sum(max(0, most_messages(plan, n) - 1) for n in range(len(plan.steps)))
        return step * len(plan.steps) + byte * most + message * further

    def portion(self, plan: Plan, several_nodes: bool = False) -> int:
        """Bytes of the pieces in which a plan best passes through the memory of the host.

        Of n bytes in pieces of p, packing and unpacking of one piece are not hidden behind
        messages, and each piece costs one: p (to_host + to_device) + n / p * message is least.
        """
        message = self.ways(several_nodes).get(LAST, (0.0, 0.0, 2e-5))[2]
        most = max((sent_bytes(plan, n) for n in range(len(plan.steps))), default=0)
        best = math.sqrt(most * message / (self.to_host + self.to_device))
        return int(min(max(best, LEAST_PORTION), MOST_PORTION))


def most_messages(plan: Plan, step: int) -> int:
    """Messages from other ranks that a rank gets in a step, at most."""
    table = plan.steps[step].table
    counts: dict[int, int] = {}
    for receiver in table.receivers[table.between].tolist():
        counts[receiver] = counts.get(receiver, 0) + 1
    return max(counts.values(), default=0)


def sent_bytes(plan: Plan, step: int) -> int:
    """Bytes that a rank sends to others in a step, at most."""
    table = plan.steps[step].table
    sent: dict[int, int] = {}
    senders, volumes = table.senders[table.between], table.volumes[table.between]
    for sender, volume in zip(senders.tolist(), volumes.tolist(), strict=True):
        sent[sender] = sent.get(sender, 0) + volume
    return max(sent.values(), default=0) * plan.itemsize


def measurements() -> Path:
    """The file of what was measured on this host."""
    return cache_folder() / f"devices-{platform.node() or 'unnamed'}.json"


def _read() -> dict[str, Any]:
    try:
        found = json.loads(measurements().read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
