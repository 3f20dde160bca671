from dataclasses import replace

import pytest
from hypothesis import given
from strategies import redistributions

from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.collectives import StepKind
from distspmd.plans.cost import cost
from distspmd.plans.machine import Machine
from distspmd.plans.plan import Message, Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.solvers.exchange import Exchange
from distspmd.solvers.grid_mapped import GridMapped

ALPHA, BETA, COPY = 1000.0, 10.0, 1.0
MACHINE = Machine(ALPHA, BETA, COPY)
MESH = Mesh(x=4)
WHOLE = ((0, 8),)


def priced(kind, *messages, groups=((0, 1, 2, 3),)):
    move = Redistribution(Layout.root((8,)), Layout.parse("[8]", MESH), "int16")
    return cost(Plan(move, "test", (Step(kind, 0, 1, groups, messages),)), MACHINE)


def test_a_copy_costs_its_bytes():
    assert priced(StepKind.COPY, Message(0, 0, WHOLE), groups=()).seconds == 16 * COPY
    assert priced(StepKind.COPY, Message(0, 0, WHOLE), groups=()).nbytes == 0


def test_an_exchange_costs_the_messages_and_bytes_of_the_busiest_rank():
    found = priced(
        StepKind.EXCHANGE, Message(0, 1, WHOLE), Message(0, 2, WHOLE), Message(2, 3, WHOLE)
    )
    assert found.seconds == 2 * ALPHA + 32 * BETA
    assert found.nbytes == 48


def test_a_broadcast_costs_a_tree_of_messages_and_its_bytes_once():
    found = priced(StepKind.BROADCAST, *(Message(0, rank, WHOLE) for rank in (1, 2, 3)))
    assert found.seconds == 2 * ALPHA + 16 * BETA


@given(redistributions())
def test_no_byte_is_received_exactly_where_no_message_leaves_a_rank(move):
    plan = Exchange().plan(move)
    between = any(m.sender != m.receiver for step in plan.steps for m in step.messages)
    assert (cost(plan, Machine()).nbytes > 0) == between


@given(redistributions())
def test_steps_add_up(move):
    plan = Exchange().plan(move)
    twice = replace(plan, steps=plan.steps * 2)
    assert cost(twice, MACHINE).seconds == pytest.approx(2 * cost(plan, MACHINE).seconds)


def test_sending_a_box_once_and_broadcasting_it_is_cheaper_than_sending_it_to_all():
    move = Redistribution(
        Layout.root((1 << 20,)), Layout.parse("[524288{x}1048576]", Mesh(x=2, y=8)), "float64"
    )
    plans = [solver.plan(move) for solver in (GridMapped(), Exchange())]
    scatter, exchange = (cost(plan, Machine()).seconds for plan in plans)
    assert scatter < exchange
