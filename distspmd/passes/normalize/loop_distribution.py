"""A loop in order whose statements separate becomes several: some have an order, others have none.

before -> after:  ``for i: s = s + x[i]; y[i] = s * 2``  ->  a scan that leaves each ``s`` in an
array, and a loop over ``i`` that reads them and has no order. Numbers that iterations hand on get
an element for each iteration (``n + 1`` of them, the first one from before the loop), and so do
those that an iteration has for itself. Statements that need each other in a circle stay together.
A number that is ``a * before + b``, with ``a`` and ``b`` of each iteration, is a scan
(:mod:`distspmd.passes.normalize.loop_scans`).
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import sympy
from dace import SDFG, InterstateEdge, Memlet, SDFGState
from dace.sdfg import nodes
from dace.sdfg.state import ControlFlowBlock, LoopRegion
from dace.subsets import Range

from distspmd.analysis.accesses import Access, edges_of
from distspmd.analysis.dependences import LoopRange, accesses_of, carried_between
from distspmd.analysis.loop_reductions import find_reductions
from distspmd.analysis.whole_program import is_straight
from distspmd.nodes.computation import Computation
from distspmd.passes.normalize.loop_dimensions import replace_loop
from distspmd.passes.normalize.loop_scans import Scan, recurrence_of

LONG = 1 << 12
"""Iterations from which on a loop is separated."""


@dataclass
class _Body:
    """A loop and what its iterations hand on.

    Attributes:
        loop: the loop.
        states: of its body, in order.
        first, step, count: of its variable; the step is 1 or -1.
        statements: tasklets and maps in order, each with its state.
        handed: numbers that one tasklet writes in each iteration, with that tasklet.
        own: numbers of which each iteration has its own value.
    """

    loop: LoopRegion
    states: list[SDFGState]
    first: sympy.Expr
    step: int
    count: int
    statements: list[tuple[SDFGState, nodes.Node]]
    handed: dict[str, nodes.Node] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)

    @property
    def sdfg(self) -> SDFG:
        """The program."""
        found: SDFG = self.loop.sdfg
        return found

    @property
    def turn(self) -> sympy.Expr:
        """The number of the iteration, from zero on."""
        variable = sympy.Symbol(str(self.loop.loop_variable))
        return sympy.expand((variable - self.first) * self.step)


def separate(loop: LoopRegion, values: LoopRange, own: Collection[str]) -> list[LoopRegion] | None:
    """Replace a loop by several, in place; those that are new, or None where it stays.

    Args:
        loop: the loop, which does nothing but write containers.
        values: of its variable.
        own: containers and symbols of which each iteration has its own value.
    """
    body = _body_of(loop, values, own)
    if body is None:
        return None
    graph = _graph(body)
    groups = list(nx.strongly_connected_components(graph))
    order = list(nx.lexicographical_topological_sort(_condensed(graph, groups), key=lambda n: n))
    parts: list[list[int] | Scan] = []
    gains = False
    for number in order:
        members = sorted(_members(groups, number))
        circular = len(members) > 1 or graph.has_edge(members[0], members[0])
        scan = _scan_of(body, members) if circular else None
        gains |= scan is not None or not circular
        if scan is not None:
            parts.append(scan)
            rest = [m for m in members if body.statements[m][1] is not scan.recurrence.writer]
            parts.extend([m] for m in rest)
        else:
            parts.append(members)
    if not gains or (len(parts) == 1 and not isinstance(parts[0], Scan)):
        return None
    return _emit(body, parts)


def _members(groups: Sequence[set[int]], first: int) -> set[int]:
    return next(group for group in groups if min(group) == first)


def _condensed(graph: Any, groups: Sequence[set[int]]) -> Any:
    """The groups, each by its first statement, with what has to come before what."""
    by = {member: min(group) for group in groups for member in group}
    found: Any = nx.DiGraph()
    found.add_nodes_from(by.values())
    found.add_edges_from((by[a], by[b]) for a, b in graph.edges() if by[a] != by[b])
    return found


# -- the body -------------------------------------------------------------------------------------


def _body_of(loop: LoopRegion, values: LoopRange, own: Collection[str]) -> _Body | None:
    """A body of tasklets and maps that containers connect; None for another one."""
    sdfg, count = loop.sdfg, values.count
    straight = is_straight(loop) and not any(e.data.assignments for e in loop.edges())
    blocks = list(nx.topological_sort(loop.nx)) if straight else []
    if not blocks or not all(isinstance(block, SDFGState) for block in blocks):
        return None
    if abs(values.step) != 1 or count is None or not count.is_Integer or count < LONG:
        return None
    statements = [
        (state, node)
        for state in blocks
        for node in nx.topological_sort(state.nx)
        if state.entry_node(node) is None
        if not isinstance(node, nodes.AccessNode | nodes.MapExit)
    ]
    if not all(isinstance(node, nodes.Tasklet | nodes.MapEntry) for _, node in statements):
        return None
    if not all(map(_is_connected, blocks)):
        return None
    body = _Body(loop, blocks, values.first, values.step, int(count), statements)
    return body if _find_numbers(body, own, sdfg) else None


def _is_connected(state: SDFGState) -> bool:
    """Whether containers alone are between tasklets and maps."""
    for edge in edges_of(state):
        if state.entry_node(edge.src) is not None or isinstance(edge.src, nodes.MapEntry):
            continue
        ends = [isinstance(node, nodes.AccessNode) for node in (edge.src, edge.dst)]
        if ends[0] == ends[1] or edge.data.is_empty() or edge.data.other_subset is not None:
            return False
    return True


def _find_numbers(body: _Body, own: Collection[str], sdfg: SDFG) -> bool:
    """Find the numbers that iterations hand on, or have; whether all can have more elements."""
    places: dict[str, list[tuple[SDFGState, nodes.AccessNode]]] = {}
    for state in body.states:
        for node in state.data_nodes():
            places.setdefault(node.data, []).append((state, node))
    combined = {r.after.data.data for r in find_reductions(body.loop)}
    for name, found in places.items():
        written = [(s, n) for s, n in found if s.in_degree(n)]
        number = sdfg.arrays[name].total_size == 1
        if name in own and (not number or any(_inside_map(s, n) for s, n in found)):
            return False
        if not number or not written:
            continue
        once = len(written) == 1 and written[0][0].in_degree(written[0][1]) == 1
        (edge,) = written[0][0].in_edges(written[0][1])[:1]
        plain = once and isinstance(edge.src, nodes.Tasklet) and edge.data.wcr is None
        alone = name in combined and len(found) == 2 and not written[0][0].out_degree(written[0][1])
        if name in own:
            body.own.add(name)
        elif plain and not alone and not any(_inside_map(s, n) for s, n in found):
            body.handed[name] = edge.src
    return True


def _inside_map(state: SDFGState, node: nodes.AccessNode) -> bool:
    around = [*state.predecessors(node), *state.successors(node)]
    return state.entry_node(node) is not None or any(
        isinstance(n, nodes.MapEntry | nodes.MapExit) for n in around
    )


def _graph(body: _Body) -> Any:
    """What has to come before what: statements by their numbers."""
    number = {id(node): n for n, (_, node) in enumerate(body.statements)}
    graph: Any = nx.DiGraph()
    graph.add_nodes_from(range(len(body.statements)))
    accesses: dict[str, list[tuple[int, Access]]] = {}
    for access in accesses_of(body.loop):
        node = _statement(body, access)
        accesses.setdefault(access.data, []).append((number[id(node)], access))
    kinds = {id(e): r.kind for r in find_reductions(body.loop) for e in (r.before, r.after)}
    for name, found in accesses.items():
        if name in body.handed or name in body.own:
            writers = [n for n, access in found if access.is_write]
            graph.add_edges_from((w, r) for w in writers for r, a in found if not a.is_write)
            if name in body.own:
                graph.add_edges_from((a, b) for a in writers for b in writers if a < b)
            continue
        for one, other in ((a, b) for a in found for b in found):
            if not one[1].is_write and not other[1].is_write:
                continue
            if one[0] < other[0]:
                graph.add_edge(one[0], other[0])
            if carried_between(body.loop, one[1], other[1], kinds):
                graph.add_edge(one[0], other[0])
    return graph


def _statement(body: _Body, access: Access) -> nodes.Node:
    """The tasklet or the entry of the map that an access goes through."""
    node = access.edge.src if access.is_write else access.edge.dst
    if isinstance(node, nodes.MapExit):
        state = next(s for s in body.states if node in s.nodes())
        entry = state.entry_node(node)
        assert entry is not None
        return entry
    assert isinstance(node, nodes.Node)
    return node


def _scan_of(body: _Body, members: Sequence[int]) -> Scan | None:
    """The scan that statements in a circle are, if they are one."""
    chosen = [body.statements[m] for m in members]
    if not all(isinstance(node, Computation) for _, node in chosen):
        return None
    code = [(state, node) for state, node in chosen if isinstance(node, Computation)]
    handed = [name for name, writer in body.handed.items() if any(writer is n for _, n in chosen)]
    if len(handed) > 1:
        return None
    found = recurrence_of(code, body.loop, handed[0] if handed else None, body.own)
    return None if found is None else Scan(found, body.first, body.step, body.count)


# -- the loops that come of it --------------------------------------------------------------------


def _emit(body: _Body, parts: Sequence[list[int] | Scan]) -> list[LoopRegion]:
    """Put the parts in the place of the loop."""
    sdfg, loop = body.sdfg, body.loop
    arrays = _give_elements(body)
    made: list[LoopRegion] = []
    blocks: list[ControlFlowBlock] = [
        _copied(sdfg, (name, 0), (arrays[name], 0)) for name in body.handed
    ]
    places = {
        id(node): (body.states.index(state), state.nodes().index(node))
        for state, node in body.statements
    }
    for part in parts:
        if isinstance(part, Scan):
            target = arrays.get(part.recurrence.data)
            blocks += part.states(sdfg, str(loop.loop_variable), target)
            continue
        piece = copy.deepcopy(loop)
        piece.label = f"{loop.label}_{len(made)}"
        own = [places[id(body.statements[m][1])] for m in part]
        _keep(piece, own)
        blocks.append(piece)
        made.append(piece)
    blocks += [_copied(sdfg, (arrays[n], body.count), (n, 0)) for n in body.handed]
    replace_loop(loop, blocks)
    return made


def _give_elements(body: _Body) -> dict[str, str]:
    """Give numbers an element for each iteration: names of the arrays that hold them."""
    sdfg, found = body.sdfg, {}
    for name in (*body.handed, *body.own):
        more = name in body.handed
        found[name], _ = sdfg.add_transient(
            f"each_{name.lstrip(chr(95))}",
            [body.count + more],
            sdfg.arrays[name].dtype,
            find_new_name=True,
        )
    for name, array in found.items():
        written = False
        for state in body.states:
            places = [node for node in state.data_nodes() if node.data == name]
            here = any(state.in_degree(node) for node in places)
            for node in places:
                after = name in body.own or written or bool(state.in_degree(node))
                shift = int(after and name in body.handed)
                index = sympy.expand(body.turn + shift)
                for edge in state.all_edges(node):
                    edge.data = Memlet(data=array, subset=Range([(index, index, 1)]))
                node.data = array
            written |= here
    return found


def _copied(sdfg: SDFG, source: tuple[str, int], target: tuple[str, int]) -> SDFGState:
    state = SDFGState(f"handed_{target[0]}", sdfg)
    tasklet = state.add_tasklet("handed", {"__inp"}, {"__out"}, "__out = __inp")
    for name, place, is_write in ((*source, False), (*target, True)):
        memlet = Memlet(data=name, subset=str(place))
        if is_write:
            state.add_edge(tasklet, "__out", state.add_write(name), None, memlet)
        else:
            state.add_edge(state.add_read(name), None, tasklet, "__inp", memlet)
    return state


def _keep(piece: LoopRegion, own: Sequence[tuple[int, int]]) -> None:
    """Leave some statements of a loop, by their states and places in these."""
    blocks = [b for b in nx.topological_sort(piece.nx) if isinstance(b, SDFGState)]
    for number, state in enumerate(blocks):
        kept = {state.nodes()[place] for s, place in own if s == number}
        for node in list(state.scope_children()[None]):
            if isinstance(node, nodes.AccessNode | nodes.MapExit) or node in kept:
                continue
            inside = [node]
            if isinstance(node, nodes.MapEntry):
                inside = list(state.scope_subgraph(node).nodes())
            state.remove_nodes_from(inside)
        for node in list(state.data_nodes()):
            if not state.all_edges(node):
                state.remove_node(node)
    used = [state for state in blocks if state.nodes()]
    for state in blocks:
        piece.remove_node(state)
    for number, state in enumerate(used):
        piece.add_node(state, is_start_block=not number, ensure_unique_name=True)
        if number:
            piece.add_edge(used[number - 1], state, InterstateEdge())
