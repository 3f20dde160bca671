"""Each kind of step has one row, and what prices, proves, encodes and runs steps reads the rows."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.collectives import Ends, First, StepKind, received_in_groups
from distspmd.plans.contracts import find_malformed
from distspmd.plans.plan import Message, Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.runtime.engine.collectives_header import HEADER, header

ROOT = Path(__file__).resolve().parents[2] / "distspmd"
READERS = (
    *("plans/contracts.py", "plans/cost.py", "plans/encoding.py", "plans/plan.py"),
    *("plans/simulator.py", "plans/verifier.py", "plans/rewrites/chunk.py"),
    *(
        "runtime/engine/engine.py",
        "runtime/redistribution/redistribute.py",
        "runtime/shared_memory/windows.py",
    ),
)
"""What treats any step by what its kind promises."""


@pytest.mark.parametrize("reader", READERS)
def test_readers_name_no_kind_but_the_exchange(reader):
    """The kind that any other may be carried as is the only one that they know."""
    named = {
        node.attr
        for node in ast.walk(ast.parse((ROOT / reader).read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "StepKind"
    }
    assert named <= {"EXCHANGE"}


def test_the_runtime_has_the_same_rows():
    assert HEADER.read_text() == header()


@pytest.mark.parametrize("kind", [kind for kind in StepKind if kind.spec.is_called])
def test_each_call_of_the_runtime_is_made(kind):
    text = (HEADER.parent / "step.hpp").read_text()
    assert f"case Kind::{kind}:" in text
    assert f"{kind.spec.call}(" in text


def test_codes_are_different():
    codes = [kind.value for kind in StepKind]
    assert len(codes) == len(set(codes))
    assert [StepKind(code) for code in codes] == list(StepKind)


@pytest.mark.parametrize("kind", list(StepKind))
def test_a_row_does_not_contradict_itself(kind):
    spec = kind.spec
    assert (spec.sends is Ends.NONE) == (spec.receives is Ends.NONE)
    if spec.common:
        assert spec.to_all or spec.from_all
    if spec.first is First.SENDS:
        assert not spec.from_all
    if spec.first is First.RECEIVES:
        assert not spec.to_all
    if spec.exchanged:
        assert not spec.is_called
        assert not spec.from_all


WHOLE = ((0, 8),)
EVERY = tuple(Message(a, b, WHOLE) for a in range(4) for b in range(4))


def of_kind(kind):
    """A step that keeps the promise of its kind: all that four ranks may send in one."""
    spec = kind.spec
    messages = EVERY
    if not spec.moves:
        messages = tuple(m for m in messages if m.sender == m.receiver)
    elif spec.first is First.SENDS:
        messages = tuple(m for m in messages if m.sender == 0)
    elif spec.first is First.RECEIVES:
        messages = tuple(m for m in messages if m.receiver == 0)
    elif spec.sends is Ends.ONE:
        messages = tuple(m for m in messages if m.receiver == (m.sender + 1) % 4)
    groups = ((0, 1, 2, 3),) if spec.moves else ()
    return Step(kind, 0, 1, groups, messages, "sum" if spec.from_all else None)


def broken(step):
    """The step with one message that its kind forbids, or without one that it needs."""
    spec, messages = step.kind.spec, list(step.messages)
    if not spec.moves or spec.first is not None or spec.sends is Ends.ONE:
        messages.append(Message(1, 3, WHOLE))
    elif spec.to_all or spec.from_all:
        messages.remove(Message(2, 1, WHOLE))
    else:
        messages.append(Message(2, 1, WHOLE))
    return replace(step, messages=tuple(messages))


@pytest.mark.parametrize("kind", [kind for kind in StepKind if kind is not StepKind.EXCHANGE])
def test_a_step_that_breaks_its_promise_is_refused(kind):
    mesh = Mesh(x=4)
    source = Layout.parse("[8] + partial(sum)" if kind.spec.from_all else "[8]", mesh)
    move = Redistribution(source, Layout.parse("[8]", mesh), "float64")
    good = of_kind(kind)
    assert list(find_malformed(good, Plan(move, "test", (good,)))) == []
    bad = broken(good)
    assert list(find_malformed(bad, Plan(move, "test", (bad,)))) != []


@pytest.mark.parametrize("kind", list(StepKind))
def test_what_goes_to_all_leaves_once_and_what_is_combined_is_delivered_once(kind):
    traffic = of_kind(kind).traffic
    spec = kind.spec
    senders = traffic.sent[traffic.sent > 0]
    receivers = traffic.delivered[traffic.delivered > 0]
    if spec.to_all:
        assert (senders == 8).all()
    if spec.from_all:
        assert (receivers == 8).all()


RECEIVED = {
    StepKind.COPY: [0, 0, 0, 0],
    StepKind.SCATTER: [0, 8, 8, 8],
    StepKind.BROADCAST: [0, 8, 8, 8],
    StepKind.REDUCE: [8, 8, 8, 0],
    StepKind.GATHER: [24, 0, 0, 0],
    StepKind.EXCHANGE: [24, 24, 24, 24],
    StepKind.ALL_TO_ALL: [24, 24, 24, 24],
    StepKind.ALL_GATHER: [24, 24, 24, 24],
    StepKind.PERMUTE: [8, 8, 8, 8],
    StepKind.REDUCE_SCATTER: [24, 24, 24, 24],
    StepKind.ALL_REDUCE: [12, 12, 12, 12],
}
"""Elements that each of four ranks receives where every message has eight."""


@pytest.mark.parametrize("kind", list(StepKind))
def test_a_rank_receives_what_the_algorithm_of_a_step_brings_to_it(kind):
    received = of_kind(kind).received()
    assert [received[rank] for rank in range(4)] == RECEIVED[kind]


@pytest.mark.parametrize("n", [1, 3, 7, 11])
@pytest.mark.parametrize("sizes", [(1,), (2,), (3, 1, 2), (5, 4)])
def test_calls_that_combine_move_as_little_as_any_algorithm(sizes, n):
    ends = np.cumsum(sizes)
    groups = tuple(tuple(range(end - size, end)) for end, size in zip(ends, sizes, strict=True))
    whole = np.full(int(ends[-1]), n)
    first = np.isin(np.arange(ends[-1]), ends - sizes) * whole
    chain = received_in_groups(StepKind.REDUCE.spec, groups, first)
    ring = received_in_groups(StepKind.ALL_REDUCE.spec, groups, whole)
    for group in map(list, groups):
        assert chain[group].sum() == (len(group) - 1) * n
        assert ring[group].sum() == 2 * (len(group) - 1) * n
        assert chain[group].max() == n * (len(group) > 1)
        assert ring[group].max() - ring[group].min() <= 2
