"""Which maps run on one thread: those that are done before another thread would have begun."""

from __future__ import annotations

import sympy
from dace import SDFG, SDFGState, dtypes
from dace.sdfg import nodes

WORTH = 1 << 13
"""Iterations of a map that are worth threads."""


def spare_threads(sdfg: SDFG) -> None:
    """Let maps of known and few iterations run on one thread, in place."""
    for node, state in sdfg.all_nodes_recursive():
        if not isinstance(node, nodes.MapEntry) or not isinstance(state, SDFGState):
            continue
        count = sympy.sympify(node.map.range.num_elements())
        if node.map.schedule == dtypes.ScheduleType.Default and count.is_Integer and count < WORTH:
            node.map.schedule = dtypes.ScheduleType.Sequential
