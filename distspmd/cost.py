"""What a plan costs on a machine: latency and bandwidth of the busiest rank of each step."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from distspmd import intervals
from distspmd.machine import Machine
from distspmd.plans import Plan, Step, StepKind


@dataclass(frozen=True, slots=True)
class Cost:
    """Predicted time of a plan, and the bytes that decide it."""

    seconds: float
    nbytes: int
    """Bytes received by all ranks together."""


def cost(plan: Plan, machine: Machine) -> Cost:
    """Cost of a plan on a machine (alpha-beta model)."""
    seconds = sum(_seconds(step, plan.itemsize, machine) for step in plan.steps)
    received = sum(sum(step.received().values()) for step in plan.steps)
    return Cost(seconds, received * plan.itemsize)


def _seconds(step: Step, itemsize: int, machine: Machine) -> float:
    partners: Counter[int] = Counter()
    copied: Counter[int] = Counter()
    for message in step.messages:
        if message.sender == message.receiver:
            copied[message.receiver] += intervals.volume(message.box)
        else:
            partners[message.sender] += 1
            partners[message.receiver] += 1
    calls = max(partners.values(), default=0)
    if step.kind in (StepKind.BROADCAST, StepKind.REDUCE):
        calls = max((math.ceil(math.log2(len(group))) for group in step.groups), default=0)
    busiest = max([*step.received().values(), *step.sent().values()], default=0)
    local = max(copied.values(), default=0)
    return calls * machine.alpha + itemsize * (busiest * machine.beta + local * machine.copy)
