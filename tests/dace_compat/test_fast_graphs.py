"""Graphs answer quickly what they answer slowly."""

from __future__ import annotations

import dace
import numpy as np
import pytest
from dace.sdfg.graph import NodeNotFoundError

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
