"""The record of a compiled program, which lies beside its library and travels to all ranks.

Ranks that load a program read it without DaCe.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # programs of the host need nothing of it
    from distspmd.runtime.devices.kinds import DeviceBuild

RECORD = "program.json"


@dataclass(frozen=True)
class CompiledArgument:
    """One argument of the compiled function: an array, or (with no shape) a number by value."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""


@dataclass(frozen=True)
class Build:
    """A compiled program: its library, and how to call the functions in it."""

    name: str
    library: str
    arguments: tuple[CompiledArgument, ...]
    initial: tuple[str, ...]
    """Symbols that the initialisation takes, in order."""
    positional: tuple[str, ...]
    """Arguments of the user's program in the order of its signature."""
    tiles: tuple[str, ...]
    """Arguments that are the storage of tiles, which whoever calls the program provides."""
    ends: tuple[tuple[str, str], ...]
    """Of each distributed memlet the containers that it moves from and to."""
    device: DeviceBuild | None = None
    """Of a program that runs on a device."""

    def save(self, folder: Path) -> None:
        """Write the record beside the library."""
        fields = {**asdict(self), "library": os.path.relpath(self.library, folder)}
        (folder / RECORD).write_text(json.dumps(fields))

    @classmethod
    def load(cls, folder: Path) -> Build:
        """Read the record of a finished build."""
        fields = json.loads((folder / RECORD).read_text())
        arguments = tuple(
            CompiledArgument(a["name"], a["dtype"], tuple(a["shape"]), tuple(a["strides"]))
            for a in fields["arguments"]
        )
        device = fields["device"]
        if device is not None:
            from distspmd.runtime.devices.kinds import DeviceBuild

            spaces = tuple((label, place, remark) for label, place, remark in device["spaces"])
            named = tuple(device["arguments"]), tuple(device["anywhere"])
            of_kind = device["kind"], device["library"]
            device = DeviceBuild(*of_kind, *named, device["products"], device["reduces"], spaces)
        return cls(
            fields["name"],
            str(folder / fields["library"]),
            arguments,
            tuple(fields["initial"]),
            tuple(fields["positional"]),
            tuple(fields["tiles"]),
            tuple((source, target) for source, target in fields["ends"]),
            device,
        )
