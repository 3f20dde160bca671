from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcsp.problems import optimum, problems

from distspmd.errors import NoAssignment, ToolchainError
from distspmd.wcsp import toulbar2
from distspmd.wcsp.neighbourhoods import search
from distspmd.wcsp.part import part_of
from distspmd.wcsp.problem import Pair, Problem
from distspmd.wcsp.run import Run
from distspmd.wcsp.state import State
from distspmd.wcsp.ties import untie
from distspmd.wcsp.toulbar2 import Toulbar2Process


@pytest.fixture(scope="module")
def process() -> Iterator[Toulbar2Process]:
    with Toulbar2Process() as started:
        yield started


@given(problem=problems(), scale=st.sampled_from([1e-9, 1.0, 1e9]))
def test_it_proves_the_optimum(process: Toulbar2Process, problem: Problem, scale: float) -> None:
    problem, _ = untie(problem)
    pairs = tuple(Pair(pair.first, pair.second, pair.costs * scale) for pair in problem.pairs)
    scaled = Problem(tuple(own * scale for own in problem.unary), pairs, problem.limits)
    run = Run(scaled, 60)
    best = optimum(scaled)
    try:
        search(run, process)
    except NoAssignment:
        assert best == np.inf
        return
    assert run.cost == pytest.approx(best, rel=1e-9)
    assert run.bound == pytest.approx(best, rel=1e-9)
    assert run.closed


def hard(number: int) -> Problem:
    """A problem that nobody solves in a second."""
    random = np.random.default_rng(0)
    pairs = tuple(
        Pair(first, second, random.random((20, 20)))
        for first in range(number)
        for second in range(first)
    )
    return Problem((np.zeros(20),) * number, pairs)


def test_it_is_ended_when_its_time_is_over(process: Toulbar2Process) -> None:
    problem = hard(60)
    state = State(problem, np.zeros(60, np.int64))
    part = part_of(state, range(60))
    answer = process.improve(part, effort=10**9, seconds=0.05, proof=True)
    assert not answer.complete
    assert answer.bound <= part.ceiling
    small = part_of(state, range(3))
    assert process.improve(small, effort=100, seconds=60, proof=False).complete


def test_what_the_process_says_when_it_does_not_start_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toulbar2, "_WORK", "raise SystemExit('no toulbar2 here') #")
    problem = hard(5)
    part = part_of(State(problem, np.zeros(5, np.int64)), range(5))
    with (
        Toulbar2Process() as broken,
        pytest.raises(ToolchainError, match="does not work: no toulbar2 here"),
    ):
        broken.improve(part, effort=1, seconds=60, proof=False)
