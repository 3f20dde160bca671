"""distspmd: partition array programs over MPI ranks, from a schedule of iteration spaces.

What needs DaCe or a compiler is imported when it is first used: layouts, plans and the simulator
do without.

Under MPI, an exception that nobody catches on one rank ends all ranks, as soon as this is imported.
"""

from __future__ import annotations

import gc
import importlib
from typing import TYPE_CHECKING, Any

from distspmd.dace_compat.at_import import follow_dace
from distspmd.errors import (
    ArgumentError,
    CacheError,
    CheckError,
    CompilationError,
    DeviceError,
    DisagreementError,
    DistSPMDError,
    LaunchError,
    LayoutError,
    MeshError,
    NoSchedule,
    NoSolver,
    PlanError,
    PluginError,
    ProgramWarning,
    ResultElsewhere,
    ScheduleError,
    ScheduleWarning,
    ToolchainError,
    UnsupportedProgram,
)
from distspmd.runtime.launch import mpi_settings
from distspmd.runtime.watch import watchdog
from distspmd.runtime.watch.errors_together import end_all_on_exception

if TYPE_CHECKING:
    from distspmd.analysis.node_accesses import NodeAccesses, node_accesses
    from distspmd.api.partitioned_function import PartitionedFunction, program
    from distspmd.api.steps import compile, iteration_spaces, lower, search
    from distspmd.checking.check import check
    from distspmd.checking.verification import verify
    from distspmd.driver.handle import Handle
    from distspmd.driver.ranks import Ranks
    from distspmd.driver.session import ranks, start, stop
    from distspmd.execution.program import Program
    from distspmd.execution.symbolic_program import SymbolicProgram
    from distspmd.explanation import explain
    from distspmd.frontend.from_numpy.parallel_map import map
    from distspmd.layouts.dealing import Cyclic, cyclic
    from distspmd.layouts.dimension import Partial, Split
    from distspmd.layouts.layout import Layout
    from distspmd.layouts.mesh import Mesh
    from distspmd.lowering import Lowering
    from distspmd.planning.planner import plan
    from distspmd.plans.machine import Machine
    from distspmd.plans.redistribution import Redistribution
    from distspmd.plans.simulator import simulate
    from distspmd.runtime.allocation import launched_ranks
    from distspmd.runtime.calls.missing_result import Elsewhere
    from distspmd.runtime.devices.arrays import DeviceArray, DeviceStream
    from distspmd.runtime.host.host_functions import host
    from distspmd.runtime.launch.mpiexec import launch
    from distspmd.runtime.redistribution.redistribute import allocate, redistribute
    from distspmd.saved.programs import load
    from distspmd.schedule import OnMesh, Patterns, Schedule
    from distspmd.scheduling.found import Found
    from distspmd.scheduling.prediction import predict
    from distspmd.symbolic_lowering import SymbolicLowering

__version__ = "0.1.0"  # the only place; pyproject.toml reads it from here

__all__ = [
    "ArgumentError",
    "CacheError",
    "CheckError",
    "CompilationError",
    "Cyclic",
    "DeviceArray",
    "DeviceError",
    "DeviceStream",
    "DisagreementError",
    "DistSPMDError",
    "Elsewhere",
    "Found",
    "Handle",
    "LaunchError",
    "Layout",
    "LayoutError",
    "Lowering",
    "Machine",
    "Mesh",
    "MeshError",
    "NoSchedule",
    "NoSolver",
    "NodeAccesses",
    "OnMesh",
    "Partial",
    "PartitionedFunction",
    "Patterns",
    "PlanError",
    "PluginError",
    "Program",
    "ProgramWarning",
    "Ranks",
    "Redistribution",
    "ResultElsewhere",
    "Schedule",
    "ScheduleError",
    "ScheduleWarning",
    "Split",
    "SymbolicLowering",
    "SymbolicProgram",
    "ToolchainError",
    "UnsupportedProgram",
    "allocate",
    "check",
    "compile",
    "cyclic",
    "explain",
    "host",
    "iteration_spaces",
    "launch",
    "launched_ranks",
    "load",
    "lower",
    "map",
    "node_accesses",
    "plan",
    "predict",
    "program",
    "ranks",
    "redistribute",
    "search",
    "simulate",
    "start",
    "stop",
    "verify",
]

_LATER = {
    "Cyclic": "distspmd.layouts.dealing",
    "DeviceArray": "distspmd.runtime.devices.arrays",
    "DeviceStream": "distspmd.runtime.devices.arrays",
    "Handle": "distspmd.driver.handle",
    "Ranks": "distspmd.driver.ranks",
    "ranks": "distspmd.driver.session",
    "start": "distspmd.driver.session",
    "stop": "distspmd.driver.session",
    "Elsewhere": "distspmd.runtime.calls.missing_result",
    "Found": "distspmd.scheduling.found",
    "Layout": "distspmd.layouts.layout",
    "Lowering": "distspmd.lowering",
    "Machine": "distspmd.plans.machine",
    "Mesh": "distspmd.layouts.mesh",
    "NodeAccesses": "distspmd.analysis.node_accesses",
    "OnMesh": "distspmd.schedule",
    "Partial": "distspmd.layouts.dimension",
    "PartitionedFunction": "distspmd.api.partitioned_function",
    "Patterns": "distspmd.schedule",
    "Program": "distspmd.execution.program",
    "Redistribution": "distspmd.plans.redistribution",
    "Schedule": "distspmd.schedule",
    "Split": "distspmd.layouts.dimension",
    "SymbolicLowering": "distspmd.symbolic_lowering",
    "SymbolicProgram": "distspmd.execution.symbolic_program",
    "allocate": "distspmd.runtime.redistribution.redistribute",
    "check": "distspmd.checking.check",
    "compile": "distspmd.api.steps",
    "cyclic": "distspmd.layouts.dealing",
    "explain": "distspmd.explanation",
    "host": "distspmd.runtime.host.host_functions",
    "iteration_spaces": "distspmd.api.steps",
    "launch": "distspmd.runtime.launch.mpiexec",
    "launched_ranks": "distspmd.runtime.allocation",
    "load": "distspmd.saved.programs",
    "lower": "distspmd.api.steps",
    "map": "distspmd.frontend.from_numpy.parallel_map",
    "node_accesses": "distspmd.analysis.node_accesses",
    "plan": "distspmd.planning.planner",
    "predict": "distspmd.scheduling.prediction",
    "program": "distspmd.api.partitioned_function",
    "redistribute": "distspmd.runtime.redistribution.redistribute",
    "search": "distspmd.api.steps",
    "simulate": "distspmd.plans.simulator",
    "verify": "distspmd.checking.verification",
}
"""Names whose modules most ranks do not need, and are imported at the first use."""


def __getattr__(name: str) -> Any:
    if name in ("frontend", "plans", "saved", "solvers"):
        return importlib.import_module(f"distspmd.{name}")
    if name not in _LATER:
        raise AttributeError(f"module 'distspmd' has no attribute {name!r}")
    collects = gc.isenabled()
    gc.disable()  # nothing of what is made is garbage, and to look for some takes a twentieth
    try:
        found = globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
    finally:
        if collects:
            gc.enable()
    return found


mpi_settings.set_before_init()
end_all_on_exception()
follow_dace()
watchdog.start_on_ranks()
