"""distspmd: partition array programs over MPI ranks, from a schedule of iteration spaces.

What needs DaCe or a compiler is imported when it is first used: layouts, plans and the simulator
do without.

Under MPI, an exception that nobody catches on one rank ends all ranks, as soon as this is imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from distspmd.errors import DistSPMDError
from distspmd.extensions import extend_dace
from distspmd.layout import Layout
from distspmd.mesh import Mesh
from distspmd.planning import plan
from distspmd.runtime.agreement import end_all_on_exception
from distspmd.simulator import simulate
from distspmd.verifier import verify

if TYPE_CHECKING:
    from distspmd.checker import check
    from distspmd.explanation import explain
    from distspmd.pipeline import iteration_spaces
    from distspmd.program import Program
    from distspmd.runtime.tiles import allocate, redistribute
    from distspmd.symbolic import SymbolicLowering, lower
    from distspmd.symbolic_program import SymbolicProgram, compile

__all__ = [
    "DistSPMDError",
    "Layout",
    "Mesh",
    "Program",
    "SymbolicLowering",
    "SymbolicProgram",
    "allocate",
    "check",
    "compile",
    "explain",
    "iteration_spaces",
    "lower",
    "plan",
    "redistribute",
    "simulate",
    "verify",
]

_LATER = {
    "Program": "distspmd.program",
    "SymbolicLowering": "distspmd.symbolic",
    "SymbolicProgram": "distspmd.symbolic_program",
    "allocate": "distspmd.runtime.tiles",
    "check": "distspmd.checker",
    "compile": "distspmd.symbolic_program",
    "explain": "distspmd.explanation",
    "iteration_spaces": "distspmd.pipeline",
    "lower": "distspmd.symbolic",
    "redistribute": "distspmd.runtime.tiles",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'distspmd' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)


extend_dace()
end_all_on_exception()
