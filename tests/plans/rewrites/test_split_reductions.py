"""A reduction in two steps means the same, and moves no more than its pieces besides."""

from __future__ import annotations

import numpy as np
import pytest

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.planning.planner import plan
from distspmd.plans.collectives import StepKind
from distspmd.plans.plan import Message, Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.rewrites.split_reductions import split_reductions
from distspmd.plans.simulator import simulate
from distspmd.plans.verifier import verify

PROBLEMS = [
    ("[7, 5] + partial(sum){x}", "[7, 5]", Mesh(x=3)),
    ("[1, 9] + partial(max){x}", "[1, 9]", Mesh(x=4)),
    ("[2, 3] + partial(prod){x}", "[2, 3]", Mesh(x=5)),
    ("[6, 2{y}4] + partial(sum){x}", "[6, 2{y}4]", Mesh(x=3, y=2)),
]


def all_reduce(source: str, target: str, mesh: Mesh) -> Plan:
    """The plan of one call among the ranks that have operands of one box."""
    move = Redistribution(Layout.parse(source, mesh), Layout.parse(target, mesh), "int64")
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for rank in mesh:
        groups.setdefault(move.source.box(rank), []).append(rank)
    messages = tuple(
        Message(sender, receiver, box)
        for box, group in groups.items()
        for sender in group
        for receiver in group
    )
    held = tuple(map(tuple, groups.values()))
    step = Step(StepKind.ALL_REDUCE, 0, 1, held, messages, move.reduction)
    found = Plan(move, "test", (step,))
    verify(found)
    return found


@pytest.mark.parametrize(("source", "target", "mesh"), PROBLEMS)
def test_two_steps_give_what_one_gives(source: str, target: str, mesh: Mesh) -> None:
    whole = all_reduce(source, target, mesh)
    cut = split_reductions(whole, least=1)
    assert [step.kind for step in cut.steps] == [StepKind.REDUCE_SCATTER, StepKind.ALL_GATHER]
    verify(cut)
    numbers = np.random.default_rng(0)
    move = whole.redistribution
    tiles = [
        numbers.integers(-9, 9, [hi - lo for lo, hi in move.source.box(rank)]) for rank in mesh
    ]
    for one, two in zip(simulate(whole, tiles), simulate(cut, tiles), strict=True):
        np.testing.assert_array_equal(one, two)
    assert sum(map(cut.received, mesh)) == sum(map(whole.received, mesh))


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(("source", "mesh"), [(source, mesh) for source, _, mesh in PROBLEMS])
def test_one_rank_gets_what_all_combine(source: str, mesh: Mesh, accumulate: bool) -> None:
    layout = Layout.parse(source, mesh)
    move = Redistribution(layout, Layout.root(layout.extents), "int64", accumulate)
    groups: dict[Box, list[int]] = {}
    for rank in mesh:
        groups.setdefault(layout.box(rank), []).append(rank)
    one_group = Step(
        StepKind.REDUCE,
        0,
        1,
        (tuple(groups[layout.box(0)]),),
        tuple(Message(sender, 0, layout.box(0)) for sender in groups[layout.box(0)]),
        move.reduction,
        accumulate,
    )
    whole = Plan(move, "test", (one_group,))
    cut = split_reductions(whole, least=1)
    assert [step.kind for step in cut.steps] == [StepKind.REDUCE_SCATTER, StepKind.GATHER]
    if len(groups) == 1:
        verify(cut)
    numbers = np.random.default_rng(0)
    tiles = [numbers.integers(-9, 9, intervals.shape(layout.box(rank))) for rank in mesh]
    before = [numbers.integers(-9, 9, layout.extents)]
    one, two = (simulate(way, tiles, before)[0] for way in (whole, cut))
    np.testing.assert_array_equal(one, two)
    reduced, gathered = (step.received() for step in cut.steps)
    assert 8 * reduced.total() == sum(map(whole.received, mesh))
    box = intervals.volume(layout.box(0))
    assert gathered == {0: box - reduced[0] // (len(one_group.groups[0]) - 1)}  # but its own piece


def test_small_boxes_and_other_steps_stay() -> None:
    small = all_reduce(*PROBLEMS[0])
    assert split_reductions(small) is small
    assert split_reductions(small, least=7 * 5 * 8 + 1) is small
    assert split_reductions(small, least=7 * 5 * 8) is not small
    rows = Layout.parse("[2{x}4, 4]", Mesh(x=2))
    other = plan(rows, Layout.parse("[4, 2{x}4]", Mesh(x=2)))
    assert split_reductions(other, least=1) is other
