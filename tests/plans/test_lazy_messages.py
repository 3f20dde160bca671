"""Messages that are listed late: their traffic is what the list says."""

from dataclasses import fields, replace

import numpy as np
import pytest

import distspmd.solvers.collectives.solver
import distspmd.solvers.exchange
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.planning.random_problems import random_problem
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.messages import Messages, Traffic
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.rewrites.split_reductions import split_reductions
from distspmd.solvers.collectives.solver import Collectives
from distspmd.solvers.exchange import Exchange
from distspmd.solvers.grid_mapped import GridMapped

SOLVERS = {
    "exchange": (Exchange(), distspmd.solvers.exchange),
    "collectives": (Collectives(), distspmd.solvers.collectives.solver),
}
"""Collectives are of :class:`~distspmd.plans.group_messages.GroupMessages`, never listed early."""


@pytest.mark.parametrize("name", SOLVERS)
def test_the_traffic_of_messages_that_are_not_listed_yet_is_theirs(name, monkeypatch):
    solver, module = SOLVERS[name]
    late = 0
    for seed in range(300):
        move = random_problem(seed, 64)
        listed = solver.plan(move)
        if not isinstance(listed, Plan):
            continue
        with monkeypatch.context() as patch:
            patch.setattr(module, "HEURISTICS", replace(HEURISTICS, listed_messages=0))
            plan = solver.plan(random_problem(seed, 64))
        for mine, wanted in zip(plan.steps, listed.steps, strict=True):
            late += mine.table.traffic is not None
            assert mine.groups == wanted.groups
            known = replace(wanted, messages=Messages(wanted.table.table))
            compare(mine.traffic, known.traffic, f"seed {seed}: {plan}")
            assert mine.messages == wanted.messages
    assert late > 20


def compare(found, known, what):
    for field in fields(Traffic):
        mine, theirs = (getattr(traffic, field.name) for traffic in (found, known))
        assert np.array_equal(mine[: len(theirs)], theirs), f"{field.name}, {what}"
        assert not mine[len(theirs) :].any(), f"{field.name}, {what}"


@pytest.mark.parametrize("target", ["[5, 11]", "root"])
@pytest.mark.parametrize("sizes", ["x=2", "x=3", "x=7", "x=3,y=2"])
def test_the_traffic_of_a_reduction_in_two_steps_is_that_of_its_messages(sizes, target):
    mesh = Mesh.parse(sizes)
    source = Layout.parse("[5, 11] + partial(sum){x}", mesh)
    goal = Layout.root((5, 11)) if target == "root" else Layout.parse(target, mesh)
    solver = GridMapped() if target == "root" else Collectives()
    plan = solver.plan(Redistribution(source, goal, "float64"))
    cut = split_reductions(plan, least=1)
    assert len(cut.steps) == len(plan.steps) + 1
    for step in cut.steps:
        listed = replace(step, messages=Messages(step.table.table))
        compare(step.traffic, listed.traffic, f"{step.kind} of {plan}")
