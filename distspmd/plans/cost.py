"""What a plan costs on a machine: latency and bandwidth of the busiest rank of each step.

Where the machine has nodes, messages between these have a latency of their own, and the bytes that
enter and leave a node share its way out: a step takes as long as its busiest rank or node. Where
ranks share cores, these move the bytes of all. What such ranks cannot copy out of the memory of
others, because it is the caller's or because they write to it as well, is copied once more.

The steps are those that run: large reductions are split first. The bytes are those that go between
ranks in them, which the runtime counts, and not the fewest that any plan must bring to the ranks;
those are the :class:`~distspmd.plans.redistribution.Bound`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

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
    seconds = sum(_seconds(step, plan, machine) for step in steps)
    received = sum(int(step.traffic.received.sum()) for step in steps)
    return Cost(seconds, received * plan.itemsize)


def _seconds(step: Step, plan: Plan, machine: Machine) -> float:
    traffic, spec = step.traffic, step.kind.spec
    calls = int(traffic.partners.max(initial=0))
    if spec.trees:
        largest = max(map(len, step.groups), default=1)
        calls = spec.trees * math.ceil(math.log2(largest))
    busiest, sent = (int(own.max(initial=0)) for own in (traffic.received, traffic.sent))
    local = int(traffic.copied.max(initial=0))
    if machine.cores:  # ranks of one host: the one that wants bytes brings them
        busiest = machine.busiest(busiest, int(traffic.received.sum()))
        local = machine.busiest(local, int(traffic.copied.sum()))
    else:
        busiest = max(busiest, sent)
    latency, moving = calls * machine.alpha, busiest * float(machine.arriving(_packs(step, plan)))
    if machine.has_nodes:
        far = between_nodes(step, machine.node_ranks)
        distant = min(calls, far.calls)
        latency += distant * (machine.far_alpha - machine.alpha)
        moving = max(moving, far.elements * machine.far_beta)
    return latency + plan.itemsize * (moving + local * machine.copy) + _begun(step, plan, machine)


def _packs(step: Step, plan: Plan) -> bool:
    """Whether ranks copy what a step moves for those who want it, who cannot get it themselves."""
    move = plan.redistribution
    is_hidden = move.in_place or (move.at_caller and step.source == 0)
    return is_hidden and not step.kind.spec.is_combined


def _begun(step: Step, plan: Plan, machine: Machine) -> float:
    """Seconds that the busiest rank takes to begin the runs of memory that it brings."""
    if not machine.run:
        return 0.0
    runs = step.table.runs(plan.redistribution.source.extents)
    return float(machine.busiest(runs.max(initial=0), runs.sum())) * machine.run


@dataclass(frozen=True, slots=True)
class BetweenNodes:
    """What a step moves between nodes: elements of the busiest node, calls of the busiest rank."""

    elements: float
    calls: int


def between_nodes(step: Step, node_ranks: int) -> BetweenNodes:
    """What a step moves between nodes of so many ranks each, which are numbered one by one.

    A call that runs through trees of its group forwards within a node what has come to it: each
    node then receives as much as one of its ranks. Other messages are counted where they are
    listed, and else taken to be spread evenly over the group.
    """
    spec = step.kind.spec
    if not spec.trees and step.table.is_listed:
        return _listed_between(step, node_ranks)
    traffic = step.traffic
    size = max([len(traffic.received), *(max(group) + 1 for group in step.groups if group)])
    flows = [np.zeros(size) for _ in range(2)]
    for flow, own in zip(flows, (traffic.received, traffic.sent), strict=True):
        flow[: len(own)] = own
    entering = np.zeros((2, -(-size // node_ranks)))
    calls = 0
    for group in step.groups:
        ranks = np.array(group, np.int64)
        nodes, place, counts = np.unique(
            ranks // node_ranks, return_inverse=True, return_counts=True
        )
        if len(nodes) < 2:
            continue
        if spec.trees:
            calls = max(calls, spec.trees * math.ceil(math.log2(len(nodes))))
            for total, flow in zip(entering, flows, strict=True):
                most = np.zeros(len(nodes))
                np.maximum.at(most, place, flow[ranks])
                total[nodes] += most
            continue
        share = (len(ranks) - counts[place]) / (len(ranks) - 1)
        calls = max(calls, math.ceil(float((traffic.partners[ranks] * share).max())))
        for total, flow in zip(entering, flows, strict=True):
            total += np.bincount(ranks // node_ranks, flow[ranks] * share, len(total))
    return BetweenNodes(float(entering.max(initial=0)), calls)


def _listed_between(step: Step, node_ranks: int) -> BetweenNodes:
    """The same of messages that are listed."""
    held = step.table
    ends = held.senders, held.receivers
    far = ends[0] // node_ranks != ends[1] // node_ranks
    if not far.any():
        return BetweenNodes(0.0, 0)
    volumes = held.volumes[far]
    elements = max(np.bincount(end[far] // node_ranks, volumes).max() for end in ends)
    return BetweenNodes(
        float(elements), int(np.bincount(np.concatenate([end[far] for end in ends])).max())
    )
