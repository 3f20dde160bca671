"""What a plan costs on a machine: latency and bandwidth of the busiest rank of each step."""

from __future__ import annotations

import math
from dataclasses import dataclass

from distspmd.plans.machine import Machine
from distspmd.plans.plan import Plan, Step, StepKind


@dataclass(frozen=True, slots=True)
class Cost:
    """Predicted time of a plan, and the bytes that decide it."""

    seconds: float
    nbytes: int
    """Bytes received by all ranks together."""


def cost(plan: Plan, machine: Machine) -> Cost:
    """Cost of a plan on a machine (alpha-beta model)."""
    seconds = sum(_seconds(step, plan.itemsize, machine) for step in plan.steps)
    received = sum(int(step.traffic.received.sum()) for step in plan.steps)
    return Cost(seconds, received * plan.itemsize)


_TREES = {
    StepKind.BROADCAST: 1,
    StepKind.REDUCE: 1,
    StepKind.ALL_GATHER: 1,
    StepKind.REDUCE_SCATTER: 1,
    StepKind.ALL_REDUCE: 2,
}
"""How often a call runs through a tree of its group."""


def _seconds(step: Step, itemsize: int, machine: Machine) -> float:
    traffic = step.traffic
    calls = int(traffic.partners.max(initial=0))
    largest = max(map(len, step.groups), default=1)
    if step.kind in _TREES:
        calls = _TREES[step.kind] * math.ceil(math.log2(largest))
    busiest = float(max(traffic.received.max(initial=0), traffic.sent.max(initial=0)))
    if step.kind is StepKind.ALL_REDUCE:
        busiest *= 2 * (largest - 1) / largest
    local = int(traffic.copied.max(initial=0))
    return calls * machine.alpha + itemsize * (busiest * machine.beta + local * machine.copy)
