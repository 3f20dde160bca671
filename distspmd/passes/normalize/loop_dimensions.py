"""A loop whose iterations have no order becomes a dimension of each statement in its body.

before -> after:  ``for i: s = sum(x[i, :]); y[i] = s * 2``  ->  ``s[i] = sum(x[i, :])`` as one
contraction, and a map over ``i``. What an iteration has for itself gets an element, or an array,
for each iteration; a number that tasklets alone pass on stays inside of the map.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from string import ascii_letters
from typing import Any

import networkx as nx
import sympy
from dace import SDFG, InterstateEdge, Memlet, SDFGState
from dace.sdfg import nodes
from dace.sdfg.state import ControlFlowBlock, LoopRegion
from dace.subsets import Range

from distspmd.analysis.accesses import Edge, edges_of
from distspmd.analysis.whole_program import is_straight
from distspmd.expressions.ir import IndexValue, parts
from distspmd.nodes.contraction import Contraction
from distspmd.nodes.contraction_loops import parameter
from distspmd.nodes.map_scopes import enter_map, leave_map
from distspmd.nodes.subscripts import Dimension, Subscripts

MANY = 16
"""Iterations from which on each may run maps of its own that are then not split."""
_SMALL = 1 << 16
"""Elements that what iterations have for themselves may have together, however small arrays are."""


@dataclass
class Statements:
    """The body of a loop as statements that each can have one more dimension.

    Attributes:
        loop: the loop.
        states: of its body, in their order.
        low, high, step: of its variable, upwards; both ends are values of it.
        local: what tasklets of one state alone pass on, an element each.
        expanded: what gets another dimension or name, with the name of what then holds it.
        numbers: those of them that have one element.
    """

    loop: LoopRegion
    states: list[SDFGState]
    low: sympy.Expr
    high: sympy.Expr
    step: int
    local: set[str] = field(default_factory=set)
    expanded: dict[str, str] = field(default_factory=dict)
    numbers: set[str] = field(default_factory=set)

    @property
    def sdfg(self) -> SDFG:
        """The program."""
        found: SDFG = self.loop.sdfg
        return found

    @property
    def variable(self) -> str:
        """Of the loop."""
        return str(self.loop.loop_variable)


def add_dimension(
    loop: LoopRegion, ends: tuple[sympy.Expr, sympy.Expr, int], own: Sequence[str]
) -> bool:
    """Rewrite a loop in place; False where a statement cannot have one more dimension.

    Args:
        loop: iterations of it have no order.
        ends: least value of its variable, greatest, and step.
        own: containers of which each iteration has its own value.
    """
    if not is_straight(loop) or any(e.data.assignments for e in loop.edges()):
        return False
    blocks = list(nx.topological_sort(loop.nx))
    if not all(isinstance(block, SDFGState) for block in blocks):
        return False
    body = Statements(loop, blocks, *ends)
    if not all(map(_is_simple, [body] * len(blocks), blocks)):
        return False
    count = sympy.expand(body.high - body.low + 1)
    few = not count.is_Integer or count < MANY
    if few and any(_depends(body, n) for s in blocks for n in _entries(s)):
        return False
    _choose_local(body, own)
    others = [name for name in own if name not in body.local]
    if not _may_expand(body, others):
        return False
    plans = [_Letters.of(body, s, n, others) for s in blocks for n in _contractions(s)]
    if not all(plans):
        return False
    _expand(body, others)
    for plan in plans:
        assert plan is not None
        plan.apply(body)
    for state in blocks:
        _expand_memlets(body, state)
        _into_maps(body, state)
    replace_loop(loop, blocks)
    return True


def _entries(state: SDFGState) -> list[nodes.MapEntry]:
    return [n for n in state.scope_children()[None] if isinstance(n, nodes.MapEntry)]


def _depends(body: Statements, entry: nodes.MapEntry) -> bool:
    """Whether the iterations of a map are others in each iteration of the loop."""
    dynamic = any(not c.startswith("IN_") for c in entry.in_connectors)
    return dynamic or any(_moves(body, ends) for ends in entry.map.range.ranges)


def _contractions(state: SDFGState) -> list[Contraction]:
    return [n for n in state.nodes() if isinstance(n, Contraction) and state.entry_node(n) is None]


def _is_simple(body: Statements, state: SDFGState) -> bool:
    """Whether a state has tasklets, maps and contractions alone, which containers connect."""
    alone = True
    for node in state.scope_children()[None]:
        if isinstance(node, nodes.MapEntry):
            alone = False
            if body.variable in _parameters_inside(state, node):
                return False
        elif isinstance(node, Contraction):
            alone = False
        elif not isinstance(node, nodes.AccessNode | nodes.Tasklet | nodes.MapExit):
            return False
    for edge in edges_of(state):
        plain = isinstance(edge.src, nodes.AccessNode) != isinstance(edge.dst, nodes.AccessNode)
        if state.entry_node(edge.src) is None and not isinstance(edge.src, nodes.MapEntry):
            if edge.data.is_empty() or edge.data.other_subset is not None:
                return False
            if not plain and not (alone and isinstance(edge.src, nodes.Tasklet)):
                return False
    return True


def _parameters_inside(state: SDFGState, entry: nodes.MapEntry) -> set[str]:
    inside = state.scope_subgraph(entry).nodes()
    return {p for node in inside if isinstance(node, nodes.MapEntry) for p in node.map.params}


# -- what iterations have for themselves --------------------------------------------------------


def _is_number(body: Statements, name: str) -> bool:
    return bool(body.sdfg.arrays[name].total_size == 1)


def _nodes_of(body: Statements, name: str) -> list[tuple[SDFGState, nodes.AccessNode]]:
    return [(s, n) for s in body.states for n in s.data_nodes() if n.data == name]


def _choose_local(body: Statements, own: Sequence[str]) -> None:
    """Keep numbers inside of maps that tasklets of one state, which has nothing else, pass on."""
    for name in own:
        places = _nodes_of(body, name)
        if len(places) != 1 or not _is_number(body, name):
            continue
        ((state, node),) = places
        around = [*state.predecessors(node), *state.successors(node)]
        code = [n for n in state.nodes() if not isinstance(n, nodes.AccessNode)]
        if (
            all(isinstance(n, nodes.Tasklet) for n in [*around, *code])
            and state.in_degree(node) == 1
            and state.out_degree(node) > 0
            and all(edge.data.wcr is None for edge in state.in_edges(node))
        ):
            body.local.add(name)
    for state in body.states:
        groups = _groups(body, state)
        if groups and not nx.is_directed_acyclic_graph(_between(body, state, groups)):
            body.local -= {node.data for node in state.data_nodes()}


def _groups(body: Statements, state: SDFGState) -> list[set[Any]]:
    """Tasklets that pass numbers on, with those, as sets; each becomes one map."""
    graph: Any = nx.Graph()
    for node in state.scope_children()[None]:
        if isinstance(node, nodes.Tasklet):
            graph.add_node(node)
    for edge in edges_of(state):
        if isinstance(edge.src, nodes.Tasklet) and isinstance(edge.dst, nodes.Tasklet):
            graph.add_edge(edge.src, edge.dst)
        for node, other in ((edge.src, edge.dst), (edge.dst, edge.src)):
            if isinstance(node, nodes.AccessNode) and node.data in body.local and other in graph:
                graph.add_edge(node, other)
    return list(nx.connected_components(graph))


def _between(body: Statements, state: SDFGState, groups: Sequence[set[Any]]) -> Any:
    by = {node: number for number, group in enumerate(groups) for node in group}
    graph: Any = nx.DiGraph()
    for edge in edges_of(state):
        first, second = by.get(edge.src, edge.src), by.get(edge.dst, edge.dst)
        if first != second:
            graph.add_edge(first, second)
    return graph


def _may_expand(body: Statements, names: Sequence[str]) -> bool:
    """Whether what is expanded has no more elements than the largest array that the loop uses."""
    sdfg = body.sdfg
    used = {node.data for state in body.states for node in state.data_nodes()}
    sizes = [sdfg.arrays[name].total_size for name in used if name not in names]
    count = sympy.expand(body.high - body.low + 1)
    largest = max([_SMALL, *(int(n) for n in sizes if sympy.sympify(n).is_Integer)])
    for name in names:
        if any(
            isinstance(n, nodes.NestedSDFG)
            for state, node in _nodes_of(body, name)
            for edge in state.all_edges(node)
            for n in (leaf.src if edge.dst is node else leaf.dst for leaf in _leaves(state, edge))
        ):
            return False
        size = sympy.expand(count * sdfg.arrays[name].total_size)
        if not size.is_Integer or int(size) > largest:
            return False
    return count.is_Integer or not names


def _leaves(state: SDFGState, edge: Edge) -> list[Edge]:
    return list(state.memlet_tree(edge).leaves())


def _expand(body: Statements, names: Sequence[str]) -> None:
    sdfg = body.sdfg
    for name in names:
        container, alone = sdfg.arrays[name], _is_used_here_alone(body, name)
        if _is_number(body, name):
            body.numbers.add(name)
        shape = () if name in body.numbers else container.shape
        shape = (int(body.high - body.low + 1), *shape)
        if alone:
            sdfg.remove_data(name, validate=False)
        body.expanded[name], _ = sdfg.add_transient(
            name, shape, container.dtype, find_new_name=not alone
        )
    for name in sorted(body.local):
        if not _is_used_here_alone(body, name):
            container = copy.deepcopy(sdfg.arrays[name])
            body.expanded[name] = sdfg.add_datadesc(name, container, find_new_name=True)
            body.local.add(body.expanded[name])


def _is_used_here_alone(body: Statements, name: str) -> bool:
    inside = {id(node) for _, node in _nodes_of(body, name)}
    return all(
        id(node) in inside or node.data != name
        for state in body.sdfg.states()
        for node in state.data_nodes()
    )


def _expand_memlets(body: Statements, state: SDFGState) -> None:
    """Give memlets of what is expanded its name and the index of the iteration."""
    place = sympy.expand(sympy.Symbol(body.variable) - body.low)
    done = set()
    for edge in edges_of(state):
        name = edge.data.data
        planned = isinstance(edge.src, Contraction) or isinstance(edge.dst, Contraction)
        if name not in body.expanded or id(edge.data) in done or planned:
            continue
        made = body.expanded[name]
        ranges = edge.data.subset.ranges
        if _is_border(edge):
            ranges = Memlet.from_array(made, body.sdfg.arrays[made]).subset.ranges
        elif name not in body.local:
            ranges = [(place, place, 1), *([] if name in body.numbers else ranges)]
        edge.data.data, edge.data.subset = made, Range(ranges)
        done.add(id(edge.data))
    for node in state.data_nodes():
        if node.data in body.expanded:
            node.data = body.expanded[node.data]


def _is_border(edge: Edge) -> bool:
    """Whether an edge connects a container with a map."""
    ends = (edge.src, edge.dst)
    kinds = [isinstance(each, nodes.AccessNode) for each in ends]
    return any(kinds) and any(isinstance(each, nodes.MapEntry | nodes.MapExit) for each in ends)


# -- contractions ---------------------------------------------------------------------------------


@dataclass
class _Letters:
    """A contraction with a letter for the loop.

    Attributes:
        state: where it is.
        node: the contraction.
        subscripts: with the letter.
        windows: of each edge the ranges that it has then.
    """

    state: SDFGState
    node: Contraction
    subscripts: str
    windows: list[tuple[Edge, list[Any]]]

    @classmethod
    def of(
        cls, body: Statements, state: SDFGState, node: Contraction, own: Sequence[str]
    ) -> _Letters | None:
        """How a contraction gets the dimension; None where its windows are no such."""
        if body.step != 1 or node.pick is not None or _names_index(node, body.variable):
            return None
        now = Subscripts.parse(node.subscripts)
        taken = {str(s) for s in state.sdfg.symbols}
        letter = next(
            x for x in ascii_letters if x not in node.subscripts and parameter(x) not in taken
        )
        edges = {e.dst_conn or e.src_conn: e for e in state.all_edges(node)}
        terms, found = [], []
        for number, term in enumerate((*now.operands, now.result)):
            is_result = number == len(now.operands)
            edge = edges["_out" if is_result else f"_in{number}"]
            made = _windowed(body, edge, term, letter, edge.data.data in own)
            if made is None:
                return None
            terms.append(made[0])
            found.append((edge, made[1]))
        if letter not in terms[-1]:
            return None
        return cls(state, node, f"{','.join(terms[:-1])}->{terms[-1]}", found)

    def apply(self, body: Statements) -> None:
        """Rewrite it."""
        self.node.subscripts = self.subscripts
        for edge, ranges in self.windows:
            name = edge.data.data
            node = edge.src if isinstance(edge.src, nodes.AccessNode) else edge.dst
            made = body.expanded.get(name, name)
            edge.data = Memlet(data=made, subset=Range(ranges))
            if node.data == name:
                node.data = made


def _names_index(node: Contraction, variable: str) -> bool:
    value = node.reduced
    indices = () if value is None else (p for p in parts(value) if isinstance(p, IndexValue))
    return any(str(name) == variable for index in indices for name, _ in index.terms)


def _windowed(
    body: Statements, edge: Edge, term: tuple[Dimension, ...], letter: str, is_own: bool
) -> tuple[str, list[Any]] | None:
    """Subscripts and ranges of an operand; None where the loop does not go along one dimension."""
    ranges, texts = list(edge.data.subset.ranges), [_text(dimension) for dimension in term]
    moving = [d for d, ends in enumerate(ranges) if _moves(body, ends)]
    ends = (body.low, body.high, 1)
    if is_own:
        if moving:
            return None
        number = _is_number(body, edge.data.data)
        return letter + "".join([] if number else texts), [
            (sympy.Integer(0), body.high - body.low, 1),
            *([] if number else ranges),
        ]
    if not moving:
        return "".join(texts), ranges
    if len(moving) > 1:
        return None
    (d,) = moving
    first, last, _ = ranges[d]
    offset = sympy.expand(first - _symbol(first, body.variable))
    if first != last or _symbol(offset, body.variable) in offset.free_symbols:
        return None
    if texts and texts[d] != "()":
        return None
    texts = texts or [""]
    texts[d] = letter
    ranges[d] = (sympy.expand(ends[0] + offset), sympy.expand(ends[1] + offset), 1)
    return "".join(texts), ranges


def _symbol(expression: sympy.Expr, name: str) -> sympy.Symbol:
    found = (s for s in sympy.sympify(expression).free_symbols if s.name == name)
    return next(found, sympy.Symbol(name))


def _moves(body: Statements, ends: Sequence[Any]) -> bool:
    return any(s.name == body.variable for e in ends for s in sympy.sympify(e).free_symbols)


def _text(dimension: Dimension) -> str:
    if len(dimension) == 1 and dimension[0][1] == 1:
        return dimension[0][0]
    return f"({'+'.join(f'{factor if factor != 1 else str()}{x}' for x, factor in dimension)})"


# -- maps -----------------------------------------------------------------------------------------


def _range(body: Statements) -> tuple[sympy.Expr, sympy.Expr, int]:
    return body.low, body.high, body.step


def _into_maps(body: Statements, state: SDFGState) -> None:
    """Put tasklets into maps over the loop's range, and give it to the maps that there are."""
    entries, groups = _entries(state), _groups(body, state)
    for entry in entries:
        if _depends(body, entry):
            leave = state.exit_node(entry)
            assert leave is not None
            _wrap(body, state, [entry], [leave], entry.map)
        else:
            entry.map.params = [body.variable, *entry.map.params]
            entry.map.range = Range([_range(body), *entry.map.range.ranges])
    for group in groups:
        tasklets = [node for node in state.nodes() if node in group]
        code = [node for node in tasklets if isinstance(node, nodes.Tasklet)]
        _wrap(body, state, tasklets, tasklets, code[0])


def _wrap(
    body: Statements,
    state: SDFGState,
    first: Sequence[nodes.Node],
    last: Sequence[nodes.Node],
    like: Any,
) -> None:
    """A map around nodes, of which some take what comes in and some give what goes out."""
    entry, leave = state.add_map(like.label, {body.variable: "0:1"})
    entry.map.range = Range([_range(body)])
    entry.map.debuginfo = like.debuginfo
    for node in first:
        before = [e for e in state.in_edges(node) if e.src not in first]
        for edge in before:
            state.remove_edge(edge)
            assert isinstance(edge.src, nodes.AccessNode)
            connector = edge.dst_conn or ""
            enter_map(state, body.sdfg, entry, edge.src, node, connector, edge.data)
        if not state.in_edges(node):
            state.add_nedge(entry, node, Memlet())
    for node in last:
        for edge in [e for e in state.out_edges(node) if e.dst not in last]:
            state.remove_edge(edge)
            assert isinstance(edge.dst, nodes.AccessNode)
            leave_map(state, body.sdfg, leave, node, edge.src_conn or "", edge.data, edge.dst)


def replace_loop(loop: ControlFlowBlock, states: Sequence[ControlFlowBlock]) -> None:
    """Put blocks, one after the other, in the place of a loop, or of a branch."""
    region = loop.parent_graph
    before, after = region.in_edges(loop), region.out_edges(loop)
    starts = region.start_block is loop
    region.remove_node(loop)
    for state in states:
        first = starts and state is states[0]
        region.add_node(state, is_start_block=first, ensure_unique_name=True)
    for one, other in itertools.pairwise(states):
        region.add_edge(one, other, InterstateEdge())
    for edge in before:
        region.add_edge(edge.src, states[0], edge.data)
    for edge in after:
        region.add_edge(states[-1], edge.dst, edge.data)
    region.sdfg.reset_cfg_list()
