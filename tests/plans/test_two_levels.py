"""Costs on machines of several nodes: what crosses their borders, and that no more costs less."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import redistributions

import distspmd
from distspmd.errors import ArgumentError
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.collectives import StepKind
from distspmd.plans.cost import between_nodes, cost
from distspmd.plans.group_messages import GroupMessages
from distspmd.plans.machine import Machine
from distspmd.plans.messages import Messages
from distspmd.plans.plan import Plan, Step
from distspmd.plans.redistribution import Redistribution
from distspmd.scheduling import traffic
from distspmd.scheduling.columns import Columns
from distspmd.scheduling.tiles import Tiles
from distspmd.solvers.collectives.solver import Collectives
from distspmd.solvers.exchange import Exchange

N = 64
NODES = Machine(node_ranks=4, far_alpha=1e-5, far_beta=1e-9)


def planned(solver: Any, source: str, target: str, mesh: Mesh, n: int = N) -> Plan:
    ends = [Layout.parse(text.replace("N", str(n)), mesh) for text in (source, target)]
    plan = solver.plan(Redistribution(*ends, "float64"))
    assert isinstance(plan, Plan)
    return plan


def test_ranks_of_one_node_know_no_other_level() -> None:
    plan = planned(Collectives(), "[8{x}N, 8]", "[N, 8]", Mesh(x=8))
    assert cost(plan, replace(NODES, node_ranks=8)) == cost(plan, Machine())


def test_a_node_has_a_whole_number_of_ranks() -> None:
    with pytest.raises(ArgumentError, match="whole number of ranks"):
        Machine(node_ranks=2.5)  # type: ignore[arg-type]


def test_groups_within_nodes_are_cheap_and_groups_across_them_are_not() -> None:
    mesh = Mesh(far=2, near=4)  # ranks of one `near` group are neighbours
    costs = {}
    for axis, part in (("far", 32), ("near", 16)):
        plan = planned(Collectives(), f"[{part}{{{axis}}}N, 8]", "[N, 8]", mesh)
        costs[axis] = cost(plan, NODES).seconds
        far = between_nodes(plan.steps[0], 4)
        assert far.elements == (0 if axis == "near" else 4 * 8 * 32)  # four groups, half of it each
    assert costs["near"] == cost(plan, Machine()).seconds < costs["far"]


def all_to_all() -> Step:
    """Rows become columns."""
    plan = planned(Collectives(), "[8{x}N, N]", "[N, 8{x}N]", Mesh(x=8))
    return next(step for step in plan.steps if step.kind is StepKind.ALL_TO_ALL)


def test_a_tree_enters_each_node_once_and_an_exchange_for_each_rank() -> None:
    gathered = planned(Collectives(), "[8{x}N, 8]", "[N, 8]", Mesh(x=8)).steps[0]
    assert gathered.kind is StepKind.ALL_GATHER
    assert between_nodes(gathered, 4).elements == 7 * 8 * 8
    turned = all_to_all()
    assert between_nodes(turned, 4).elements == 4 * 4 * 64  # of four ranks, from four others
    assert between_nodes(turned, 4).calls == 2  # the pairs are of one rank of each node


def test_what_is_not_listed_crosses_as_what_is() -> None:
    held = all_to_all().table
    assert isinstance(held, GroupMessages)
    listed = replace(all_to_all(), messages=Messages(held.table))
    fresh = GroupMessages(held.spec, held.members, held.have, held.want, traffic=listed.traffic)
    assert not fresh.is_listed
    late = replace(all_to_all(), messages=fresh)
    assert between_nodes(late, 4) == between_nodes(listed, 4)


@given(
    redistributions(),
    st.integers(1, 8),
    st.sampled_from(["alpha", "beta", "copy", "far_alpha", "far_beta"]),
)
def test_a_slower_machine_takes_no_less(move: Any, node: int, name: str) -> None:
    machine = replace(NODES, node_ranks=node)
    slower = replace(machine, **{name: 3 * getattr(machine, name)})
    for solver in (Exchange(), Collectives()):
        plan = solver.plan(move)
        if isinstance(plan, Plan):
            assert cost(plan, machine).seconds <= cost(plan, slower).seconds


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("[N{x}N*, 8]", "[N*, 8]"),
        ("[N{x}N*, N*]", "[N*, N{x}N*]"),
        ("[N*, 8] + partial(sum){x}", "[N*, 8]"),
        ("[N*, 8] + partial(sum){x}", "[N{x}N*, 8]"),
    ],
)
@pytest.mark.parametrize("machine", [Machine(), NODES], ids=["one node", "nodes"])
def test_costs_rise_with_the_bytes_and_with_the_ranks(
    source: str, target: str, machine: Machine
) -> None:
    def seconds(ranks: int, n: int) -> float:
        texts = (t.replace("N{", f"{n // ranks}{{").replace("N*", str(n)) for t in (source, target))
        ends = [Layout.parse(text, Mesh(x=ranks)) for text in texts]
        return cost(distspmd.plan(*ends, "float64", machine=machine), machine).seconds

    by_bytes = [seconds(8, 8 * size) for size in (1, 4, 16, 64, 256)]
    assert by_bytes == sorted(by_bytes)
    if target == "[N*, 8]":  # what each rank has in the end is the same
        by_ranks = [seconds(ranks, 4096) for ranks in (2, 4, 8, 16, 32)]
        assert by_ranks == sorted(by_ranks)


def test_the_search_sees_what_crosses_nodes() -> None:
    mesh = Mesh(far=2, near=4)
    columns = Columns(mesh.size)
    texts = ["[32{far}64, 8]", "[16{near}64, 8]", "[64, 8]"]
    layouts = [Tiles.of(columns, np.stack([Layout.parse(text, mesh).bounds])) for text in texts]
    far, near = (traffic.move(each, layouts[2], 8, NODES).seconds[0, 0] for each in layouts[:2])
    alone = traffic.move(layouts[1], layouts[2], 8, Machine()).seconds[0, 0]
    assert near == alone < far
    assert far - NODES.far_alpha >= 32 * 8 * 8 * NODES.far_beta  # half of it, once for a node


def test_the_search_sees_operands_on_other_nodes() -> None:
    """All eight ranks have an operand of a whole array, or those of each node of a half."""
    mesh, operands = Mesh(far=2, near=4), {"[64, 8]": 8, "[32{far}64, 8]": 4}
    seconds = {}
    for text, count in operands.items():
        held = Tiles.of(Columns(mesh.size), np.stack([Layout.parse(text, mesh).bounds]))
        for machine in (Machine(), NODES):
            found = traffic.reduce(held, np.array([count]), held, 8, machine).seconds
            seconds[text, machine.has_nodes] = float(found[0, 0])
    assert seconds["[64, 8]", True] > 2 * seconds["[64, 8]", False]
    assert seconds["[32{far}64, 8]", True] == seconds["[32{far}64, 8]", False]
