"""What a plan costs on a machine: latency and bandwidth of the busiest rank of each step.

The steps are those that run: large reductions are split first. The bytes are those that go between
ranks in them, which the runtime counts, and not the fewest that any plan must bring to the ranks;
those are the :class:`~distspmd.plans.redistribution.Bound`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from distspmd.plans.machine import Machine
from distspmd.plans.plan import Plan, Step
from distspmd.plans.rewrites.split_reductions import split_reductions


@dataclass(frozen=True, slots=True)
class Cost:
    """Predicted time of a plan, and the bytes that decide it."""

    seconds: float
    nbytes: int
    """Bytes that all ranks together receive as the steps are carried out."""


def cost(plan: Plan, machine: Machine) -> Cost:
    """Cost of a plan on a machine (alpha-beta model)."""
    steps = split_reductions(plan).steps
    seconds = sum(_seconds(step, plan.itemsize, machine) for step in steps)
    received = sum(int(step.traffic.received.sum()) for step in steps)
    return Cost(seconds, received * plan.itemsize)


def _seconds(step: Step, itemsize: int, machine: Machine) -> float:
    traffic, spec = step.traffic, step.kind.spec
    calls = int(traffic.partners.max(initial=0))
    if spec.trees:
        largest = max(map(len, step.groups), default=1)
        calls = spec.trees * math.ceil(math.log2(largest))
    busiest = int(max(traffic.received.max(initial=0), traffic.sent.max(initial=0)))
    local = int(traffic.copied.max(initial=0))
    return calls * machine.alpha + itemsize * (busiest * machine.beta + local * machine.copy)
