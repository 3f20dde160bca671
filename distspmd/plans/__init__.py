"""What moves, at which price, and the proof: redistributions, plans, cost, simulator, verifier.

What a solver is made of is public; docs/plugins.md has one. It is imported when it is first used.

May import `distspmd.layouts` and whatever that may import; no DaCe, no MPI.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distspmd.plans.collectives import StepKind
    from distspmd.plans.messages import Message
    from distspmd.plans.plan import Plan, Step
    from distspmd.plans.solver import Refusal, Solver

__all__ = ["Message", "Plan", "Refusal", "Solver", "Step", "StepKind"]

_HOMES = {
    "Message": "messages",
    "Plan": "plan",
    "Refusal": "solver",
    "Solver": "solver",
    "Step": "plan",
    "StepKind": "collectives",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'distspmd.plans' has no attribute {name!r}")
    home = importlib.import_module(f"distspmd.plans.{_HOMES[name]}")
    found = globals()[name] = getattr(home, name)
    return found
