"""Messages that are listed late: their traffic is what the list says."""

from dataclasses import replace

import numpy as np
import pytest

import distspmd.solvers.collectives.solver
import distspmd.solvers.exchange
from distspmd.planning.random_problems import random_problem
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.plan import Plan
from distspmd.solvers.collectives.solver import Collectives
from distspmd.solvers.exchange import Exchange

SOLVERS = {
    "exchange": (Exchange(), distspmd.solvers.exchange),
    "collectives": (Collectives(), distspmd.solvers.collectives.solver),
}


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
            for field in ("sent", "received", "copied", "partners"):
                found = getattr(mine.traffic, field)
                known = getattr(wanted.traffic, field)
                assert np.array_equal(found[: len(known)], known), f"{field}, seed {seed}: {plan}"
                assert not found[len(known) :].any()
            assert mine.messages == wanted.messages
    assert late > 20
