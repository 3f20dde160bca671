from dataclasses import replace

from hypothesis import given
from strategies import redistributions

from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.collectives import StepKind
from distspmd.plans.plan import Message, Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.solver import Refusal
from distspmd.solvers.collectives.solver import Collectives
from distspmd.solvers.exchange import Exchange
from distspmd.solvers.grid_mapped import GridMapped

MESH = Mesh(x=2, y=2)
SCATTERED = Redistribution(Layout.root((8,)), Layout.parse("[4{x}8]", MESH), "float64")


def test_a_plan_prints_its_redistribution_its_calls_and_its_solver():
    plan = GridMapped().plan(SCATTERED)
    assert str(plan) == "[8] -> [4{x}8] of float64: scatter + broadcast (grid-mapped)"
    assert str(replace(plan, steps=())) == "[8] -> [4{x}8] of float64: nothing (grid-mapped)"
    rounds = (plan.steps[0], plan.steps[1], plan.steps[1])
    assert ": scatter + 2 x broadcast (" in str(replace(plan, steps=rounds))


def test_a_refusal_prints_its_reason():
    assert str(Refusal("halo", "the tiles are not blocks")) == "halo: the tiles are not blocks"


def test_a_broadcast_is_received_by_all_and_sent_once():
    broadcast = GridMapped().plan(SCATTERED).steps[1]
    assert broadcast.sent() == {0: 4, 2: 4}
    assert broadcast.received() == {1: 4, 3: 4}


def test_a_reduction_goes_from_rank_to_rank_and_its_result_is_delivered_once():
    source = Layout.parse("[8] + partial(sum)", MESH)
    plan = GridMapped().plan(Redistribution(source, Layout.root((8,)), "float64"))
    assert plan.steps[0].received() == {0: 8, 1: 8, 2: 8}
    assert plan.steps[0].sent() == {1: 8, 2: 8, 3: 8}
    assert plan.steps[0].arriving.tolist() == [8, 0, 0, 0]
    assert [plan.received(rank) for rank in range(4)] == [64, 64, 64, 0]
    assert [plan.bound.received(rank) for rank in range(4)] == [64, 0, 0, 0]
    assert plan.peak(1) == 64 + 64  # its operand, and what it gives to MPI


def test_the_peak_has_all_operands_that_a_rank_combines_itself():
    mesh = Mesh(x=4)
    operands, rows = Layout.parse("[8] + partial(sum){x}", mesh), Layout.parse("[2{x}8]", mesh)
    plan = Collectives().plan(Redistribution(operands, rows, "int8"))
    assert [step.kind for step in plan.steps] == [StepKind.REDUCE_SCATTER]
    assert plan.peak(0) == 8 + 2 + 3 * 2 + 3 * 2


def test_the_peak_counts_tiles_scratch_and_staging():
    box = ((0, 8),)
    step = Step(StepKind.EXCHANGE, 0, 1, ((0, 1),), (Message(0, 1, box),))
    replicas = Layout.parse("[8]", Mesh(x=2))
    plan = Plan(Redistribution(Layout.root((8,)), replicas, "int8"), "test", (step,), (replicas,))
    assert plan.peak(0) == 8 + 8 + 8 + 8
    assert plan.peak(1) == 0 + 8 + 8 + 8


@given(redistributions())
def test_bytes_received_are_those_of_the_messages_between_ranks(move):
    plan = Exchange().plan(move)
    total = sum(
        intervals.volume(m.box)
        for step in plan.steps
        for m in step.messages
        if m.sender != m.receiver
    )
    assert sum(map(plan.received, range(plan.ranks))) == total * plan.itemsize


def test_the_fingerprint_sees_each_number_of_a_plan():
    plan = GridMapped().plan(SCATTERED)
    step = plan.steps[0]
    first, *others = step.messages
    changed = [
        replace(step, source=1),
        replace(step, groups=((0, 3),)),
        replace(step, messages=(replace(first, box=((0, 3),)), *others)),
        replace(step, kind=StepKind.EXCHANGE),
    ]
    plans = [plan, *(replace(plan, steps=(step, *plan.steps[1:])) for step in changed)]
    assert len({plan.fingerprint for plan in plans}) == len(plans)
    assert GridMapped().plan(SCATTERED).fingerprint == plan.fingerprint
