from dataclasses import replace

import numpy as np
import pytest

from distspmd.errors import PlanError
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.collectives import StepKind
from distspmd.plans.plan import Message, Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.simulator import simulate, tiles_of

MESH = Mesh(x=2)
ROOT = Layout.root((4,))
ROWS = Layout.parse("[2{x}4]", MESH)
PARTIAL = Layout.parse("[4] + partial(sum)", MESH)
WHOLE, LEFT, RIGHT = ((0, 4),), ((0, 2),), ((2, 4),)


def exchange(*messages, source=0, target=1, **options):
    return Step(StepKind.EXCHANGE, source, target, ((0, 1),), messages, **options)


def run(source, target, steps, tiles, before=None, dtype="int64", scratch=()):
    plan = Plan(Redistribution(source, target, dtype), "test", tuple(steps), scratch)
    found = simulate(plan, [np.array(tile) for tile in tiles], before)
    return [tile.tolist() for tile in found]


def test_a_message_copies_a_box():
    step = exchange(Message(0, 0, LEFT), Message(0, 1, RIGHT))
    assert run(ROOT, ROWS, [step], [[1, 2, 3, 4]]) == [[1, 2], [3, 4]]


def test_what_no_message_reaches_is_kept():
    before = [np.array([7, 8]), np.array([9, 9])]
    step = exchange(Message(0, 1, ((2, 3),)))
    assert run(ROOT, ROWS, [step], [[1, 2, 3, 4]], before) == [[7, 8], [3, 9]]


def test_the_first_operand_replaces_and_the_others_combine():
    step = exchange(Message(0, 0, WHOLE), Message(1, 0, WHOLE), reduction="sum")
    assert run(PARTIAL, ROOT, [step], [[1, 2, 3, 4], [5, 5, 5, 5]], [np.full(4, 100)]) == [
        [6, 7, 8, 9],
        [],
    ]


def test_with_accumulate_the_first_operand_combines_too():
    step = exchange(Message(0, 0, WHOLE), reduction="sum", accumulate=True)
    assert run(PARTIAL, ROOT, [step], [[1, 2, 3, 4], [0] * 4], [np.full(4, 100)])[0] == [
        101,
        102,
        103,
        104,
    ]


def test_a_step_reads_all_before_it_writes():
    swap = exchange(Message(0, 1, LEFT), Message(1, 0, RIGHT), source=1)
    plan = Plan(Redistribution(ROOT, Layout.parse("[4]", MESH), "int64"), "test", (swap,))
    before = [np.array([1, 2, 3, 4]), np.array([5, 6, 7, 8])]
    found = simulate(plan, [np.zeros(4, int)], before)
    assert [tile.tolist() for tile in found] == [[1, 2, 7, 8], [1, 2, 7, 8]]


def test_scratch_lives_between_steps():
    steps = [
        exchange(Message(0, 1, WHOLE), target=2),
        exchange(Message(1, 1, RIGHT), Message(1, 0, LEFT), source=2),
    ]
    scratch = (Layout.of_boxes(MESH, (4,), [((0, 0),), WHOLE]),)
    assert run(ROOT, ROWS, steps, [[1, 2, 3, 4]], scratch=scratch) == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("reduction", "wanted"),
    [("sum", 8), ("prod", 12), ("min", 2), ("max", 6), ("and", 1), ("or", 1)],
)
def test_each_reduction_is_that_of_numpy(reduction, wanted):
    source = replace(PARTIAL, partial=replace(PARTIAL.partial, reduction=reduction))
    step = exchange(Message(0, 0, WHOLE), Message(1, 0, WHOLE), reduction=reduction)
    assert run(source, ROOT, [step], [[2] * 4, [6] * 4])[0] == [wanted] * 4


def test_small_integers_wrap():
    step = exchange(Message(0, 0, WHOLE), Message(1, 0, WHOLE), reduction="sum")
    assert run(PARTIAL, ROOT, [step], [[100] * 4, [100] * 4], dtype="int8")[0] == [-56] * 4


def test_a_tile_of_another_shape_than_its_box_is_refused():
    with pytest.raises(PlanError, match=r"shape \(3,\), but holds \[0:4\]"):
        run(ROOT, ROWS, [], [[1, 2, 3]])


def test_tiles_are_cut_out_of_an_array():
    assert [tile.tolist() for tile in tiles_of(ROWS, np.arange(4))] == [[0, 1], [2, 3]]
