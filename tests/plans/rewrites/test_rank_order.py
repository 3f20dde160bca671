"""Operands that are combined in order: what plans become, and the bits of a program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import Launch
from hypothesis import given
from strategies import redistributions

from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.planning.select import select_plan
from distspmd.plans.collectives import StepKind
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.rewrites.rank_order import order_by_rank
from distspmd.plans.simulator import simulate
from distspmd.plans.verifier import verify
from distspmd.solvers import SOLVERS

RANKS = Path(__file__).parents[2] / "ranks"


@given(redistributions())
def test_an_ordered_plan_is_proved_and_reduces_by_messages_in_order(move: Redistribution) -> None:
    for solver in SOLVERS:
        plan = solver.plan(move)
        if not isinstance(plan, Plan):
            continue
        found = order_by_rank(plan)
        verify(found)
        for step in found.steps:
            assert step.kind not in (StepKind.REDUCE, StepKind.ALL_REDUCE)
            senders = [message.sender for message in step.messages]
            assert step.reduction is None or senders == sorted(senders)
        if move.source.partial is None:
            assert found == plan


@pytest.mark.parametrize("target", ["[4]", "[2{x}4]", "root"])
def test_operands_are_combined_from_the_first_rank_to_the_last(target: str) -> None:
    mesh = Mesh(x=4)
    source = Layout.parse("[4] + partial(sum){x}", mesh)
    to = Layout.root((4,)) if target == "root" else Layout.parse("[2{x}4]", Mesh(x=2))
    if target == "[4]":
        to = Layout.parse(target, mesh)
    plan = select_plan(Redistribution(source, to, "float32"), SOLVERS, in_order=True).plan
    rng = np.random.default_rng(0)
    tiles = [rng.normal(size=4).astype("f") * np.float32(10.0**k) for k in (3, -3, 4, 0)]
    wanted = ((tiles[0] + tiles[1]) + tiles[2]) + tiles[3]
    for rank, tile in enumerate(simulate(plan, tiles)[: to.ranks]):
        ((lo, hi),) = to.box(rank)
        np.testing.assert_array_equal(tile, wanted[lo:hi])


def test_a_program_has_the_same_bits_on_any_number_of_ranks(launch: Launch) -> None:
    printed = [launch(RANKS / "deterministic.py", ranks=ranks).stdout for ranks in (4, 6)]
    bits = [[line for line in text.splitlines() if "bits" in line] for text in printed]
    assert len(bits[0]) == 3
    assert bits[0] == bits[1]
