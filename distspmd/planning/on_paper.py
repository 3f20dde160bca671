"""A redistribution on paper: steps, bytes, memory and bounds, and both layouts as pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from distspmd.layouts.draw import picture, svg
from distspmd.planning.planner import ChosenPlan
from distspmd.plans.cost import Cost, cost
from distspmd.plans.plan import Plan, Step
from distspmd.plans.rewrites.split_reductions import split_reductions
from distspmd.tables import Table, as_text, shorten

_MESSAGES = 4


def report(plan: ChosenPlan) -> str:
    """What ``distspmd reshard`` prints."""
    move = plan.redistribution
    lines = [
        f"{move} on {plan.ranks} ranks",
        "",
        f"source {move.source}: which ranks hold which tile",
        picture(move.source),
        "",
        f"target {move.target}",
        picture(move.target),
        "",
        as_text([Table(f"plan: {plan.solver}", _STEP_HEAD, tuple(_steps(plan)))]),
        as_text([Table("on the busiest rank", ("", "bytes", "bound"), tuple(_bytes(plan)))]),
        as_text([Table("all plans, the cheapest first", _PLAN_HEAD, tuple(_plans(plan)))]),
    ]
    return "\n".join(lines)


def drawing(plan: Plan) -> str:
    """An SVG of both layouts and of what lies between them."""
    move = plan.redistribution
    between = [(f"after step {number}", held) for number, held in enumerate(plan.scratch, start=1)]
    return svg([("source", move.source), *between, ("target", move.target)])


_STEP_HEAD = ("step", "groups", "received", "sent", "seconds", "afterwards")
_PLAN_HEAD = ("solver", "steps", "bytes of all", "most received", "peak", "seconds")


def _steps(plan: ChosenPlan) -> Iterator[tuple[str, ...]]:
    runs = split_reductions(plan)
    for number, step in enumerate(runs.steps):
        alone = cost(replace(runs, steps=(step,)), plan.machine)
        yield (
            f"{number}: {step.kind}",
            _groups(step),
            f"{int(step.traffic.received.max(initial=0)) * plan.itemsize:,}",
            f"{int(step.traffic.sent.max(initial=0)) * plan.itemsize:,}",
            f"{alone.seconds:.2e}",
            shorten(str(runs.buffers[step.target])),
        )


def _groups(step: Step) -> str:
    if not step.groups:
        return "-"
    sizes = sorted({len(group) for group in step.groups})
    of = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]}-{sizes[-1]}"
    first = ", ".join(map(str, step.groups[0][:_MESSAGES]))
    more = ", ..." if len(step.groups[0]) > _MESSAGES else ""
    return f"{len(step.groups)} of {of}: ({first}{more})"


def _bytes(plan: Plan) -> Iterator[tuple[str, ...]]:
    ranks = range(plan.ranks)
    measures: list[tuple[str, Callable[[int], int], Callable[[int], int]]] = [
        ("received", split_reductions(plan).received, plan.bound.received),
        ("peak memory", plan.peak, plan.bound.memory),
    ]
    for name, found, bound in measures:
        yield name, f"{max(map(found, ranks)):,}", f"{max(map(bound, ranks)):,}"


def _plans(plan: ChosenPlan) -> Iterator[tuple[str, ...]]:
    every: list[tuple[Plan, Cost]] = [(plan, plan.cost), *plan.losers]
    for other, price in every:
        kinds = " + ".join(str(step.kind) for step in other.steps)
        received = split_reductions(other).received
        yield (
            other.solver,
            shorten(kinds),
            f"{price.nbytes:,}",
            f"{max(map(received, range(other.ranks))):,}",
            f"{int(other.peaks.max(initial=0)):,}",
            f"{price.seconds:.2e}",
        )
    for refusal in plan.refusals:
        yield refusal.solver, f"refused: {shorten(refusal.reason)}", "", "", "", ""
