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
