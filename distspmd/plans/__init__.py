"""What moves, at which price, and the proof: redistributions, plans, cost, simulator, verifier.

What a solver is made of is public; docs/plugins.md has one. It is imported when it is first used.

May import `distspmd.layouts` and whatever that may import; no DaCe, no MPI.
"""

from typing import TYPE_CHECKING

from distspmd.lazy import lazy_names

if TYPE_CHECKING:
    from distspmd.plans.collectives import StepKind
    from distspmd.plans.machine import Machine
    from distspmd.plans.messages import Message
    from distspmd.plans.plan import Plan, Step
    from distspmd.plans.redistribution import Redistribution
    from distspmd.plans.simulator import simulate
    from distspmd.plans.solver import Refusal, Solver

__all__ = [
    "Machine",
    "Message",
    "Plan",
    "Redistribution",
    "Refusal",
    "Solver",
    "Step",
    "StepKind",
    "simulate",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Machine": "distspmd.plans.machine",
        "Message": "distspmd.plans.messages",
        "Plan": "distspmd.plans.plan",
        "Redistribution": "distspmd.plans.redistribution",
        "Refusal": "distspmd.plans.solver",
        "Solver": "distspmd.plans.solver",
        "Step": "distspmd.plans.plan",
        "StepKind": "distspmd.plans.collectives",
        "simulate": "distspmd.plans.simulator",
    },
)
