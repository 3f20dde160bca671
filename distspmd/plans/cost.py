"""What a plan costs on a machine: latency and bandwidth of the busiest rank of each step."""

from __future__ import annotations

import math
from dataclasses import dataclass

from distspmd.plans.machine import Machine
from distspmd.plans.plan import Plan, Step


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


def _seconds(step: Step, itemsize: int, machine: Machine) -> float:
    traffic, spec = step.traffic, step.kind.spec
    calls = int(traffic.partners.max(initial=0))
    largest = max(map(len, step.groups), default=1)
    if spec.trees:
        calls = spec.trees * math.ceil(math.log2(largest))
    busiest = float(max(traffic.received.max(initial=0), traffic.sent.max(initial=0)))
    if spec.to_all and spec.from_all:
        busiest *= 2 * (largest - 1) / largest
    local = int(traffic.copied.max(initial=0))
    return calls * machine.alpha + itemsize * (busiest * machine.beta + local * machine.copy)
