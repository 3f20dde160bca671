"""Loops whose temporaries have extents that depend on data become maps, if their order is free.

before -> after:  ``for i in range(n): cols = col[row[i]:row[i + 1]]; ...``  ->  the same in a map
over ``i``. At the top level such a temporary has no extent before the run; in the body of a map it
belongs to one iteration.
"""

from __future__ import annotations

from typing import Any

from dace import SDFG, SDFGState
from dace.sdfg import nodes
from dace.sdfg.state import LoopRegion
from dace.transformation.interstate import LoopToMap

from distspmd.analysis.iteration_spaces import source


def map_data_loops(sdfg: SDFG) -> None:
    """Make maps of such loops, in place; one whose iterations depend on each other stays."""
    loops = [r for r in sdfg.all_control_flow_regions(recursive=False) if isinstance(r, LoopRegion)]
    for loop in reversed(loops):  # inner ones first
        match: dict[str, Any] = {"loop": loop}
        if _decides_extents(sdfg, loop) and LoopToMap.can_be_applied_to(sdfg, **match):
            lines = [n.debuginfo for s in _states(loop) for n in s.data_nodes() if source(s, n)]
            before = {node for state in sdfg.states() for node in state.nodes()}
            LoopToMap.apply_to(sdfg, annotate=False, **match)
            after = {node for state in sdfg.states() for node in state.nodes()}
            for node in after - before if lines else ():
                if isinstance(node, nodes.MapEntry):
                    node.map.debuginfo = lines[0]


def _states(loop: LoopRegion) -> list[SDFGState]:
    return [block for block in loop.all_control_flow_blocks() if isinstance(block, SDFGState)]


def _decides_extents(sdfg: SDFG, loop: LoopRegion) -> bool:
    """Whether a temporary in the loop has an extent that an edge in the loop assigns."""
    edges = loop.all_interstate_edges(recursive=False)
    assigned = {name for edge in edges for name in edge.data.assignments}
    used = {node.data for state in _states(loop) for node in state.data_nodes()}
    temporaries = (sdfg.arrays[name] for name in used if sdfg.arrays[name].transient)
    return any(assigned & set(map(str, c.free_symbols)) for c in temporaries)
