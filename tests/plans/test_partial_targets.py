"""Targets that are partial: operands that stay, values that become operands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Launch
from hypothesis import given
from hypothesis import strategies as st
from strategies import extents_of_arrays, layouts, partial_layouts, splits_over

import distspmd
from distspmd.errors import LayoutError, PlanError
from distspmd.layouts import Layout, Mesh, intervals
from distspmd.layouts.dimension import Partial
from distspmd.layouts.reductions import REDUCTIONS, define, find_reduction
from distspmd.plans.collectives import StepKind
from distspmd.plans.encoding import DTYPES
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.rewrites.drop_operands import ask
from distspmd.plans.simulator import simulate
from distspmd.solvers import SOLVERS

MESH = Mesh(x=2, y=3)


def held(layout: Layout, arrays: dict[int, np.ndarray]) -> list[np.ndarray]:
    """Tiles of the ranks, cut out of the operands."""
    return [
        arrays[layout.operand(rank)][intervals.slices(box)].copy()
        for rank, box in enumerate(layout.boxes)
    ]


def combined(layout: Layout, tiles: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """The value of each element, of what ranks hold; ranks of one operand hold the same of it."""
    name = layout.partial.reduction if layout.partial else "sum"
    reduction = find_reduction(name)
    found = np.full(layout.extents, reduction.identity(dtype))
    operands: dict[int, np.ndarray] = {}
    seen: dict[int, np.ndarray] = {}
    for rank, (box, tile) in enumerate(zip(layout.boxes, tiles, strict=False)):
        operand, at = layout.operand(rank), intervals.slices(box)
        own = operands.setdefault(operand, np.full(layout.extents, reduction.identity(dtype)))
        known = seen.setdefault(operand, np.zeros(layout.extents, bool))
        assert (own[at][known[at]] == tile[known[at]]).all()
        own[at], known[at] = tile, True
    for own in operands.values():
        found = reduction.ufunc(found, own).astype(dtype)
    return found


@st.composite
def moves(draw: st.DrawFn) -> Redistribution:
    """Values or operands to operands; half of them on one mesh."""
    extents, dtype = draw(extents_of_arrays()), draw(st.sampled_from([*DTYPES]))
    names = [name for name, known in REDUCTIONS.items() if known.supports(dtype)]
    name = draw(st.sampled_from(names))
    is_partial = draw(st.booleans())
    source = draw(partial_layouts(extents, name) if is_partial else layouts(extents))
    target = draw(partial_layouts(extents, name).filter(lambda each: each.splits is not None))
    if draw(st.booleans()):
        axes = draw(st.permutations(source.mesh.names))
        taken = draw(st.integers(0, len(axes)))
        splits = draw(splits_over(axes[taken:], extents))
        partial = Partial(name, tuple(axes[:taken]))
        target = Layout(source.mesh, extents, splits=splits, partial=partial)
    return Redistribution(source, target, dtype)


@given(moves())
def test_operands_of_a_partial_target_are_those_of_the_source(move: Redistribution) -> None:
    numbers = np.random.default_rng(0)
    operands = {
        int(k): numbers.integers(1, 4, move.source.extents).astype(move.dtype)
        for k in {0, *move.source.operands.tolist()}
    }
    tiles = held(move.source, operands)
    name = move.target.partial.reduction
    for solver in SOLVERS:
        plan = ask(solver, move)
        if isinstance(plan, distspmd.plans.Refusal):
            assert solver.name != "exchange"
            continue
        distspmd.verify(plan)
        after = simulate(plan, tiles)
        found = combined(move.target, after, move.dtype)
        reached = np.zeros(move.source.extents, bool)
        for box in move.target.boxes:
            reached[intervals.slices(box)] = True
        wanted = _value(move, operands, name)
        np.testing.assert_array_equal(found[reached], wanted[reached])


def _value(move: Redistribution, operands: dict[int, np.ndarray], name: str) -> np.ndarray:
    """The array: all operands of each element combined."""
    reduction = find_reduction(name)
    found = np.full(move.source.extents, reduction.identity(move.dtype))
    done: dict[int, np.ndarray] = {}
    for rank, box in enumerate(move.source.boxes):
        operand, at = move.source.operand(rank), intervals.slices(box)
        known = done.setdefault(operand, np.zeros(move.source.extents, bool))
        known[at] = True
    for operand, known in done.items():
        both = reduction.ufunc(found, operands[operand]).astype(move.dtype)
        found = np.where(known, both, found)
    return found


def planned(source: str, target: str, mesh: Mesh = MESH, **options) -> distspmd.plans.Plan:
    pair = (Layout.parse(text, mesh) for text in (source, target))
    plan = distspmd.plan(*pair, **{"dtype": "float64", **options})
    distspmd.verify(plan)
    return plan


def test_an_axis_of_both_sides_keeps_its_operands() -> None:
    plan = planned("[6, 4] + partial(sum){x,y}", "[6, 4] + partial(sum){x}")
    tiles = [np.full((6, 4), 10.0**rank) for rank in range(6)]
    found = simulate(plan, tiles)
    for rank in range(6):
        x = rank // 3
        assert (found[rank] == sum(10.0 ** (3 * x + y) for y in range(3))).all()
    assert {step.kind for step in plan.steps} <= {
        StepKind.ALL_REDUCE,
        StepKind.REDUCE_SCATTER,
        StepKind.ALL_GATHER,
    }
    assert all(len({rank // 3 for rank in group}) == 1 for s in plan.steps for group in s.groups)


def test_operands_that_stay_are_reduce_scattered_among_the_others() -> None:
    plan = planned("[600, 400] + partial(sum){x,y}", "[200{y}600, 400] + partial(sum){x}")
    assert [step.kind for step in plan.steps] == [StepKind.REDUCE_SCATTER]
    assert sum(map(plan.received, range(6))) == 6 * 2 * 200 * 400 * 8


def test_one_rank_of_each_group_keeps_a_value() -> None:
    plan = planned("[6, 4]", "[6, 4] + partial(max){x}")
    assert not any(map(plan.received, range(6)))
    found = simulate(plan, [np.full((6, 4), 5.0)] * 6)
    assert [tile[0, 0] for tile in found] == [5, 5, 5, -np.inf, -np.inf, -np.inf]


def test_values_that_are_split_become_operands_where_they_lie() -> None:
    plan = planned("[3{x}6, 4]", "[6, 4] + partial(sum){x}")
    assert not any(map(plan.received, range(6)))
    found = simulate(plan, [np.full((3, 4), 5.0)] * 6)
    assert (found[0][:3] == 5).all()
    assert (found[0][3:] == 0).all()
    assert (found[5][:3] == 0).all()


def test_dimensions_and_operands_change_at_once() -> None:
    plan = planned("[4{x}7, 5] + partial(prod){y}", "[7, 3{x}5] + partial(prod){y}")
    assert [step.kind for step in plan.steps] == [StepKind.ALL_TO_ALL]


def test_a_wrong_plan_of_operands_is_found() -> None:
    plan = planned("[6] + partial(sum){x,y}", "[6] + partial(sum){x}", solver="exchange")
    (step,) = plan.steps
    for messages in (step.messages[1:], (*step.messages[1:], step.messages[1])):
        wrong = replace(plan, steps=(replace(step, messages=messages),))
        with pytest.raises(PlanError):
            distspmd.verify(wrong)


@pytest.mark.parametrize(
    ("source", "target", "dtype", "message"),
    [
        ("[6] + partial(sum){x}", "[6] + partial(max){x}", "float64", "operands of sum are none"),
        ("[6]", "[6] + partial(bitand){x}", "float64", "no bitand of float64 values"),
        ("[6]", "boxes[6]{0: 0:6; 1: 0:6} + partial(sum)", "float64", "Write the axes"),
        (
            "[6]",
            "boxes[6]{0: 0:6; 3: 0:5} + partial(sum){x}",
            "float64",
            "the tiles of operand 1 lack elements",
        ),
    ],
)
def test_targets_that_cannot_be_are_refused(
    source: str, target: str, dtype: str, message: str
) -> None:
    with pytest.raises(LayoutError, match=message):
        planned(source, target, dtype=dtype)


def test_a_function_of_a_user_needs_a_neutral_element() -> None:
    define("lowest_common", np.lcm, identity=1)
    plan = planned("[6]", "[6] + partial(lowest_common){y}", dtype="int64")
    found = simulate(plan, [np.full(6, 5)] * 6)
    assert [tile[0] for tile in found] == [5, 1, 1, 5, 1, 1]
    average = "lambda a, b: (a + b) / 2"
    layout = replace(Layout.parse("[6]", MESH), partial=Partial(average, ("x",)))
    with pytest.raises(LayoutError, match=r"no lambda.* of float64 values"):
        Redistribution(Layout.parse("[6]", MESH), layout, np.dtype("float64"))


def test_ranks_get_operands(launch: Launch) -> None:
    program = Path(__file__).parents[1] / "ranks" / "operands_as_targets.py"
    assert "operands arrived" in launch(program, ranks=6).stdout
