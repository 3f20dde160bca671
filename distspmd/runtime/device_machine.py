"""What copies and messages between devices of this host cost, as it was measured, and what follows.

The figures decide which transport the ranks of a program try first (runtime/device_transports.py).
"""

from __future__ import annotations

import json
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


@dataclass(frozen=True)
class DeviceMachine:
    """Devices of one kind on this host.

    Attributes:
        copy: seconds a byte is copied within a device.
        to_host: likewise, to pinned memory of the host.
        to_device: likewise, back.
        transports: by name, seconds of a step without bytes, and seconds a byte.
        refused: by name, why a transport cannot be used here.
    """

    copy: float
    to_host: float
    to_device: float
    transports: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def measured(cls, kind: str) -> DeviceMachine | None:
        """What was measured on this host for a kind of device; None if nothing was."""
        found: Any = _read().get(kind)
        try:
            return None if LAST not in found["transports"] else cls(**found)
        except (KeyError, TypeError):  # nothing, or of another version
            return None

    def store(self, kind: str) -> Path:
        """Keep it as that of this host; the file."""
        file = measurements()
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({**_read(), kind: asdict(self)}, indent=2) + "\n")
        return draft.replace(file)

    def seconds(self, name: str, plans: Sequence[Plan], refuses: Callable[[Plan], str]) -> float:
        """What one run of each of some plans takes, where a transport carries those that it can."""
        found = 0.0
        for plan in plans:
            step, byte = self.transports[LAST if refuses(plan) else name]
            most = max((plan.received(rank) for rank in range(plan.ranks)), default=0)
            found += step * len(plan.steps) + byte * most
        return found


def measurements() -> Path:
    """The file of what was measured on this host."""
    return cache_folder() / f"devices-{platform.node() or 'unnamed'}.json"


def _read() -> dict[str, Any]:
    try:
        found = json.loads(measurements().read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
