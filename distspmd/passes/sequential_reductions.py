"""Loops that reduce run in order, so that the operand of a rank has the same bits in each run.

Threads would combine their iterations in one element in the order in which they arrive.
"""

from __future__ import annotations

from dataclasses import dataclass

from dace import SDFG, SDFGState, dtypes
from dace.sdfg import nodes

from distspmd.passes.compilation import Compilation


@dataclass(frozen=True)
class SequentialReductions:
    """Maps that reduce run on one thread, where results shall have the same bits each time."""

    name: str = "sequential-reductions"

    def apply(self, compilation: Compilation) -> None:
        """Rewrite the SDFG in place, if the compilation is deterministic."""
        if compilation.deterministic:
            reduce_in_order(compilation.sdfg)


def reduce_in_order(sdfg: SDFG) -> None:
    """Run maps on one thread that write with a conflict resolution, in place."""
    for node, state in sdfg.all_nodes_recursive():
        if isinstance(node, nodes.MapEntry) and isinstance(state, SDFGState):
            leaving = state.out_edges(state.exit_node(node))
            if any(edge.data.wcr is not None for edge in leaving):
                node.map.schedule = dtypes.ScheduleType.Sequential
