"""Tasklets that the host runs and that queue work on memory of a device."""

from __future__ import annotations

from typing import Any

from dace import dtypes
from dace.properties import Property, make_properties

from distspmd.dace_compat.tasklet_kinds import OwnTasklet


@make_properties
class DeviceCall(OwnTasklet):
    """A call of a library on memory of the device, or of a kernel of our own.

    Its code names ``__dace_current_stream``, so DaCe leaves it on the stream of the program.
    """

    remark = Property(dtype=str, default="", desc="What it calls, for the user")
    definition = Property(dtype=str, default="", desc="CUDA of its kernel; empty for a library")

    def __init__(
        self, label: str = "call", remark: str = "", definition: str = "", **keywords: Any
    ) -> None:
        given = {"language": dtypes.Language.CPP, "side_effects": True}
        super().__init__(label, **{**given, **keywords})
        self.remark, self.definition = remark, definition
