"""What can be seen of a lowered program without a compiler: its plans, on NumPy arrays.

The program is proved, and every plan simulated beside NumPy's own slicing and reductions. The bytes
that its messages carry are those that the record and `explain` tell.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from strategies import Content

import distspmd
from distspmd.lowering import Lowering, PlannedMemlet
from distspmd.plans.plan import Plan
from distspmd.plans.simulator import simulate
from distspmd.runtime.engine.engine import runnable


def problems(lowering: Lowering) -> Iterator[str]:
    """What is wrong with the plans of a lowered program."""
    distspmd.verify(lowering)
    for memlet in lowering.memlets + lowering.fetches:
        plan = memlet.solution.plan
        for found in (*_misplaced(plan), *_miscounted(memlet)):
            yield f"{memlet.data}: {memlet.layouts}: {found}"
    told = distspmd.explain(lowering)
    counted = sum(
        (m.times or 0) * sum(map(runnable(m.solution.plan).received, range(lowering.ranks)))
        for m in lowering.memlets
    )
    foreseen = sum(move.received or 0 for move in lowering.fetches + lowering.pipelines)
    if told.nbytes != counted + foreseen:
        yield (
            f"{told.nbytes} bytes are explained, {counted} are in the plans and {foreseen} foreseen"
        )


def _misplaced(plan: Plan) -> Iterator[str]:
    content = Content(plan.redistribution)
    found = simulate(plan, content.sources, content.before)
    for rank, wanted in enumerate(content.after):
        if not np.array_equal(found[rank], wanted):
            yield f"rank {rank} would have {found[rank]!r} for {wanted!r}"


def _miscounted(memlet: PlannedMemlet) -> Iterator[str]:
    plan, cost = memlet.solution.plan, memlet.solution.cost
    received = [runnable(plan).received(rank) for rank in range(plan.ranks)]
    if sum(received) != cost.nbytes:
        yield f"{sum(received)} bytes are received, {cost.nbytes} are told"
    if plan.redistribution.source.partial is None:
        for rank, nbytes in enumerate(received):
            if nbytes < plan.bound.received(rank):
                yield f"rank {rank} receives {nbytes} bytes, less than it lacks"
