from dataclasses import replace

import numpy as np
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
from distspmd.plans.simulator import simulate
from distspmd.plans.solver import Refusal
from distspmd.plans.verifier import verify
from distspmd.solvers import SOLVERS
from distspmd.solvers.exchange import Exchange
from distspmd.solvers.grid_mapped import GridMapped

MESH = Mesh(x=2, y=2)
WHOLE = ((0, 8),)


def plan_of(source, target, accumulate=False):
    """The grid-mapped plan, else an exchange."""
    source, target = (
        Layout.parse(text, MESH) if text else Layout.root((8,)) for text in (source, target)
    )
    move = Redistribution(source, target, "int64", accumulate)
    plan = GridMapped().plan(move)
    return Exchange().plan(move) if isinstance(plan, Refusal) else plan


SCATTER = plan_of("", "[4{x}8]")
GATHER = plan_of("[4{x}8] + partial(sum){y}", "")
EXCHANGE = plan_of("[4{x}8]", "[4{y}8]")
ALLREDUCE = plan_of("[8] + partial(sum)", "[8]")
ACCUMULATE = plan_of("[8] + partial(sum)", "[4{x}8]", accumulate=True)


def damaged(plan, number=0, **changes):
    step = replace(plan.steps[number], **changes)
    return replace(plan, steps=(*plan.steps[:number], step, *plan.steps[number + 1 :]))


def with_messages(plan, change, number=0):
    return damaged(plan, number, messages=tuple(change([*plan.steps[number].messages])))


@pytest.mark.parametrize("plan", [SCATTER, GATHER, EXCHANGE, ALLREDUCE, ACCUMULATE], ids=str)
def test_a_sound_plan_is_proved(plan):
    verify(plan)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (damaged(SCATTER, source=5), "goes from buffer 5"),
        (damaged(SCATTER, target=0), "goes from buffer 0 to buffer 0"),
        (damaged(SCATTER, groups=((0,), (2,))), "rank 0 and rank 2 are in no common group"),
        (damaged(SCATTER, groups=((2, 0),)), "but the group starts at another rank"),
        (damaged(SCATTER, groups=((0, 2), (2, 3))), "a rank is in two groups"),
        (damaged(SCATTER, groups=((0, 2, 9),)), "there is no rank 9"),
        (damaged(SCATTER, kind=StepKind.COPY), "sends to rank 2 in a copy"),
        (damaged(SCATTER, 1, groups=((0, 1, 2), (3,))), "no common group"),
        (damaged(SCATTER, accumulate=True), "accumulates without a reduction"),
        (damaged(GATHER, reduction="max"), "it reduces with max, not with sum"),
        (damaged(EXCHANGE, reduction="sum"), "it reduces with sum, not with None"),
        (damaged(GATHER, 1, source=0), "arrives, or too often"),
        (replace(SCATTER, steps=SCATTER.steps[::-1]), "before it has it"),
        (replace(SCATTER, steps=SCATTER.steps[:1]), r"leaves \[0:4\] on rank 1"),
        (damaged(ALLREDUCE, reduction=None), "twice"),
        (damaged(ALLREDUCE, accumulate=True), "where it holds nothing"),
        (damaged(ACCUMULATE, accumulate=False), "arrives, or too often"),
    ],
)
def test_a_step_that_cannot_run_is_refused_with_its_reason(plan, message):
    with pytest.raises(PlanError, match=message):
        verify(plan)


def test_a_rank_that_is_left_out_of_a_broadcast_is_found():
    plan = with_messages(SCATTER, lambda messages: messages[1:], number=1)
    with pytest.raises(PlanError, match="rank 1 has no message in the broadcast of its group"):
        verify(plan)


def test_a_local_copy_does_not_stand_for_a_message_of_a_reduction():
    plan = with_messages(GATHER, lambda m: [Message(1, 1, m[0].box), *m[2:], m[0]])
    with pytest.raises(PlanError, match="rank 1"):
        verify(plan)


def test_an_all_reduce_among_some_of_its_group_is_refused():
    plan = damaged(ALLREDUCE, kind=StepKind.ALL_REDUCE)
    verify(plan)
    broken = with_messages(plan, lambda messages: messages[1:])
    with pytest.raises(PlanError, match="15 messages of 1 boxes, not one box from each of its 4"):
        verify(broken)


def test_two_boxes_in_one_broadcast_are_refused():
    def cut(messages):
        first, *others = messages
        return [replace(first, box=((0, 2),)), replace(first, box=((2, 4),)), *others]

    with pytest.raises(PlanError, match="has 2 different boxes"):
        verify(with_messages(SCATTER, cut, number=1))


@given(st.data())
def test_damage_to_any_plan_is_found_wherever_it_changes_the_outcome(data):
    """What verify accepts computes what NumPy computes."""
    move = data.draw(redistributions())
    plans = [plan for solver in SOLVERS if isinstance(plan := solver.plan(move), Plan)]
    plan = data.draw(st.sampled_from([plan for plan in plans if _count(plan)] or plans))
    assume(_count(plan))
    broken = _broken(data, plan)
    try:
        verify(broken)
    except PlanError:
        return
    content = Content(move)
    found = simulate(broken, content.sources, content.before)
    for tile, wanted in zip(found, content.after, strict=False):
        np.testing.assert_array_equal(tile, wanted)


@given(st.data())
def test_a_message_that_is_lost_or_doubled_is_always_found(data):
    move = data.draw(redistributions())
    plan = data.draw(st.sampled_from([Exchange().plan(move)]))
    assume(_count(plan))
    at = data.draw(st.integers(0, _count(plan) - 1))
    lost = with_messages(plan, lambda messages: messages[:at] + messages[at + 1 :])
    doubled = with_messages(plan, lambda messages: [*messages, messages[at]])
    for broken in (lost, doubled):
        with pytest.raises(PlanError):
            verify(broken)


@given(st.data())
def test_a_box_that_is_cut_short_is_always_found(data):
    move = data.draw(redistributions())
    plan = Exchange().plan(move)
    assume(_count(plan))
    at = data.draw(st.integers(0, _count(plan) - 1))
    message = plan.steps[0].messages[at]
    dimension = data.draw(st.integers(0, len(message.box) - 1))
    lo, hi = message.box[dimension]
    box = (*message.box[:dimension], (lo, hi - 1), *message.box[dimension + 1 :])
    broken = with_messages(plan, lambda m: [*m[:at], replace(message, box=box), *m[at + 1 :]])
    with pytest.raises(PlanError):
        verify(broken)


def _count(plan):
    return len(plan.steps[0].messages) if plan.steps else 0


def _broken(data, plan):
    """A plan with one message of its first step changed, at random."""
    at = data.draw(st.integers(0, _count(plan) - 1))
    message = plan.steps[0].messages[at]
    ranks = st.integers(0, plan.ranks - 1)
    moved = tuple((lo + data.draw(st.integers(-1, 1)), hi) for lo, hi in message.box)
    assume(not intervals.is_empty(moved))
    change = data.draw(
        st.sampled_from(
            [
                replace(message, box=moved),
                replace(message, sender=data.draw(ranks)),
                replace(message, receiver=data.draw(ranks)),
            ]
        )
    )
    return with_messages(plan, lambda m: [*m[:at], change, *m[at + 1 :]])


def test_a_sender_that_lacks_the_box_is_named():
    plan = with_messages(EXCHANGE, lambda m: [replace(m[0], sender=3, receiver=3), *m[1:]])
    with pytest.raises(PlanError, match=r"rank 3 sends \[0:4\] to rank 3, outside its box \[4:8\]"):
        verify(plan)


def test_a_receiver_outside_its_box_is_named():
    step = Step(StepKind.EXCHANGE, 0, 1, ((0, 1, 2, 3),), (Message(0, 1, WHOLE),))
    plan = replace(SCATTER, steps=(step,))
    with pytest.raises(PlanError, match=r"rank 1 receives \[0:8\] from rank 0, outside its box"):
        verify(plan)
