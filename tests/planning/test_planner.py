import numpy as np
import pytest

import distspmd
from distspmd.errors import LayoutError, NoSolver
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.machine import Machine
from distspmd.plans.plan import Plan
from distspmd.plans.simulator import tiles_of
from distspmd.solvers.exchange import Exchange

MESH = Mesh(x=4, y=6)
SOURCE = Layout.parse("[3{x}12, 2{y}12]", MESH)
TARGET = Layout.parse("[2{y}12, 3{x}12]", MESH)


def test_a_plan_is_the_cost_the_proof_and_the_execution():
    plan = distspmd.plan(SOURCE, TARGET)
    assert plan.cost.seconds > 0
    assert all(step.kind and step.groups and step.received() for step in plan.steps)
    for rank in MESH:
        assert plan.received(rank) >= plan.bound.received(rank)
        assert plan.peak(rank) > plan.bound.memory(rank)
    distspmd.verify(plan)
    array = np.arange(144, dtype="float32").reshape(12, 12)
    for found, wanted in zip(
        distspmd.plans.simulate(plan, tiles_of(SOURCE, array)), tiles_of(TARGET, array), strict=True
    ):
        assert (found == wanted).all()


def test_the_losers_are_listed_with_their_costs():
    plan = distspmd.plan(SOURCE, TARGET)
    assert {plan.solver, *(loser.solver for loser, _ in plan.losers)} == {"collectives", "exchange"}
    assert all(isinstance(loser, Plan) for loser, _ in plan.losers)
    assert all(cost.seconds >= plan.cost.seconds for _, cost in plan.losers)
    assert {refusal.solver for refusal in plan.refusals} == {
        "nothing",
        "local-slice",
        "grid-mapped",
        "reduce-first",
    }


@pytest.mark.parametrize("solver", ["exchange", Exchange()])
def test_a_solver_can_be_named(solver):
    plan = distspmd.plan(SOURCE, TARGET, solver=solver)
    assert plan.solver == "exchange"
    assert plan.losers == ()


def test_a_solver_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(NoSolver, match="no solver 'magic'; write one of nothing, local-slice"):
        distspmd.plan(SOURCE, TARGET, solver="magic")


def test_memory_is_kept_by_rounds():
    mesh = Mesh(x=8)
    rows, columns = Layout.parse("[8{x}64, 64]", mesh), Layout.parse("[64, 8{x}64]", mesh)
    free = distspmd.plan(rows, columns, solver="exchange")
    tiles = 2 * 8 * 64 * 4
    limit = tiles + 2 * 128 * 4
    bounded = distspmd.plan(rows, columns, solver="exchange", max_memory=limit)
    assert max(map(free.peak, mesh)) > limit >= max(map(bounded.peak, mesh))
    assert len(bounded.steps) > 1
    distspmd.verify(bounded)


def test_too_little_memory_is_refused_with_what_the_tiles_need():
    with pytest.raises(NoSolver, match="its tiles and scratch are 48 bytes on a rank"):
        distspmd.plan(SOURCE, TARGET, max_memory=40)
    with pytest.raises(NoSolver, match="and max_memory is 40"):
        distspmd.plan(SOURCE, TARGET, max_memory=np.uint8(40))


def test_the_machine_decides_between_few_calls_and_few_bytes():
    slow, fast = Machine(alpha=1.0), Machine(alpha=0.0)
    mesh = Mesh(x=16)
    every = Layout.parse("[16]", mesh)
    rows = Layout.parse("[1{x}16]", mesh)
    assert distspmd.plan(rows, every, machine=slow).solver == "collectives"
    assert distspmd.plan(SOURCE, TARGET, machine=fast).solver == "exchange"


def test_layouts_of_different_arrays_are_refused():
    with pytest.raises(LayoutError, match="different arrays"):
        distspmd.plan(SOURCE, Layout.root((12, 13)))


def test_no_tile_on_the_way_is_larger_than_the_tiles_at_the_ends():
    plan = distspmd.plan(SOURCE, TARGET, solver="collectives")
    assert plan.scratch
    for layout in plan.scratch:
        assert max(map(intervals.volume, layout.boxes)) <= 6


@pytest.mark.parametrize(
    ("sizes", "source", "target", "kinds"),
    [
        ("x=16384", "[1{x}16384, 16384]", "[16384, 16384]", "all_gather"),
        ("x=16384", "[16384] + partial(sum){x}", "[1{x}16384]", "reduce_scatter"),
        ("x=16384", "[1{x}16384]", "[1{x}16384~1]", "exchange"),
        ("x=10007", "[1{x}10007, 100]", "[10007, 1{x}100]", "all_to_all"),
        ("x=128,y=128", "[128{x}16384, 128{y}16384]", "[128{y}16384, 128{x}16384]", "permute"),
    ],
)
def test_plans_of_ten_thousand_parts_list_no_message_for_each_pair(sizes, source, target, kinds):
    mesh = Mesh.parse(sizes)
    found = distspmd.plan(Layout.parse(source, mesh), Layout.parse(target, mesh))
    assert "+".join(str(step.kind) for step in found.steps) == kinds
    listed = sum(len(step.messages) for step in found.steps if step.table.is_listed)
    assert listed <= 100 * mesh.size  # and not one for each pair of ranks
