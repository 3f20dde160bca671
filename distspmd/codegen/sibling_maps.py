"""Maps that read the same arrays over the same range become one, so that these are read once.

before -> after:  ``map i: u[i] = f(h[i])``, ``map i: v[i] = g(h[i])``  ->
``map i: u[i] = f(h[i]); v[i] = g(h[i])``.

This is done to the program of a rank, when all is placed: what moves does not change. Neither map
may need the other, in whatever way; nor may one write what the other one touches under another
node, because an iteration could then find what a later one should. The arrays of the joint map are
bounded: each is a stream of memory, and a processor follows few of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
from dace import SDFG, SDFGState, dtypes
from dace.sdfg import nodes
from dace.transformation.dataflow import MapFusionHorizontal

from distspmd.analysis.control_values import is_control_value
from distspmd.dace_compat.settings import quiet
from distspmd.nodes.handing_on import handed_on

_MOST_ARRAYS = 12
"""Arrays of one map: more streams than a processor's prefetchers follow."""


def join_siblings(sdfg: SDFG) -> None:
    """Join such maps of all states, in place."""
    for state in sdfg.states():
        groups: dict[str, list[nodes.MapEntry]] = {}
        for entry in _simple_maps(state):
            groups.setdefault(str(entry.map.range), []).append(entry)
        for entries in groups.values():
            _join(state, entries)


def _simple_maps(state: SDFGState) -> Iterator[nodes.MapEntry]:
    """Maps at the top level of tasklets alone, whose iterations have no order, as they stand."""
    for node in nx.topological_sort(state.nx):
        if not isinstance(node, nodes.MapEntry) or state.entry_node(node) is not None:
            continue
        if is_control_value(node) or handed_on(state, node) is not None:
            continue
        scope = state.scope_subgraph(node, include_entry=False, include_exit=False)
        plain = all(isinstance(inner, nodes.Tasklet) for inner in scope.nodes())
        edges = [*state.in_edges(node), *state.out_edges(_end(state, node)), *scope.edges()]
        plain = plain and not any(edge.data.is_empty() or edge.data.wcr for edge in edges)
        if plain and node.map.schedule == dtypes.ScheduleType.Default:
            yield node


def _end(state: SDFGState, entry: nodes.MapEntry) -> nodes.ExitNode:
    leave = state.exit_node(entry)
    assert leave is not None, "every map has an end"
    return leave


def _join(state: SDFGState, entries: list[nodes.MapEntry]) -> None:
    """Join each map with the first one before it with which it may be."""
    kept: list[nodes.MapEntry] = []
    for entry in entries:
        for first in kept:
            if _may_join(state, first, entry):
                where: dict[str, Any] = {
                    "first_parallel_map_entry": first,
                    "second_parallel_map_entry": entry,
                }
                options = {"only_toplevel_maps": True, "never_consolidate_edges": True}
                with quiet():
                    if MapFusionHorizontal.can_be_applied_to(state.sdfg, options=options, **where):
                        MapFusionHorizontal.apply_to(
                            state.sdfg,
                            options=options,
                            verify=False,
                            annotate=False,
                            save=False,
                            **where,
                        )
                        break
        else:
            kept.append(entry)


def _may_join(state: SDFGState, first: nodes.MapEntry, second: nodes.MapEntry) -> bool:
    """Whether two maps share what they read, and neither needs what the other one changes."""
    reads = [{edge.data.data for edge in state.in_edges(entry)} for entry in (first, second)]
    writes = [
        {edge.data.data for edge in state.out_edges(_end(state, entry))}
        for entry in (first, second)
    ]
    if reads[0].isdisjoint(reads[1]) or writes[0] & (reads[1] | writes[1]) or writes[1] & reads[0]:
        return False
    if len(reads[0] | reads[1] | writes[0] | writes[1]) > _MOST_ARRAYS:
        return False
    return not nx.has_path(state.nx, first, second) and not nx.has_path(state.nx, second, first)
