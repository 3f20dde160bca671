"""The values of symbols that depend on data, such as ``c = col[k]`` on an edge between states.

The value of a symbol is known at a place if exactly one edge of its SDFG assigns it, and if control
flow passes through that edge before it reaches the place, in the same iteration of all loops.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import networkx as nx
import sympy
from dace import SDFG, InterstateEdge, Memlet, SDFGState, dtypes, symbolic
from dace.sdfg import nodes
from dace.sdfg.graph import Edge as GraphEdge
from dace.sdfg.graph import MultiConnectorEdge
from dace.sdfg.state import AbstractControlFlowRegion, ControlFlowBlock, LoopRegion
from dace.subsets import Range


@dataclass(frozen=True, slots=True)
class ElementValue:
    """An element of a container, whose value is known when the program runs: ``col[k]``.

    Attributes:
        data: name of the container in the SDFG that the load is seen from.
        indices: one for each dimension.
        edge: the edge at the border of the iteration space through which the container comes.
    """

    data: str
    indices: tuple[sympy.Expr, ...]
    edge: MultiConnectorEdge[Memlet] | None = field(default=None, compare=False, repr=False)


Value: TypeAlias = ElementValue | sympy.Expr
"""What a symbol holds: an element of a container, or an expression of other symbols."""


PLACE = sympy.Function("distspmd_place", integer=True)
"""The place of an index among so many elements, which nothing is told of if it is none."""


def _is_checked(part: sympy.Basic) -> bool:
    """Whether a part of an expression is an index that the program checks."""
    return str(getattr(part, "func", "")) == "distspmd_checked_index"


def terms(value: Value) -> tuple[sympy.Expr, ...]:
    """Expressions that a value is made of."""
    return value.indices if isinstance(value, ElementValue) else (value,)


def values_at(block: ControlFlowBlock) -> dict[str, Value]:
    """Values of the symbols that surely were assigned when control flow comes to a block."""
    sdfg = block.sdfg
    once = _assigned_once(sdfg)
    found = {}
    for name, edge in _assigned_before(block, once).items():
        value = _parsed(edge.data.assignments[name], sdfg)
        if value is None:
            continue
        earlier = _assigned_before(edge.src, once)
        mentioned = {s.name for term in terms(value) for s in term.free_symbols}
        if mentioned & once.keys() <= earlier.keys():
            found[name] = value
    return found


def _assigned_once(sdfg: SDFG) -> dict[str, GraphEdge[InterstateEdge]]:
    """Symbols that one edge assigns, and nothing else, with that edge."""
    edges: dict[str, list[GraphEdge[InterstateEdge]]] = {}
    variables = set()
    for graph in sdfg.all_control_flow_regions(recursive=False):
        if isinstance(graph, LoopRegion):
            variables.add(graph.loop_variable)
        for edge in graph.edges():
            for name in edge.data.assignments:
                edges.setdefault(name, []).append(edge)
    return {n: found[0] for n, found in edges.items() if len(found) == 1 and n not in variables}


def _assigned_before(
    block: ControlFlowBlock, once: dict[str, GraphEdge[InterstateEdge]]
) -> dict[str, GraphEdge[InterstateEdge]]:
    """Those symbols whose edges control flow must have come through."""
    found = {}
    for graph, inner in _around(block):
        if not graph.edges() or not nx.is_directed_acyclic_graph(graph.nx):
            continue
        before = {inner, *_dominators(graph, inner)}
        here = set(graph.edges())
        found.update({n: e for n, e in once.items() if e in here and e.dst in before})
    return found


def _around(
    block: ControlFlowBlock,
) -> Iterator[tuple[AbstractControlFlowRegion, ControlFlowBlock]]:
    """Graphs around a block, each with its own block that contains it."""
    while not isinstance(block, SDFG):
        graph = block.parent_graph
        yield graph, block
        block = graph


def _dominators(
    graph: AbstractControlFlowRegion, block: ControlFlowBlock
) -> Iterator[ControlFlowBlock]:
    """Blocks through which every way from the start to a block goes."""
    above: dict[ControlFlowBlock, ControlFlowBlock | None]
    above = nx.immediate_dominators(graph.nx, graph.start_block)
    at = above.get(block)
    while at is not None:
        yield at
        at = above.get(at) if above.get(at) is not at else None


def _parsed(text: str, sdfg: SDFG) -> Value | None:
    """The right side of an assignment: ``a[i, j]``, the scalar ``a``, or no data at all."""
    try:
        tree = ast.parse(str(text).strip(), mode="eval").body
    except SyntaxError:
        return None
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if not names & sdfg.arrays.keys():
        expression: sympy.Expr = symbolic.pystr_to_symbolic(ast.unparse(tree))
        return expression.replace(_is_checked, lambda call: PLACE(*call.args[:2]))
    if isinstance(tree, ast.Name):
        return ElementValue(tree.id, (sympy.Integer(0),))
    if not isinstance(tree, ast.Subscript) or not isinstance(tree.value, ast.Name):
        return None
    parts = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
    inside = {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
    if inside & sdfg.arrays.keys() or any(isinstance(part, ast.Slice) for part in parts):
        return None
    return ElementValue(
        tree.value.id, tuple(symbolic.pystr_to_symbolic(ast.unparse(part)) for part in parts)
    )


def load_through(state: SDFGState, edge: MultiConnectorEdge[Memlet]) -> ElementValue | None:
    """The element that comes through an edge from a container outside of all maps, if it is one."""
    if edge.data.is_empty() or edge.data.wcr is not None:
        return None
    border = state.memlet_path(edge)[0]
    subset = edge.data.get_src_subset(edge, state)
    if not isinstance(border.src, nodes.AccessNode) or state.entry_node(border.src) is not None:
        return None
    if not isinstance(subset, Range) or any(size != 1 for size in subset.size()):
        return None
    return ElementValue(border.src.data, tuple(map(sympy.sympify, subset.min_element())), border)


def connector_values(state: SDFGState, entries: Iterable[nodes.MapEntry]) -> dict[str, Value]:
    """What comes into maps through connectors that their ranges name."""
    return {
        edge.dst_conn: load
        for entry in entries
        for edge in state.in_edges(entry)
        if edge.dst_conn and not edge.dst_conn.startswith("IN_")
        if (load := load_through(state, edge)) is not None
    }


def index_in_code(tasklet: nodes.Tasklet, connector: str) -> list[str] | None:
    """The one index with which the code of a tasklet chooses from a connector, if it is one."""
    if tasklet.language is not dtypes.Language.Python:
        return None
    walked = [node for statement in tasklet.code.code for node in ast.walk(statement)]
    mentions = [n for n in walked if isinstance(n, ast.Name) and n.id == connector]
    chosen = [n for n in walked if isinstance(n, ast.Subscript) and n.value in mentions]
    indices = {ast.unparse(node.slice): node.slice for node in chosen}
    if len(chosen) != len(mentions) or len(indices) != 1:
        return None
    (index,) = indices.values()
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if any(isinstance(node, (ast.Slice, ast.Subscript)) for p in parts for node in ast.walk(p)):
        return None
    return [ast.unparse(part) for part in parts]
