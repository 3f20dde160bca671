"""What every solver promises: a refusal that says why, or a plan that does what was asked."""

import pytest
from hypothesis import given
from strategies import Content, layouts, redistributions

from distspmd.errors import NoSolver
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout, Partial
from distspmd.layouts.mesh import Mesh
from distspmd.planning.select import select_plan
from distspmd.plans.collectives import StepKind
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.simulator import simulate
from distspmd.plans.solver import Refusal
from distspmd.plans.verifier import verify
from distspmd.solvers import SOLVERS
from distspmd.solvers.exchange import Exchange
from distspmd.solvers.grid_mapped import GridMapped
from distspmd.solvers.local import LocalSlice, Nothing
from distspmd.solvers.reduce_first import ReduceFirst

EVERY = pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)


@EVERY
@given(move=redistributions())
def test_a_solver_refuses_with_a_reason_or_plans_what_numpy_computes(solver, move):
    plan = solver.plan(move)
    if isinstance(plan, Refusal):
        assert plan.solver == solver.name
        assert plan.reason
        return
    assert plan.redistribution == move
    assert plan.solver == solver.name
    verify(plan)
    content = Content(move)
    found = simulate(plan, content.sources, content.before)
    for rank, wanted in enumerate(content.after):
        assert (found[rank] == wanted).all(), f"rank {rank} of {plan}"


@EVERY
@given(move=redistributions(partial=False))
def test_no_plan_receives_less_than_the_bound(solver, move):
    plan = solver.plan(move)
    if isinstance(plan, Plan):
        for rank in range(move.ranks):
            assert plan.received(rank) >= move.bound.received(rank)


@EVERY
@given(move=redistributions())
def test_a_solver_answers_the_same_when_asked_again(solver, move):
    assert solver.plan(move) == solver.plan(move)


@given(move=redistributions(partial=False))
def test_exchange_receives_exactly_the_bound_of_values(move):
    plan = Exchange().plan(move)
    for rank in range(move.ranks):
        assert plan.received(rank) == move.bound.received(rank)


@given(move=redistributions())
def test_exchange_answers_everything_with_one_step(move):
    plan = Exchange().plan(move)
    assert isinstance(plan, Plan)
    assert len(plan.steps) == 1


def test_exchange_balances_the_senders_of_replicas():
    mesh = Mesh(x=4)
    replicas = Layout.of_boxes(mesh, (12,), [((0, 12),)] * 2 + [((0, 0),)] * 2)
    target = Layout.of_boxes(mesh, (12,), [((0, 0),)] * 2 + [((0, 12),)] * 2)
    (step,) = Exchange().plan(Redistribution(replicas, target, "float64")).steps
    assert step.sent() == {0: 12, 1: 12}


@given(move=redistributions())
def test_grid_mapped_takes_at_most_two_calls(move):
    plan = GridMapped().plan(move)
    if isinstance(plan, Plan):
        kinds = tuple(step.kind for step in plan.steps)
        assert kinds in {
            (StepKind.COPY,),
            (StepKind.BROADCAST,),
            (StepKind.SCATTER,),
            (StepKind.SCATTER, StepKind.BROADCAST),
            (StepKind.REDUCE,),
            (StepKind.GATHER,),
            (StepKind.REDUCE, StepKind.GATHER),
        }


@given(target=layouts((5, 6)))
def test_grid_mapped_scatters_no_byte_that_a_rank_does_not_need(target):
    move = Redistribution(Layout.root((5, 6)), target, "int32")
    plan = GridMapped().plan(move)
    assert isinstance(plan, Plan)
    for rank in range(move.ranks):
        assert plan.received(rank) == move.bound.received(rank)


@given(source=layouts((5, 6), explicit=False))
def test_grid_mapped_gathers_no_byte_twice(source):
    move = Redistribution(source, Layout.root((5, 6)), "int32")
    plan = GridMapped().plan(move)
    assert isinstance(plan, Plan)
    assert plan.received(0) == move.bound.received(0)


def test_grid_mapped_scatters_each_box_once_and_broadcasts_it():
    mesh = Mesh(x=2, y=3)
    target = Layout.parse("[4{x}8, 6]", mesh)
    plan = GridMapped().plan(Redistribution(Layout.root((8, 6)), target, "float32"))
    scatter, broadcast = plan.steps
    assert scatter.groups == ((0, 3),)
    assert broadcast.groups == ((0, 1, 2), (3, 4, 5))
    assert scatter.sent() == {0: 24}


def test_grid_mapped_reduces_groups_and_gathers_the_results():
    mesh = Mesh(x=2, y=3)
    source = Layout.parse("[4{x}8, 6] + partial(max){y}", mesh)
    plan = GridMapped().plan(Redistribution(source, Layout.root((8, 6)), "float32"))
    reduce, gather = plan.steps
    assert (reduce.kind, reduce.reduction) == (StepKind.REDUCE, "max")
    assert reduce.groups == ((0, 1, 2), (3, 4, 5))
    assert (gather.kind, gather.groups) == (StepKind.GATHER, ((0, 3),))
    assert plan.received(0) == 4 * (24 + 24)


def test_reduce_first_moves_each_operand_once_though_a_rank_has_none():
    mesh = Mesh(x=4)
    whole, nothing = ((0, 10), (0, 3)), ((0, 0), (0, 0))
    source = Layout.of_boxes(mesh, (10, 3), [whole] * 3 + [nothing], Partial("sum", ("x",)))
    target = Layout.of_boxes(mesh, (10, 3), [whole] * 4)
    move = Redistribution(source, target, "float32")
    plan = ReduceFirst().plan(move)
    assert [str(step.kind) for step in plan.steps] == ["reduce_scatter", "exchange"]
    assert plan.steps[0].groups == ((0, 1, 2),)
    assert sum(plan.steps[0].received().values()) == 2 * 30
    assert sum(plan.received(rank) for rank in range(4)) == 4 * (2 + 3) * 30
    assert sum(move.bound.received(rank) for rank in range(4)) == 4 * 4 * 30
    exchanged = Exchange().plan(move)
    assert sum(exchanged.received(rank) for rank in range(4)) == (3 * 2 + 3) * 4 * 30


def test_reduce_first_refuses_values_and_blocks():
    mesh = Mesh(x=2)
    values, operands, whole = (
        Layout.parse(text, mesh) for text in ("[2{x}4]", "[4] + partial(sum){x}", "[4]")
    )
    refusal = ReduceFirst().plan(Redistribution(values, whole, "int8"))
    assert str(refusal) == "reduce-first: [2{x}4] is not partial"
    refusal = ReduceFirst().plan(Redistribution(operands, whole, "int8"))
    assert "collectives" in str(refusal)


def test_grid_mapped_refuses_where_neither_side_is_the_root():
    rows, columns = (Layout.parse(text, Mesh(x=2)) for text in ("[2{x}4, 4]", "[4, 2{x}4]"))
    refusal = GridMapped().plan(Redistribution(rows, columns, "int8"))
    assert str(refusal) == "grid-mapped: neither side is the root layout"


def test_grid_mapped_refuses_tiles_that_overlap_in_part():
    source = Layout.parse("boxes[8]{0: 0:5; 1: 4:8}", Mesh(x=2))
    refusal = GridMapped().plan(Redistribution(source, Layout.root((8,)), "int8"))
    assert isinstance(refusal, Refusal)
    assert "overlap" in refusal.reason


def test_nothing_refuses_other_layouts_and_local_slice_names_the_rank_that_lacks_a_box():
    mesh = Mesh(x=2)
    move = Redistribution(Layout.parse("[2{x}4]", mesh), Layout.parse("[4]", mesh), "int8")
    assert Nothing().plan(move) == Refusal("nothing", "the layouts differ")
    assert LocalSlice().plan(move) == Refusal("local-slice", "rank 0 wants [0:4] and has [0:2]")


def test_equal_tiles_under_other_axis_names_need_no_communication():
    source, target = Layout.parse("[2{x}4]", Mesh(x=2)), Layout.parse("[2{a}4]", Mesh(a=2, b=1))
    plan = Nothing().plan(Redistribution(source, target, "int8"))
    assert isinstance(plan, Plan)
    assert plan.received(0) == plan.received(1) == 0


@given(move=redistributions(partial=False))
def test_solve_moves_nothing_where_each_rank_has_what_it_wants(move):
    solution = select_plan(move, SOLVERS)
    if all(map(intervals.contains, *_boxes(move))):
        assert solution.cost.nbytes == 0


def _boxes(move):
    ranks = range(move.ranks)
    return [move.source.box(r) for r in ranks], [move.target.box(r) for r in ranks]


def test_solve_says_why_each_solver_refused():
    mesh = Mesh(x=2)
    move = Redistribution(Layout.parse("[2{x}4]", mesh), Layout.parse("[4]", mesh), "int8")
    with pytest.raises(NoSolver, match=r"nothing: the layouts differ; local-slice: rank 0 wants"):
        select_plan(move, (Nothing(), LocalSlice()))
