"""What analyses ask of the control flow around each space: found once while nothing changes it.

Each answer needs a walk over all states. A program of n statements would walk n times over n.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from dace import SDFG, SDFGState
from dace.sdfg import nodes
from dace.sdfg.state import ControlFlowBlock, ReturnBlock

Graph = TypeVar("Graph", bound=ControlFlowBlock)
Answer = TypeVar("Answer")

_known: list[dict[tuple[Any, Any], Any]] = []
"""Answers by the question and its graph; empty while control flow may change."""


@contextmanager
def unchanged_control_flow() -> Iterator[None]:
    """While nothing rewrites the program, what was found of its blocks and edges is kept."""
    _known.append({})
    try:
        yield
    finally:
        _known.pop()


def _kept(find: Callable[[Graph], Answer]) -> Callable[[Graph], Answer]:
    @functools.wraps(find)
    def found(graph: Graph) -> Answer:
        if not _known:
            return find(graph)
        answers, key = _known[-1], (find, graph)
        if key not in answers:
            answers[key] = find(graph)
        answer: Answer = answers[key]
        return answer

    return found


@_kept
def returns(sdfg: SDFG) -> bool:
    """Whether a program may end before its last state."""
    return any(isinstance(block, ReturnBlock) for block in sdfg.all_control_flow_blocks())


@_kept
def assigned_symbols(sdfg: SDFG) -> list[str]:
    """Symbols that edges between states assign, in order."""
    edges = sdfg.all_interstate_edges(recursive=False)
    return sorted({name for edge in edges for name in edge.data.assignments})


@_kept
def is_straight(graph: Any) -> bool:
    """Whether each block of a region runs after another, whatever is known."""
    plain = all(edge.data.is_unconditional() for edge in graph.edges())
    return plain and all(len(graph.out_edges(node)) <= 1 for node in graph.nodes())


@_kept
def nodes_by_container(sdfg: SDFG) -> dict[str, list[tuple[SDFGState, nodes.AccessNode]]]:
    """Of each container the nodes that stand for it, each with its state."""
    found: dict[str, list[tuple[SDFGState, nodes.AccessNode]]] = {}
    for state in sdfg.states():
        for node in state.data_nodes():
            found.setdefault(node.data, []).append((state, node))
    return found


@_kept
def edges_by_node(state: SDFGState) -> dict[Any, list[tuple[int, Any]]]:
    """Of each node of a state the edges from it and to it, each with its place among all."""
    found: dict[Any, list[tuple[int, Any]]] = {node: [] for node in state.nodes()}
    for place, edge in enumerate(state.edges()):
        found[edge.src].append((place, edge))
        if edge.dst is not edge.src:
            found[edge.dst].append((place, edge))
    return found


@_kept
def named_by_control_flow(sdfg: SDFG) -> set[str]:
    """Containers that edges between states and conditions of regions read."""
    found: set[str] = set()
    for region in sdfg.all_control_flow_regions():
        for edge in region.edges():
            found |= {str(s) for s in edge.data.free_symbols}
        found |= {str(s) for s in region.used_symbols(all_symbols=True)} & set(sdfg.arrays)
    return found
