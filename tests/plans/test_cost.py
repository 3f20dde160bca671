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
from distspmd.runtime.engine.engine import runnable
from distspmd.solvers.collectives.solver import Collectives
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


def test_ranks_that_share_cores_move_the_bytes_of_all_with_these():
    messages = (Message(0, 1, WHOLE), Message(0, 2, WHOLE), Message(2, 3, WHOLE))
    move = Redistribution(Layout.root((8,)), Layout.parse("[8]", MESH), "int16")
    plan = Plan(move, "test", (Step(StepKind.EXCHANGE, 0, 1, ((0, 1, 2, 3),), messages),))
    for cores, nbytes in ((0, 32), (4, 16), (1, 48)):
        assert cost(plan, replace(MACHINE, cores=cores)).seconds == 2 * ALPHA + nbytes * BETA


@pytest.mark.parametrize(
    ("kind", "hidden", "copies"),
    [
        (StepKind.EXCHANGE, {}, 0),
        (StepKind.EXCHANGE, {"at_caller": True}, 1),
        (StepKind.EXCHANGE, {"in_place": True}, 1),
        (StepKind.ALL_REDUCE, {"at_caller": True}, 0),
    ],
)
def test_what_others_cannot_copy_out_of_is_copied_once_more(kind, hidden, copies):
    """Operands of a sum go by packets wherever they lie."""
    move = Redistribution(Layout.root((8,)), Layout.parse("[8]", MESH), "int16", **hidden)
    step = Step(kind, 0, 1, ((0, 1),), (Message(0, 1, WHOLE),))
    plan = Plan(move, "test", (step,))
    machines = [replace(MACHINE, copy=copy, cores=2) for copy in (0.0, COPY)]
    copied = [cost(plan, machine).seconds for machine in machines]
    assert copied[1] - copied[0] == 16 * COPY * copies
    # ranks with cores of their own send messages
    assert cost(plan, MACHINE).seconds == cost(plan, replace(MACHINE, copy=0)).seconds
    later = Plan(move, "test", (replace(step, source=2),), (Layout.root((8,)),))
    if not move.in_place:
        assert cost(later, machines[1]).seconds == copied[0]


@pytest.mark.parametrize(
    ("box", "runs"),
    [
        (((0, 6), (0, 8), (0, 5)), 1),  # all of the array
        (((2, 5), (0, 8), (0, 5)), 1),
        (((2, 5), (0, 7), (0, 5)), 3),
        (((2, 5), (0, 8), (1, 3)), 24),
        (((2, 5), (0, 7), (1, 2)), 3),  # of elements that lie apart, along the second dimension
        (((2, 5), (3, 4), (1, 2)), 1),
        (((2, 2), (0, 8), (0, 5)), 0),
    ],
)
def test_a_part_of_an_array_lies_in_runs_of_memory(box, runs):
    move = Redistribution(Layout.root((6, 8, 5)), Layout.parse("[6, 8, 5]", MESH), "int16")
    step = Step(StepKind.COPY, 0, 1, (), (Message(0, 0, box),))
    plan = Plan(move, "test", (step,))
    plain, dear = (cost(plan, replace(MACHINE, run=run)).seconds for run in (0, 500.0))
    assert dear - plain == runs * 500


def test_runs_are_those_of_the_busiest_rank_or_of_all_that_share_its_core():
    boxes = [((0, 4), (0, 2)), ((0, 3), (2, 4)), ((0, 2), (4, 6))]
    messages = [Message(0, rank, box) for rank, box in enumerate(boxes)]
    move = Redistribution(Layout.root((4, 8)), Layout.parse("[4, 8]", MESH), "int16")
    plan = Plan(move, "test", (Step(StepKind.EXCHANGE, 0, 1, ((0, 1, 2, 3),), messages),))
    for cores, runs in ((0, 4), (1, 9)):
        plain, dear = (replace(MACHINE, cores=cores, run=run) for run in (0, 500.0))
        assert cost(plan, dear).seconds - cost(plan, plain).seconds == runs * 500


def test_a_broadcast_costs_a_tree_of_messages_and_its_bytes_once():
    found = priced(StepKind.BROADCAST, *(Message(0, rank, WHOLE) for rank in (1, 2, 3)))
    assert found.seconds == 2 * ALPHA + 16 * BETA


@pytest.mark.parametrize(
    ("solver", "source", "target", "least", "nbytes"),
    [
        (GridMapped(), "[384] + partial(sum){x}", Layout.root((384,)), 3_072, 9_216),
        (Collectives(), "[384] + partial(sum){x}", "[384]", 4 * 3_072, 18_432),
        (Collectives(), "[384] + partial(sum){x}", "[96{x}384]", 3_072, 9_216),
        (GridMapped(), Layout.root((384,)), "[384]", 9_216, 9_216),
        (GridMapped(), "[40000] + partial(sum){x}", Layout.root((40000,)), 320_000, 1_200_000),
        (Collectives(), "[40000] + partial(sum){x}", "[40000]", 1_280_000, 1_920_000),
    ],
)
def test_a_plan_costs_the_bytes_that_it_moves_and_not_the_least(
    solver, source, target, least, nbytes
):
    source, target = (Layout.parse(s, MESH) if isinstance(s, str) else s for s in (source, target))
    plan = solver.plan(Redistribution(source, target, "float64"))
    assert sum(map(plan.bound.received, range(4))) == least
    assert cost(plan, MACHINE).nbytes == nbytes
    running = runnable(plan)
    assert sum(map(running.received, range(4))) == nbytes
    assert cost(running, MACHINE) == cost(plan, MACHINE)


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
