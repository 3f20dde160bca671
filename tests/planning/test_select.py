from dataclasses import dataclass

import pytest
from hypothesis import given
from strategies import redistributions

from distspmd.errors import NoSolver
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.planning.select import select_plan
from distspmd.plans.machine import Machine
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.solver import Refusal
from distspmd.solvers import SOLVERS
from distspmd.solvers.exchange import Exchange

MESH = Mesh(x=2)
MOVE = Redistribution(Layout.parse("[2{x}4]", MESH), Layout.parse("[4]", MESH), "int8")


@dataclass(frozen=True)
class Twin:
    """The exchange under another name."""

    name: str

    def plan(self, redistribution):
        return Plan(redistribution, self.name, Exchange().plan(redistribution).steps)


@dataclass(frozen=True)
class Never:
    name: str = "never"

    def plan(self, redistribution):
        return Refusal(self.name, "it never does")


def test_of_equally_cheap_plans_the_first_wins():
    solution = select_plan(MOVE, (Twin("first"), Never(), Twin("second")))
    assert solution.plan.solver == "first"
    assert [plan.solver for plan, _ in solution.losers] == ["second"]
    assert [refusal.solver for refusal in solution.refusals] == ["never"]


def test_all_refusals_are_in_the_error():
    with pytest.raises(
        NoSolver, match=r"no solver moves \[2{x}4\] -> \[4\] of int8: never: it never"
    ):
        select_plan(MOVE, (Never(),))


@given(redistributions())
def test_the_winner_is_the_cheapest_and_nobody_is_forgotten(move):
    solution = select_plan(move, SOLVERS, Machine())
    assert all(solution.cost.seconds <= other.seconds for _, other in solution.losers)
    assert 1 + len(solution.losers) + len(solution.refusals) == len(SOLVERS)


def test_the_machine_decides_between_latency_and_bytes():
    mesh = Mesh(x=8)
    move = Redistribution(Layout.root((64,)), Layout.parse("[64]", mesh), "float64")
    slow = select_plan(move, SOLVERS, Machine(alpha=1.0))
    assert slow.plan.solver == "grid-mapped"
