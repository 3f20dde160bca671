"""Random problems, seeded: every plan is proved, simulated and compared; damage is found."""

from dataclasses import replace
from random import Random

import pytest
from strategies import Content

from distspmd.errors import PlanError
from distspmd.layouts import intervals
from distspmd.planning.random_problems import random_problem
from distspmd.plans.plan import Message, Plan
from distspmd.plans.simulator import simulate
from distspmd.plans.verifier import verify
from distspmd.solvers import SOLVERS
from distspmd.solvers.exchange import Exchange


def plans(seed, most_ranks):
    move = random_problem(seed, most_ranks, most_elements=1 << 12)
    found = [solver.plan(move) for solver in SOLVERS]
    return [plan for plan in found if isinstance(plan, Plan)]


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_every_plan_is_proved_and_computes_what_numpy_does(start):
    for seed in range(start, start + 100):
        for plan in plans(seed, 36):
            verify(plan)
            content = Content(plan.redistribution, seed)
            found = simulate(plan, content.sources, content.before)
            for rank, wanted in enumerate(content.after):
                assert (found[rank] == wanted).all(), f"seed {seed}, rank {rank} of {plan}"


def test_the_exchange_receives_what_the_bound_says():
    for seed in range(400):
        move = random_problem(seed, 64)
        if move.source.partial is None:
            plan = Exchange().plan(move)
            for rank in range(move.ranks):
                assert plan.received(rank) == move.bound.received(rank)


def test_the_same_seed_gives_the_same_problem():
    assert random_problem(7) == random_problem(7)


def damaged(plan: Plan, draw: Random) -> Plan:
    """The plan with one message or step that is wrong."""
    number = draw.randrange(len(plan.steps))
    step = plan.steps[number]
    messages = list(step.messages)
    at = draw.randrange(len(messages))
    m = messages[at]
    change = draw.choice(["box", "lost", "doubled", "shifted", "step"])
    if change == "lost":
        del messages[at]
    elif change == "doubled":
        messages.insert(draw.randrange(len(messages) + 1), m)
    elif change == "step":
        return replace(plan, steps=(*plan.steps[:number], *plan.steps[number + 1 :]))
    else:
        dimension = draw.randrange(len(m.box))
        lo, hi = m.box[dimension]
        side = (lo, hi - 1) if change == "box" else (lo + 1, hi + 1)
        box = (*m.box[:dimension], side, *m.box[dimension + 1 :])
        messages[at] = Message(m.sender, m.receiver, box)
    broken = replace(step, messages=tuple(messages))
    return replace(plan, steps=(*plan.steps[:number], broken, *plan.steps[number + 1 :]))


def test_the_verifier_finds_a_thousand_damages():
    draw = Random(0)
    found = seed = 0
    while found < 1000:
        seed += 1
        for plan in plans(seed, 16):
            if sum(len(step.messages) for step in plan.steps) == 0:
                continue
            for _ in range(3):
                broken = damaged(plan, draw)
                with pytest.raises(PlanError):
                    verify(broken)
                found += 1


def test_a_box_of_a_damaged_message_is_named():
    plan = next(plan for plan in plans(3, 16) if plan.solver == "exchange")
    (step,) = plan.steps
    m, *others = step.messages
    wrong = replace(step, messages=(replace(m, box=intervals.empty(len(m.box))), *others))
    with pytest.raises(PlanError, match=rf"leaves \[.*\] on rank {m.receiver} "):
        verify(replace(plan, steps=(wrong,)))
