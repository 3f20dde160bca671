"""How threads share maps: not those of few iterations, and evenly where a dimension is short."""

from __future__ import annotations

import sympy
from dace import SDFG, SDFGState, dtypes
from dace.sdfg import nodes

from distspmd.plans.heuristics import HEURISTICS


def share_maps(sdfg: SDFG) -> None:
    """Let maps of known and few iterations run on one thread, and share others evenly; in place."""
    for node, state in sdfg.all_nodes_recursive():
        if not isinstance(node, nodes.MapEntry) or not isinstance(state, SDFGState):
            continue
        if node.map.schedule != dtypes.ScheduleType.Default:
            continue
        count = sympy.sympify(node.map.range.num_elements())
        if count.is_Integer and count < HEURISTICS.thread_iterations:
            node.map.schedule = dtypes.ScheduleType.Sequential
        elif node.map.collapse == 1:
            node.map.collapse = _shared(node.map)


def _shared(of: nodes.Map) -> int:
    """How many outer dimensions threads share; the last one is left to the lanes of vectors."""
    if set(of.params) & {str(symbol) for symbol in of.range.free_symbols}:
        return 1
    shared, size = 1, sympy.sympify(of.range.size()[0])
    while size.is_Integer and size < HEURISTICS.shared_iterations and shared < len(of.params) - 1:
        size *= of.range.size()[shared]
        shared += 1
    return shared
