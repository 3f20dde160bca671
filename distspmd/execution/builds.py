"""From a lowered SDFG to a compiled program, by whoever has the SDFG, for the host or a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distspmd.codegen.build_record import Build
from distspmd.errors import ScheduleError
from distspmd.lowering import Lowering, lowering_of

if TYPE_CHECKING:
    from dace import SDFG


def build_for(
    sdfg: SDFG | None, ranks: int, arithmetic: str = "vector", device: str | None = None
) -> tuple[Build, Lowering]:
    """Compile a lowered SDFG for a number of ranks; with the record of its lowering.

    Raises:
        ScheduleError: the SDFG is not lowered, or its grids need more ranks.
        ArgumentError: an unknown kind of arithmetic, or of device.
        CompilationError: with the compiler's message.
        ToolchainError: the compiler or the BLAS is missing.
    """
    lowering: Lowering | None = lowering_of(sdfg)
    if sdfg is None or lowering is None:
        raise ScheduleError(
            f"{getattr(sdfg, 'name', sdfg)!r} is not a lowered SDFG. "
            "Call distspmd.lower(sdfg, schedule), and pass what it returns; another process saves "
            "that with lowering.save(...), and distspmd.load(...) reads it."
        )
    held = {name: layout.ranks for name, layout in lowering.argument_layouts.items()}
    if ranks < max(held.values(), default=1):
        name = max(held, key=held.__getitem__)
        raise ScheduleError(
            f"{name!r} of {sdfg.name!r} is held in {lowering.argument_layouts[name]} by "
            f"{held[name]} ranks, but the communicator has {ranks}. Start at least "
            f"{lowering.ranks} ranks (mpiexec -n {lowering.ranks}), or write a layout on fewer."
        )
    if ranks < lowering.ranks:
        largest = max(lowering.spaces, key=lambda space: space.mesh.size)
        raise ScheduleError(
            f"the schedule gives the space {largest.name!r} the parts {largest.parts}, "
            f"{largest.mesh.size} ranks, but the communicator has {ranks}. Start at least "
            f"{lowering.ranks} ranks (mpiexec -n {lowering.ranks}), or give fewer parts."
        )
    if device:
        from distspmd.codegen.build_device import build_device_program

        return build_device_program(sdfg, lowering, ranks, arithmetic, device), lowering
    from distspmd.codegen.build import build_program

    return build_program(sdfg, lowering, ranks, arithmetic), lowering
