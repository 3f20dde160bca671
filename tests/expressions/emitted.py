"""What is emitted for a program, as text: the code of tasklets, and the loops of contractions."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
from dace import SDFG, SDFGState
from dace.sdfg import nodes

from distspmd.nodes.contraction import Contraction, windows
from distspmd.nodes.contraction_loops import emit_reduction


def emitted(sdfg: SDFG) -> str:
    """The tasklets and contractions of all states, in order, with what they read and write."""
    return "\n".join(line for state in sdfg.states() for line in _of_state(state))


def _of_state(state: SDFGState) -> Iterator[str]:
    order = list(state.nodes())
    for node in nx.lexicographical_topological_sort(state.nx, key=order.index):
        if isinstance(node, nodes.MapEntry):
            yield f"map {node.map.label} [{_ranges(node.map)}]"
        elif isinstance(node, nodes.Tasklet):
            yield from _edges(state, node)
            yield from (f"  | {line}" for line in node.code.as_string.splitlines())
        elif isinstance(node, Contraction):
            picked = f" pick {node.pick.letter}{node.pick.operand}" if node.pick else ""
            yield f"contraction {node.label} {node.subscripts} by {node.operation}{picked}"
            yield from _edges(state, node)
            loops = emit_reduction(windows(node, state), node)
            yield from (f"  | {line}" for line in loops.splitlines())
        elif isinstance(node, nodes.LibraryNode):
            yield f"{type(node).__name__} {node.label}"
            yield from _edges(state, node)


def _ranges(scope: nodes.Map) -> str:
    return ", ".join(f"{p}={r}" for p, r in zip(scope.params, scope.range, strict=True))


def _edges(state: SDFGState, node: nodes.Node) -> Iterator[str]:
    read = {e.dst_conn: e.data for e in state.in_edges(node) if not e.data.is_empty()}
    written = {e.src_conn: e.data for e in state.out_edges(node) if not e.data.is_empty()}
    for name, memlet in sorted(read.items()):
        yield f"  {name} = {memlet.data}[{memlet.subset}]"
    for name, memlet in sorted(written.items()):
        how = f" by {memlet.wcr}" if memlet.wcr else ""
        yield f"  {memlet.data}[{memlet.subset}] = {name}{how}"
