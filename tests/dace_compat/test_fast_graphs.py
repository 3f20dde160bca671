"""Graphs answer quickly what they answer slowly."""

from __future__ import annotations

import dace
import networkx as nx
import numpy as np
import pytest
from dace.sdfg.graph import NodeNotFoundError, OrderedDiGraph
from hypothesis import given
from hypothesis import strategies as st

from distspmd.dace_compat.fast_graphs import quick_graphs


def test_the_quick_answers_are_the_slow_ones_and_nothing_stays() -> None:
    @dace.program
    def several(a: dace.float64[8], b: dace.float64[8]):
        for t in range(3):
            a[:] = a * b + t
        return np.sum(a), a @ b

    sdfg = several.to_sdfg(simplify=False)
    graphs = [sdfg, *sdfg.all_control_flow_regions(), *sdfg.states()]
    slow = [(g.sink_nodes(), [g.node_id(node) for node in g.nodes()]) for g in graphs]
    before = type(sdfg).node_id, type(sdfg).sink_nodes
    with quick_graphs():
        quick = [(g.sink_nodes(), [g.node_id(node) for node in g.nodes()]) for g in graphs]
        assert (type(sdfg).node_id, type(sdfg).sink_nodes) != before
        with pytest.raises(NodeNotFoundError):
            sdfg.node_id(dace.SDFGState("of another program"))
    assert slow == quick
    assert (type(sdfg).node_id, type(sdfg).sink_nodes) == before


def test_numbers_of_nodes_follow_what_comes_and_goes() -> None:
    state = dace.SDFG("changing").add_state()
    tasklets = [state.add_tasklet(f"t{n}", {}, {}, "pass") for n in range(4)]
    with quick_graphs():
        assert [state.node_id(node) for node in tasklets] == [0, 1, 2, 3]
        state.remove_node(tasklets[1])
        last = state.add_tasklet("last", {}, {}, "pass")
        assert [state.node_id(node) for node in (*tasklets[2:], last)] == [1, 2, 3]
        later = state.add_tasklet("later", {}, {}, "pass")
        assert state.node_id(later) == 4
        with pytest.raises(NodeNotFoundError):
            state.node_id(tasklets[1])


@given(st.integers(2, 9), st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=14))
def test_cycles_are_those_of_dace(size: int, pairs: list[tuple[int, int]]) -> None:
    graph: OrderedDiGraph[int, None] = OrderedDiGraph()
    for node in range(size):
        graph.add_node(node)
    for source, target in {(a % size, b % size) for a, b in pairs}:
        graph.add_edge(source, target)
    slow = not nx.is_directed_acyclic_graph(graph.nx)
    with quick_graphs():
        assert graph.has_cycles() == slow


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 5)), max_size=10))
def test_parts_of_a_state_are_those_of_dace(edges: list[tuple[int, int, int]]) -> None:
    """Tasklets that read containers and write others, which later ones read."""
    sdfg = dace.SDFG("parts")
    for number in range(6):
        sdfg.add_array(f"x{number}", [4], dace.float64)
    state = sdfg.add_state()
    arrays = [state.add_access(f"x{number}") for number in range(6)]
    tasklets = [state.add_tasklet(f"t{n}", {}, {}, "pass") for n in range(5)]
    for source, through, target in edges:
        if source < target:  # in order, so that there are no cycles
            state.add_edge(
                arrays[source],
                None,
                tasklets[through],
                f"i{source}",
                dace.Memlet(f"x{source}[0]"),
            )
            if target > through:
                state.add_edge(
                    tasklets[through],
                    f"o{target}",
                    arrays[target],
                    None,
                    dace.Memlet(f"x{target}[0]"),
                )
    if state.has_cycles():
        return

    def asked() -> list[object]:
        parts = [view.nodes() for view in dace.sdfg.concurrent_subgraphs(state)]
        return [parts, state.read_and_write_sets(), sdfg.read_and_write_sets()]

    slow = asked()
    with quick_graphs():
        assert asked() == slow


def test_scopes_are_those_of_dace() -> None:
    sdfg = dace.SDFG("scopes")
    for name in "xy":
        sdfg.add_array(name, [4, 6], dace.float64)
    state = sdfg.add_state()
    state.add_mapped_tasklet(
        "flat", {"i": "0:4"}, {"a": dace.Memlet("x[i, 0]")}, "b = a",
        {"b": dace.Memlet("y[i, 0]")}, external_edges=True,
    )  # fmt: skip
    outer, leave = state.add_map("outer", {"i": "0:4"})
    inner, back = state.add_map("inner", {"j": "0:6"})
    tasklet = state.add_tasklet("body", {"a"}, {"b"}, "b = a + 1")
    x, y = state.add_read("x"), state.add_write("y")
    state.add_memlet_path(x, outer, inner, tasklet, dst_conn="a", memlet=dace.Memlet("x[i, j]"))
    state.add_memlet_path(tasklet, back, leave, y, src_conn="b", memlet=dace.Memlet("y[i, j]"))

    def asked() -> list[object]:
        entries = [n for n in state.nodes() if isinstance(n, dace.nodes.EntryNode)]
        views = [
            state.scope_subgraph(entry, include_entry=a, include_exit=b)
            for entry in entries
            for a in (True, False)
            for b in (True, False)
        ]
        found = [(view.nodes(), view.edges(), view.entry) for view in views]
        return [found, [*map(state.entry_node, state.nodes())], [*map(state.exit_node, entries)]]

    slow = asked()
    before = type(state).scope_subgraph
    with quick_graphs():
        assert type(state).scope_subgraph is not before
        assert asked() == slow
        state.remove_node(state.add_access("x"))  # what is known of scopes is found again
        assert asked() == slow
        with pytest.raises(TypeError, match=r"should be dace\.nodes\.EntryNode"):
            state.scope_subgraph(tasklet)
    assert type(state).scope_subgraph is before
