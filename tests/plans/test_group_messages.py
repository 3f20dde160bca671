"""Messages of groups that are not listed: what is said of them is what the list says."""

import random
from dataclasses import fields, replace

import numpy as np
import pytest

import distspmd
from distspmd.errors import PlanError
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.planning.random_problems import random_problem
from distspmd.plans.contracts import find_malformed
from distspmd.plans.group_messages import GroupMessages
from distspmd.plans.messages import Messages, Traffic
from distspmd.plans.plan import Plan
from distspmd.plans.rewrites.split_reductions import split_reductions
from distspmd.plans.verifier import verify
from distspmd.solvers.collectives.solver import Collectives


def plans(count, ranks=24):
    for seed in range(count):
        plan = Collectives().plan(random_problem(seed, ranks, most_elements=1 << 10))
        if isinstance(plan, Plan):
            yield from {id(p): p for p in (plan, split_reductions(plan, least=1))}.values()


def listed(plan):
    steps = (replace(step, messages=Messages(step.table.table)) for step in plan.steps)
    return replace(plan, steps=tuple(steps))


def test_what_a_rank_sends_and_receives_and_the_traffic_are_those_of_the_list():
    kinds = set()
    for plan in plans(150):
        again = split_reductions(listed(plan), least=1)
        assert [s.kind for s in again.steps] == [s.kind for s in split_reductions(plan, 1).steps]
        for step, known in zip(plan.steps, listed(plan).steps, strict=True):
            if not isinstance(step.table, GroupMessages):
                continue
            fresh = GroupMessages(*(getattr(step.table, name) for name in NAMES))
            kinds |= {step.kind.name} if fresh.traffic else set()
            assert len(fresh) == len(known.messages)
            for rank in range(plan.ranks):
                assert [*fresh.of_rank(rank)] == [*known.table.of_rank(rank)]
            extents = plan.redistribution.source.extents
            begun, listed_runs = fresh.runs(extents), known.table.runs(extents)
            assert np.array_equal(begun[: len(listed_runs)], listed_runs)
            assert not begun[len(listed_runs) :].any()
            traffic = replace(step, messages=fresh).traffic
            for field in fields(Traffic):
                mine, theirs = (getattr(t, field.name) for t in (traffic, known.traffic))
                assert np.array_equal(mine[: len(theirs)], theirs), f"{field.name} of {plan}"
                assert not mine[len(theirs) :].any()
    assert kinds == {"ALL_GATHER", "REDUCE_SCATTER", "ALL_REDUCE"}


NAMES = ("spec", "members", "have", "want", "to_self")


def damaged(step, draw):
    """The step with one box of what a rank has or wants changed, or of another group."""
    held = step.table
    boxes = [held.have.copy(), held.want.copy()]
    rank, side = draw.randrange(len(held.have)), draw.randrange(2)
    d, end = draw.randrange(held.have.shape[1]), draw.randrange(2)
    boxes[side][rank, d, end] += draw.choice([-1, 1])
    boxes[side] = np.maximum(boxes[side], 0)
    if draw.random() < 0.2:
        boxes[side][rank] = 0
    to_self = held.to_self ^ (draw.random() < 0.1)
    return replace(step, messages=GroupMessages(held.spec, held.members, *boxes, to_self))


def verdict(plan):
    try:
        verify(plan)
    except PlanError:
        return False
    return True


def test_damage_is_found_as_it_is_in_the_list():
    draw, wrong, right = random.Random(3), 0, 0
    for plan in plans(120, ranks=9):
        for number, step in enumerate(plan.steps):
            if not isinstance(step.table, GroupMessages) or len(step.table.have) < 2:
                continue
            steps = (*plan.steps[:number], damaged(step, draw), *plan.steps[number + 1 :])
            broken = replace(plan, steps=steps)
            found = verdict(broken)
            assert found == verdict(listed(broken)), f"{broken}"
            broken_step = broken.steps[number]
            fine = not [*find_malformed(broken_step, plan)]
            assert fine == (not [*find_malformed(listed(broken).steps[number], plan)])
            wrong, right = wrong + (not found), right + found
    assert wrong > 30
    assert right > 0


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("[16{x}32768, 8]", "[32768, 8]"),
        ("[17{x}33000, 8]", "[33000, 8]"),
        ("[2048, 8] + partial(sum){x}", "[2048, 8]"),
        ("[2048, 8] + partial(sum){x}", "[1{x}2048, 8]"),
    ],
)
def test_plans_of_two_thousand_ranks_are_made_proved_and_split_with_no_message_listed(
    source, target
):
    mesh = Mesh(x=2048)
    plan = distspmd.plan(Layout.parse(source, mesh), Layout.parse(target, mesh))
    for part in (plan, split_reductions(plan, least=1)):
        verify(part)
        assert part.fingerprint
        assert part.received(5) > 0
    many = [step.table.is_listed for step in plan.steps if isinstance(step.table, GroupMessages)]
    assert many
    assert not any(many)
