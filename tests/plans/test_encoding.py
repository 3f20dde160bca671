import itertools
from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import redistributions

from distspmd.errors import PlanError
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.layouts.reductions import REDUCTIONS
from distspmd.plans.collectives import StepKind
from distspmd.plans.encoding import ALL, DTYPES, MAGIC, SELF, VERSION, Storage, words
from distspmd.plans.plan import Message, Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.solvers import SOLVERS
from distspmd.solvers.exchange import Exchange
from distspmd.solvers.grid_mapped import GridMapped


@st.composite
def programs(draw):
    """A few plans with names."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        move = draw(redistributions())
        plans = [plan for solver in SOLVERS if isinstance(plan := solver.plan(move), Plan)]
        found.append((draw(st.text(max_size=20)), draw(st.sampled_from(plans))))
    return found


def tables_of(program):
    ranks = max(plan.ranks for _, plan in program)
    return [
        Table(words([(n, p, tight(p, rank)) for n, p in program], rank)) for rank in range(ranks)
    ]


def tight(plan, rank):
    return [Storage.of(layout.box(rank)) for layout in plan.buffers[:2]]


@dataclass
class TableStep:
    kind: StepKind
    source: int
    target: int
    family: int
    reduction: int
    accumulate: int
    sends: list
    receives: list


class Table:
    """A reader of the format as the docstring of tables.py tells it."""

    def __init__(self, found):
        self.left = iter([int(word) for word in found])
        assert self.take(3) == [MAGIC, VERSION, len(found)]
        self.rank, self.ranks, self.fingerprint, families, plans = self.take(5)
        self.families = [self.take(3) for _ in range(families)]
        self.plans = [self.plan() for _ in range(plans)]
        assert next(self.left, None) is None

    def take(self, count):
        return list(itertools.islice(self.left, count))

    def plan(self):
        _, length = self.take(2)
        packed = np.array(self.take(-(-length // 8)), dtype="<i8").tobytes()
        name = packed[:length].decode()
        dtype, itemsize, self.ndim, buffers, steps = self.take(5)
        storages = [
            (self.box(), self.take(self.ndim), self.take(self.ndim)) for _ in range(buffers)
        ]
        return name, dtype, itemsize, storages, [self.step() for _ in range(steps)]

    def step(self):
        kind, source, target, family, reduction, accumulate, sends, receives = self.take(8)
        traffic = [[(self.take(1)[0], self.box()) for _ in range(n)] for n in (sends, receives)]
        return TableStep(StepKind(kind), source, target, family, reduction, accumulate, *traffic)

    def box(self):
        bounds = self.take(2 * self.ndim)
        return tuple(zip(bounds[::2], bounds[1::2], strict=True))


@given(programs())
def test_all_ranks_agree_about_families_fingerprint_and_plans(program):
    tables = tables_of(program)
    assert len({(t.ranks, t.fingerprint, len(t.families)) for t in tables}) == 1
    for number in range(len(tables[0].families)):
        members = defaultdict(list)
        for table in tables:
            colour, position, size = table.families[number]
            if colour >= 0:
                members[colour].append((position, size))
        for found in members.values():
            assert sorted(found) == [(position, len(found)) for position in range(len(found))]
    for table in tables:
        assert [name for name, *_ in table.plans] == [name for name, _ in program]


@given(programs())
def test_what_a_rank_sends_to_a_position_is_what_that_rank_receives(program):
    tables = tables_of(program)
    for number, (_, plan) in enumerate(program):
        for at in range(len(plan.steps)):
            sent, received = defaultdict(list), defaultdict(list)
            for table in tables:
                part = table.plans[number][4][at]
                colour, position, _ = (
                    table.families[part.family] if part.family >= 0 else (-1, 0, 0)
                )
                for peer, box in part.sends:
                    sent[colour, position, peer].append(box)
                for peer, box in part.receives:
                    received[colour, peer, position].append(box)
            if any(peer == ALL for t in tables for peer, _ in _traffic(t, number, at)):
                continue
            local = [key for key in received if SELF in key]
            for key in local:
                del received[key]
            assert sent == received


def _traffic(table, number, at):
    part = table.plans[number][4][at]
    return part.sends + part.receives


@given(programs())
def test_a_call_for_one_box_of_all_ranks_has_one_box(program):
    tables = tables_of(program)
    for number, (_, plan) in enumerate(program):
        for at, step in enumerate(plan.steps):
            if step.kind not in (StepKind.BROADCAST, StepKind.REDUCE):
                continue
            boxes = defaultdict(set)
            for table in tables:
                part = table.plans[number][4][at]
                for peer, box in part.sends + [r for r in part.receives if r[0] != SELF]:
                    colour, position, _ = table.families[part.family]
                    assert peer in (ALL, SELF) if position == 0 else peer == 0
                    boxes[colour].add(box)
            assert all(len(found) == 1 for found in boxes.values())


def square(kind, text="[8] + partial(sum)"):
    """A step among all of three ranks, on top of an exchange."""
    mesh = Mesh(x=3)
    source, target = Layout.parse(text, mesh), Layout.parse("[8]", mesh)
    plan = Exchange().plan(Redistribution(source, target, "int64"))
    messages = [
        Message(sender, receiver, source.box(sender)) for receiver in mesh for sender in mesh
    ]
    step = replace(plan.steps[0], kind=kind, groups=((0, 1, 2),), messages=messages)
    return replace(plan, steps=(step,))


def test_an_all_reduce_sends_to_all_and_gets_one_box_from_all():
    plan = square(StepKind.ALL_REDUCE)
    part = Table(words([("x", plan, tight(plan, 1))], 1)).plans[0][4][0]
    assert part.sends == part.receives == [(ALL, ((0, 8),))]


def test_an_all_gather_sends_to_all_and_gets_a_box_from_each():
    plan = square(StepKind.ALL_GATHER, "[3{x}8]")
    part = Table(words([("x", plan, tight(plan, 1))], 1)).plans[0][4][0]
    assert part.sends == [(ALL, ((3, 6),))]
    assert part.receives == [(0, ((0, 3),)), (SELF, ((3, 6),)), (2, ((6, 8),))]


@pytest.mark.parametrize("kind", [StepKind.ALL_REDUCE, StepKind.ALL_GATHER])
def test_a_call_that_leaves_a_rank_out_is_refused(kind):
    plan = square(kind)
    step = plan.steps[0]
    lost = [m for m in step.messages if (m.sender, m.receiver) != (1, 2)]
    plan = replace(plan, steps=(replace(step, messages=lost),))
    with pytest.raises(PlanError, match="rank 1 does not send one box to all in the all_"):
        words([("x", plan, tight(plan, 1))], 1)


@pytest.mark.parametrize("kind", [StepKind.ALL_TO_ALL, StepKind.PERMUTE])
def test_other_kinds_are_carried_as_an_exchange(kind):
    plan = square(kind)
    part = Table(words([("x", plan, tight(plan, 1))], 1)).plans[0][4][0]
    assert part.kind is StepKind.EXCHANGE


def test_storages_larger_than_the_tile_are_kept():
    plan = Exchange().plan(Redistribution(Layout.root((4,)), Layout.root((4,)), "int8"))
    table = Table(words([("x", plan, [Storage((-1,), (2,)), Storage((0,), (1,))])], 0))
    ((_, _, _, storages, _),) = table.plans
    assert storages == [(((0, 4),), [-1], [2]), (((0, 4),), [0], [1])]


def test_a_tight_storage_is_contiguous_in_c_order():
    assert Storage.of(((2, 5), (4, 8), (1, 3))) == Storage((2, 4, 1), (8, 2, 1))


def test_scratch_tiles_are_contiguous():
    mesh = Mesh(x=2, y=2)
    source = Layout.parse("[4{x}8] + partial(sum){y}", mesh)
    plan = GridMapped().plan(Redistribution(source, Layout.root((8,)), "float64"))
    table = Table(words([("x", plan, tight(plan, 2))], 2))
    assert table.plans[0][3][2] == (((4, 8),), [4], [1])


def test_steps_with_the_same_groups_share_a_family():
    mesh = Mesh(x=4)
    plan = Exchange().plan(Redistribution(Layout.root((8,)), Layout.parse("[2{x}8]", mesh), "int8"))
    table = Table(words([("a", plan, tight(plan, 1)), ("b", plan, tight(plan, 1))], 1))
    assert table.families == [[0, 1, 4]]


def test_a_rank_outside_all_groups_has_no_colour():
    plan = Exchange().plan(
        Redistribution(Layout.root((8,)), Layout.parse("[4{x}8]", Mesh(x=2)), "int8")
    )
    assert Table(words([("a", plan, tight(plan, 5))], 5)).families == [[-1, 0, 0]]


def test_the_fingerprint_depends_on_the_names():
    plan = Exchange().plan(Redistribution(Layout.root((8,)), Layout.root((8,)), "int8"))
    found = {Table(words([(name, plan, tight(plan, 0))], 0)).fingerprint for name in "ab"}
    assert len(found) == 2


def test_every_dtype_that_has_a_code_can_be_reduced():
    assert all(REDUCTIONS["sum"].supports(dtype) for dtype in DTYPES)
    assert sorted(DTYPES.values()) == list(range(1, 14))


def test_a_reduction_of_another_dtype_is_refused():
    source = Layout.parse("[8] + partial(sum)", Mesh(x=2))
    plan = Exchange().plan(Redistribution(source, Layout.root((8,)), "float16"))
    with pytest.raises(PlanError, match="the memlet y: the runtime has no sum of float16 values"):
        words([("the memlet y", plan, tight(plan, 0))], 0)


def test_a_missing_storage_is_refused():
    plan = Exchange().plan(Redistribution(Layout.root((8,)), Layout.root((8,)), "int8"))
    with pytest.raises(PlanError, match="x: 1 storages"):
        words([("x", plan, tight(plan, 0)[:1])], 0)


def test_a_storage_of_other_dimensions_is_refused():
    plan = Exchange().plan(Redistribution(Layout.root((8,)), Layout.root((8,)), "int8"))
    with pytest.raises(PlanError, match="does not have the 1 dimensions"):
        words([("x", plan, [Storage((0, 0), (1, 1)), Storage((0,), (1,))])], 0)


def test_the_table_of_a_rank_among_thousands_has_its_own_messages_only():
    mesh = Mesh(x=64, y=64)
    target = Layout.parse("[2{x}128, 2{y}128]", mesh)
    plan = GridMapped().plan(Redistribution(Layout.root((128, 128)), target, "float32"))
    assert intervals.volume(target.box(4095)) == 4
    assert len(words([("x", plan, tight(plan, 4095))], 4095)) < 100
    assert len(words([("x", plan, tight(plan, 0))], 0)) > 4096
