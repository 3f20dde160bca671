"""SDFGs as JSON and back, with their edges in order: DaCe sorts those of states by connectors.

The order decides names of spaces and the order of code; so a program that was read is the one that
was written.
"""

from __future__ import annotations

import json
from typing import Any

from dace import SDFG, SDFGState, serialize
from dace.sdfg import nodes
from dace.sdfg.state import ConditionalBlock

from distspmd.dace_compat.fast_graphs import quick_graphs
from distspmd.lowering import RECORD


def graph_text(sdfg: SDFG) -> str:
    """An SDFG as JSON, without the record of its lowering."""
    with quick_graphs():
        described = sdfg.to_json()
        _put_in_order(sdfg, described)
    described["attributes"]["global_code"].pop(RECORD, None)
    return str(serialize.dumps(described))


def read_graph(text: str) -> SDFG:
    """The SDFG of its JSON."""
    found: SDFG = SDFG.from_json(json.loads(text))
    return found


def _put_in_order(graph: Any, described: dict[str, Any]) -> None:
    """Describe the edges of all states in their own order."""
    if isinstance(graph, ConditionalBlock):
        for (_, branch), (_, own) in zip(graph.branches, described["branches"], strict=True):
            _put_in_order(branch, own)
        return
    if isinstance(graph, SDFGState):
        places = {node: str(number) for number, node in enumerate(graph.nodes())}
        by_ends: dict[Any, list[Any]] = {}
        for edge in reversed(described["edges"]):
            ends = edge["src"], edge["src_connector"], edge["dst"], edge["dst_connector"]
            by_ends.setdefault(ends, []).append(edge)
        described["edges"] = [
            by_ends[places[source], source_end, places[target], target_end].pop()
            for source, source_end, target, target_end, _ in graph.edges()
        ]
    if not hasattr(graph, "nodes"):
        return
    for node, own in zip(graph.nodes(), described["nodes"], strict=True):
        if isinstance(node, nodes.NestedSDFG):
            if node.sdfg is not None:
                _put_in_order(node.sdfg, own["attributes"]["sdfg"])
        elif not isinstance(node, nodes.Node):
            _put_in_order(node, own)
