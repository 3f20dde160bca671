"""distspmd: partition array programs over MPI ranks, from a schedule of iteration spaces.

What needs DaCe is imported when it is first used: the layouts, plans and the simulator do without.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from distspmd.layout import Layout
from distspmd.mesh import Mesh
from distspmd.planning import plan
from distspmd.simulator import simulate
from distspmd.verifier import verify

if TYPE_CHECKING:
    from distspmd.pipeline import iteration_spaces, lower
    from distspmd.program import Program, compile

__all__ = [
    "Layout",
    "Mesh",
    "Program",
    "compile",
    "iteration_spaces",
    "lower",
    "plan",
    "simulate",
    "verify",
]

_WITH_DACE = {
    "Program": "distspmd.program",
    "compile": "distspmd.program",
    "iteration_spaces": "distspmd.pipeline",
    "lower": "distspmd.pipeline",
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_DACE:
        raise AttributeError(f"module 'distspmd' has no attribute {name!r}")
    return getattr(importlib.import_module(_WITH_DACE[name]), name)
