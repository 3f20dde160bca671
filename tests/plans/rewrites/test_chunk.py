from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import Content, redistributions

from distspmd.errors import PlanError
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.collectives import StepKind
from distspmd.plans.plan import Message, Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.rewrites.chunk import chunk
from distspmd.plans.simulator import simulate
from distspmd.plans.verifier import verify
from distspmd.solvers import SOLVERS
from distspmd.solvers.exchange import Exchange
from distspmd.solvers.grid_mapped import GridMapped


@st.composite
def plans(draw):
    move = draw(redistributions())
    answers = [solver.plan(move) for solver in SOLVERS]
    return draw(st.sampled_from([plan for plan in answers if isinstance(plan, Plan)]))


@given(plans(), st.integers(1, 20))
def test_rounds_keep_the_meaning_and_the_limit(plan, limit):
    try:
        found = chunk(plan, limit)
    except PlanError:
        assume(False)
    for step in found.steps:
        assert max([*step.sent().values(), *step.arriving], default=0) <= limit
    verify(found)
    content = Content(plan.redistribution)
    tiles = simulate(found, content.sources, content.before)
    for tile, wanted in zip(tiles, content.after, strict=False):
        assert (tile == wanted).all()


@given(plans(), st.integers(1, 20))
def test_rounds_receive_what_the_plan_receives(plan, limit):
    with suppress(PlanError):
        found = chunk(plan, limit)
        ranks = range(plan.ranks)
        assert sum(map(found.received, ranks)) == sum(map(plan.received, ranks))


@given(plans())
def test_a_plan_within_the_limit_is_left_alone(plan):
    assert chunk(plan, 10_000) is plan


@given(plans(), st.integers(1, 20))
def test_all_messages_of_an_element_that_is_reduced_stay_in_one_round(plan, limit):
    with suppress(PlanError):
        rounds = [step for step in chunk(plan, limit).steps if step.reduction]
        boxes = [[m.box for m in step.messages] for step in rounds]
        for number, here in enumerate(boxes):
            for other in boxes[number + 1 :]:
                if rounds[number].target == rounds[-1].target:
                    assert not any(
                        intervals.volume(intervals.intersect(a, b)) for a in here for b in other
                    )


def test_a_step_within_one_buffer_is_cut_by_elements():
    mesh = Mesh(x=2)
    replicas = Layout.parse("[8] + partial(sum)", mesh)
    whole = ((0, 8),)
    swap = (Message(0, 1, whole), Message(1, 0, whole))
    fill = tuple(Message(rank, rank, whole) for rank in range(2))
    steps = (
        Step(StepKind.COPY, 0, 2, (), fill),
        Step(StepKind.EXCHANGE, 2, 2, ((0, 1),), swap, reduction="sum", accumulate=True),
        Step(StepKind.COPY, 2, 1, (), fill),
    )
    target = Layout.parse("[8]", mesh)
    plan = Plan(Redistribution(replicas, target, "int64"), "test", steps, (target,))
    found = chunk(plan, 3)
    verify(found)
    assert [step.kind for step in found.steps].count(StepKind.EXCHANGE) == 4
    content = Content(plan.redistribution)
    tiles = simulate(found, content.sources, content.before)
    assert all((a == b).all() for a, b in zip(tiles, content.after, strict=True))


def test_the_groups_of_a_broadcast_leave_when_their_box_is_done():
    mesh = Mesh(x=2, y=2)
    target = Layout.parse("[5{x}9]", mesh)
    plan = GridMapped().plan(Redistribution(Layout.root((9,)), target, "int64"))
    broadcasts = [s for s in chunk(plan, 4).steps if s.kind is StepKind.BROADCAST]
    assert [step.groups for step in broadcasts] == [((0, 1), (2, 3)), ((0, 1),)]


def test_the_rounds_of_an_exchange_are_busy_on_all_ranks():
    mesh = Mesh(x=4)
    move = Redistribution(
        Layout.parse("[16{x}64, 64]", mesh), Layout.parse("[64, 16{x}64]", mesh), "float32"
    )
    plan = Exchange().plan(move)
    (step,) = plan.steps
    least = max(step.sent().values()) / 100
    rounds = chunk(plan, 100).steps
    assert len(rounds) <= 1.5 * least + 1


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit):
    plan = Exchange().plan(Redistribution(Layout.root((4,)), Layout.root((4,)), "int8"))
    with pytest.raises(PlanError, match="give at least 1"):
        chunk(plan, limit)


def test_a_limit_below_the_operands_of_one_element_is_refused():
    source = replace(Layout.parse("[4] + partial(sum)", Mesh(x=4)))
    plan = Exchange().plan(Redistribution(source, Layout.root((4,)), "int8"))
    with pytest.raises(PlanError, match=r"receives \[0:1\] 3 times, more than the limit of 2"):
        chunk(plan, 2)
