"""distspmd: partition array programs over MPI ranks, from a schedule of iteration spaces.

The names here are those that most programs need. Further public names are in its packages:
``layouts`` (meshes and layouts), ``schedule``, ``plans`` (machines, plans, solvers), ``errors``,
``runtime`` (arrays of devices, tiles in shared memory), ``driver``, ``execution``, ``lowering``,
``scheduling`` (results of a search), ``analysis`` (library nodes of others), ``saved``,
``frontend`` (PyTorch, ONNX) and ``solvers``.

A module is imported when a name of it is first used. Under MPI, an exception that nobody catches
on one rank ends all ranks, as soon as this package is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from distspmd.dace_compat.at_import import follow_dace
from distspmd.errors import DistSPMDError
from distspmd.lazy import lazy_names
from distspmd.runtime.launch import mpi_settings
from distspmd.runtime.watch import watchdog
from distspmd.runtime.watch.errors_together import end_all_on_exception

if TYPE_CHECKING:
    from distspmd.api.partitioned_function import program
    from distspmd.api.steps import compile, iteration_spaces, lower, search
    from distspmd.checking.check import check
    from distspmd.checking.verification import verify
    from distspmd.driver.session import ranks, start, stop
    from distspmd.explanation import explain
    from distspmd.frontend.from_numpy.parallel_map import map
    from distspmd.planning.planner import plan
    from distspmd.runtime.host.host_functions import host
    from distspmd.runtime.launch.mpiexec import launch
    from distspmd.runtime.redistribution.redistribute import redistribute
    from distspmd.saved.programs import load
    from distspmd.schedule import Schedule
    from distspmd.scheduling.prediction import predict

__version__ = "0.1.0"  # the only place; pyproject.toml reads it from here

__all__ = [
    "DistSPMDError",
    "Schedule",
    "check",
    "compile",
    "explain",
    "host",
    "iteration_spaces",
    "launch",
    "load",
    "lower",
    "map",
    "plan",
    "predict",
    "program",
    "ranks",
    "redistribute",
    "search",
    "start",
    "stop",
    "verify",
]

_PACKAGES = """
    analysis api driver errors execution frontend layouts lowering plans runtime saved schedule
    scheduling solvers symbolic_lowering
"""

__getattr__ = lazy_names(
    __name__,
    {
        "Schedule": "distspmd.schedule",
        "check": "distspmd.checking.check",
        "compile": "distspmd.api.steps",
        "explain": "distspmd.explanation",
        "host": "distspmd.runtime.host.host_functions",
        "iteration_spaces": "distspmd.api.steps",
        "launch": "distspmd.runtime.launch.mpiexec",
        "load": "distspmd.saved.programs",
        "lower": "distspmd.api.steps",
        "map": "distspmd.frontend.from_numpy.parallel_map",
        "plan": "distspmd.planning.planner",
        "predict": "distspmd.scheduling.prediction",
        "program": "distspmd.api.partitioned_function",
        "ranks": "distspmd.driver.session",
        "redistribute": "distspmd.runtime.redistribution.redistribute",
        "search": "distspmd.api.steps",
        "start": "distspmd.driver.session",
        "stop": "distspmd.driver.session",
        "verify": "distspmd.checking.verification",
        **{name: f"distspmd.{name}" for name in _PACKAGES.split()},
    },
)

mpi_settings.set_before_init()
end_all_on_exception()
follow_dace()
watchdog.start_on_ranks()
