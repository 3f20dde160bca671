"""Maps take in what they read of maps that shift an array, so that nothing is shifted in memory.

before -> after:  ``t[i] = x[(i + 1) % n]``, ``s[i] = t[i] - x[i]``, ``y[i] = y[i] + c * s[i]``  ->
``y[i] = y[i] + c * (x[(i + 1) % n] - x[i])``.

A temporary goes if one map computes all of it, element by element, and each of its readers can
compute what it reads: nothing that the map reads may have been changed in between, not even by the
reader, but for the element that an iteration reads itself. Readers may stand in later states of a
straight line. They read at their own indices, whatever the map computes, so that ranks need what
they needed; what is a copy alone they may read anywhere. So only maps that go around an end are
taken in, and what takes them in by itself becomes such a map: all others are the schedule's to
name, and are fused behind it. The cuts of all indices together bound how far this goes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
from dace import SDFG, Memlet, SDFGState, data, subsets
from dace.sdfg import nodes

from distspmd.analysis.whole_program import named_by_control_flow, unchanged_control_flow
from distspmd.expressions.ir import (
    Argument,
    Expression,
    IndexValue,
    count_additions,
    depth_of,
    parts,
    replace_leaves,
)
from distspmd.expressions.text import Assignments
from distspmd.nodes.computation import Computation
from distspmd.nodes.map_scopes import enter_map
from distspmd.passes.compilation import Compilation
from distspmd.passes.elementwise_maps import Elementwise, Index, elementwise, makes_all
from distspmd.passes.fuse_maps import fuse_with_a_reader
from distspmd.passes.normalize.unwrap_indices import (
    MOST_TOGETHER,
    REMAINDERS,
    all_are_cut,
    cuts_in,
    cuts_of,
    goes_around,
)
from distspmd.plans.heuristics import HEURISTICS
from distspmd.schedule import is_pattern

_MOST_LOADS = 48
"""Elements that one iteration reads: more do not stay in registers."""


@dataclass(frozen=True)
class ComposeMaps:
    """The pass; what the schedule names stays."""

    name: str = "compose-maps"

    def apply(self, compilation: Compilation) -> None:
        """Rewrite the SDFG in place."""
        schedule = compilation.schedule
        named = list(schedule) if isinstance(schedule, Mapping) else []
        if compilation.fuse:
            compose_maps(compilation.sdfg, [key for key in named if not is_pattern(key)])

    def rewrite(self, sdfg: SDFG) -> None:
        """Rewrite an SDFG of which no schedule names anything, in place."""
        compose_maps(sdfg)


@unchanged_control_flow()
def compose_maps(sdfg: SDFG, named: Collection[Any] = ()) -> None:
    """Let maps take in the shifted arrays that they read, in place.

    Args:
        sdfg: whose work is in maps and library nodes.
        named: names, labels, maps and nodes that a schedule names, and that therefore stay.
    """
    names = {str(key).rpartition(".")[0] or str(key) for key in named} | set(map(str, named))
    places = {id(key) for key in named}

    if not any(map(goes_around, sdfg.states())):
        return
    changed = True
    while changed:
        uses, changed = _uses(sdfg), False
        for state, entry in _maps_without(sdfg, names, places):
            giver = elementwise(state, entry)
            if giver is not None and _is_wrapped(giver) and _take_in(giver, uses):
                changed, uses = True, _uses(sdfg)
    for state, entry in _maps_without(sdfg, names, places):
        _fuse(state, entry)


def _maps_without(
    sdfg: SDFG, names: Collection[str], places: Collection[int]
) -> Iterator[tuple[SDFGState, nodes.MapEntry]]:
    """The maps at the top level that a schedule does not name, as long as they are there."""
    for state in list(sdfg.states()):
        for entry in state.nodes():
            if not isinstance(entry, nodes.MapEntry) or entry not in state.nodes():
                continue
            own = {entry.map.label, *(e.dst.data for e in _leaving(state, entry) if e.data.data)}
            is_named = id(entry) in places or id(entry.map) in places or own & set(names)
            if state.entry_node(entry) is None and not is_named:
                yield state, entry


def _leaving(state: SDFGState, entry: nodes.MapEntry) -> list[Any]:
    leave = state.exit_node(entry)
    return [] if leave is None else list(state.out_edges(leave))


def _fuse(state: SDFGState, entry: nodes.MapEntry) -> None:
    """Let a map of other nodes be fused with one of its readers, as it is: DaCe's parser makes
    such maps."""
    own, readers = cuts_of(state, entry), list[nodes.MapEntry]()
    for array in [edge.dst for edge in _leaving(state, entry)] if own else ():
        for reader in state.successors(array):
            if isinstance(reader, nodes.MapEntry) and reader.map.range == entry.map.range:
                theirs = cuts_of(state, reader)
                both = [own.get(d, set()) | theirs.get(d, set()) for d in {*own, *theirs}]
                if math.prod(len(cuts) + 1 for cuts in both) <= MOST_TOGETHER:
                    readers.append(reader)
    if readers:
        fuse_with_a_reader(state.sdfg, state, entry, readers)


# -- what may be done ------------------------------------------------------------------------------

_Uses = Mapping[str, Sequence[tuple[SDFGState, nodes.AccessNode]]]


def _uses(sdfg: SDFG) -> _Uses:
    found: dict[str, list[tuple[SDFGState, nodes.AccessNode]]] = {}
    for state in sdfg.states():
        for node in state.data_nodes():
            found.setdefault(node.data, []).append((state, node))
    return found


def _is_wrapped(giver: Elementwise) -> bool:
    """Whether an index goes around an end, and the map can be cut where it does."""
    ends = [end for _, index in giver.reads.values() for end in index]
    return bool(cuts_in(giver.entry, ends, giver.place))


def _take_in(giver: Elementwise, uses: _Uses) -> bool:
    """Let all readers of what a map writes take it in, if all can; whether it was done."""
    sdfg, name = giver.state.sdfg, giver.written.data
    container = sdfg.arrays[name]
    if not container.transient or not isinstance(container, data.Array) or not makes_all(giver):
        return False
    readers = _readers(giver, uses)
    if not readers or name in named_by_control_flow(sdfg):
        return False
    later = _states_behind(giver.state)
    repeated = sum(_times_read(reader, name) for reader in readers) - 1
    if repeated * count_additions(giver.value) > HEURISTICS.cheap_work_in_registers:
        return False
    composed = [_composed(giver, reader, later) for reader in readers]
    if any(each is None for each in composed):
        return False
    for reader, each in zip(readers, composed, strict=True):
        assert each is not None
        _rewrite(giver, reader, each)
    _remove(giver)
    return True


def _readers(giver: Elementwise, uses: _Uses) -> list[Elementwise]:
    """All that reads a result; none if something else does so than maps of one computation."""
    found: list[Elementwise] = []
    for state, node in uses[giver.written.data]:
        if state.in_degree(node) and node is not giver.written:
            return []
        for edge in state.out_edges(node):
            is_map = isinstance(edge.dst, nodes.MapEntry) and not edge.data.is_empty()
            reader = elementwise(state, edge.dst) if is_map else None
            if reader is None or reader.entry is giver.entry:
                return []
            found.append(reader)
    empty = [e for e in giver.state.in_edges(giver.entry) if e.data.is_empty()]
    return [] if empty or giver.state.in_degree(giver.written) != 1 else found


def _times_read(reader: Elementwise, name: str) -> int:
    return len({index for node, index in reader.reads.values() if node.data == name})


def _states_behind(state: SDFGState) -> list[SDFGState]:
    """The states that follow one whatever happens, once each time that it runs, in order."""
    graph, found = state.parent_graph, list[SDFGState]()
    while True:
        edges = graph.out_edges(state)
        if len(edges) != 1 or not edges[0].data.is_unconditional():
            return found
        state = edges[0].dst
        if not isinstance(state, SDFGState) or len(graph.in_edges(state)) != 1:
            return found
        found.append(state)


# -- composition -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Composed:
    """What a reader becomes: its expression, and the elements behind the inputs that it gets."""

    value: Expression
    reads: Mapping[str, tuple[nodes.AccessNode, Index]]


def _composed(
    giver: Elementwise, reader: Elementwise, later: Sequence[SDFGState]
) -> _Composed | None:
    """A reader that computes what it read; None where it must not, or would become too much."""
    if reader.state is not giver.state and reader.state not in later:
        return None
    name = giver.written.data
    reads = {conn: read for conn, read in reader.reads.items() if read[0].data != name}
    known = {(node.data, str(index)): conn for conn, (node, index) in reads.items()}
    by: dict[str, Expression] = {}
    for conn, (node, index) in reader.reads.items():
        if node.data != name:
            continue
        if not giver.is_copy and str(index) != str(reader.place):
            return None
        at = _parameters_at(giver, index)
        taken: dict[str, str] = {}
        for own, (source, inner) in giver.reads.items():
            place = tuple(_put_in(each, at, reader) for each in inner)
            key = source.data, str(place)
            if key not in known:
                known[key] = _free(reader, known.values(), reads)
                reads[known[key]] = source, place
            taken[own] = known[key]
        value = _renamed(giver.value, taken, at)
        if value is None:
            return None
        by[conn] = value
    value = replace_leaves(
        reader.value, lambda leaf: by.get(leaf.name, leaf) if isinstance(leaf, Argument) else leaf
    )
    made = _Composed(value, reads)
    fits = _is_small(made, reader) and _is_unchanged(giver, reader, made, later)
    return made if fits else None


def _parameters_at(giver: Elementwise, index: Index) -> dict[str, sympy.Expr]:
    """The values of a map's parameters in the iteration that writes an element."""
    found: dict[str, sympy.Expr] = {}
    for at, given in zip(giver.place, index, strict=True):
        for symbol in at.free_symbols:
            if symbol.name in giver.ranges:
                found[symbol.name] = given - (at - symbol)
    return found


def _put_in(inner: sympy.Expr, at: Mapping[str, sympy.Expr], reader: Elementwise) -> sympy.Expr:
    """An index of a map in the terms of its reader, whose remainders of remainders are one."""
    by = {s: at[s.name] for s in inner.free_symbols if s.name in at}
    return _flat(sympy.sympify(inner).xreplace(by), reader)


def _flat(index: sympy.Expr, reader: Elementwise) -> sympy.Expr:
    """``((a + b) % n + c) % n`` as ``(a + b + c) % n``, where none of these is negative."""
    for outer in _remainders(index):
        for inner in _remainders(outer.args[0]):
            alike = inner.func == outer.func and inner.args[1] == outer.args[1]
            if not alike or sympy.expand(outer.args[0].coeff(inner, 1) - 1) != 0:
                continue
            rest = sympy.expand(outer.args[0] - inner)
            if rest.is_Integer and rest >= 0 and _is_not_negative(inner.args[0], reader):
                whole = outer.func(sympy.expand(inner.args[0] + rest), outer.args[1])
                return _flat(index.xreplace({outer: whole}), reader)
    return index


def _remainders(expression: sympy.Expr) -> list[sympy.Expr]:
    every: list[sympy.Expr] = list(sympy.preorder_traversal(expression))
    return [e for e in every if e.func.__name__ in REMAINDERS and len(e.args) == 2]


def _is_not_negative(expression: sympy.Expr, reader: Elementwise) -> bool:
    """Whether a sum of parameters and a number is so in each iteration."""
    total = sympy.expand(expression)
    for symbol in expression.free_symbols:
        extent = reader.ranges.get(symbol.name)
        if extent is None or not all(end.is_Integer for end in extent) or extent[2] < 0:
            return False
        factor = total.coeff(symbol, 1)
        total = sympy.expand(total - factor * symbol + factor * extent[0 if factor > 0 else 1])
    return bool(total.is_Integer and total >= 0)


def _free(reader: Elementwise, *taken: Collection[str]) -> str:
    """A name of an input that the reader has not."""
    used = {*reader.tasklet.in_connectors, *reader.tasklet.out_connectors}.union(*taken)
    number = len(used)
    while f"_in{number}" in used:
        number += 1
    return f"_in{number}"


def _renamed(
    value: Expression, taken: Mapping[str, str], at: Mapping[str, sympy.Expr]
) -> Expression | None:
    """An expression over the reader's inputs and parameters; None where an index is no sum."""
    lines = {name: _line(index) for name, index in at.items()}
    used = {str(v) for p in parts(value) if isinstance(p, IndexValue) for v, _ in p.terms}
    if any(lines.get(name, ()) is None for name in used):
        return None

    def replace(leaf: Expression) -> Expression:
        if isinstance(leaf, Argument):
            return Argument(taken[leaf.name], leaf.dtype) if leaf.name in taken else leaf
        if isinstance(leaf, IndexValue):
            return _index_value(leaf, lines)
        return leaf

    return replace_leaves(value, replace)


def _line(index: sympy.Expr) -> tuple[dict[str, int], int] | None:
    """Factors of symbols, and a constant, of an index that is such a sum."""
    terms: dict[str, int] = {}
    rest = sympy.expand(index)
    for symbol in index.free_symbols:
        factor = rest.coeff(symbol, 1)
        if not factor.is_Integer:
            return None
        terms[symbol.name] = int(factor)
        rest = sympy.expand(rest - factor * symbol)
    return (terms, int(rest)) if rest.is_Integer else None


def _index_value(leaf: IndexValue, lines: Mapping[str, Any]) -> IndexValue:
    terms: dict[str, int] = {}
    constant = leaf.constant
    for variable, factor in leaf.terms:
        own, more = lines.get(str(variable), ({str(variable): 1}, 0))
        constant += factor * more
        for name, times in own.items():
            terms[name] = terms.get(name, 0) + factor * times
    return IndexValue(tuple((n, f) for n, f in terms.items() if f), constant, leaf.dtype)


def _is_small(made: _Composed, reader: Elementwise) -> bool:
    """Whether a reader stays one kernel, and falls into few maps where its indices are cut."""
    work, depth = count_additions(made.value), depth_of(made.value)
    if work > HEURISTICS.kernel_work or depth > HEURISTICS.kernel_depth:
        return False
    if len(made.reads) > _MOST_LOADS:
        return False
    ends = [end for _, index in made.reads.values() for end in index]
    if not all_are_cut(reader.entry, ends, reader.place):
        return False
    cuts = cuts_in(reader.entry, ends, reader.place)
    return math.prod(len(own) + 1 for own in cuts.values()) <= MOST_TOGETHER


def _is_unchanged(
    giver: Elementwise, reader: Elementwise, made: _Composed, later: Sequence[SDFGState]
) -> bool:
    """Whether all that a giver reads is the same where its reader reads it."""
    between = [giver.state, *later[: later.index(reader.state) + 1 if reader.state in later else 0]]
    sources = {node.data: node for node, _ in giver.reads.values()}
    graph = giver.state.parent_graph
    set_between = {n for s in between[1:] for e in graph.in_edges(s) for n in e.data.assignments}
    if set_between & {
        str(s) for _, i in giver.reads.values() for end in i for s in end.free_symbols
    }:
        return False
    if set_between & {
        str(s) for p in parts(giver.value) if isinstance(p, IndexValue) for s, _ in p.terms
    }:
        return False
    for state in between:
        for node in state.data_nodes():
            own = sources.get(node.data)
            if own is None or not state.in_degree(node) or node is own:
                continue
            if node is not reader.written:
                return False
    return all(
        str(index) == str(reader.place)
        for node, index in made.reads.values()
        if node.data == reader.written.data
    )


# -- rewriting -------------------------------------------------------------------------------------


def _rewrite(giver: Elementwise, reader: Elementwise, made: _Composed) -> None:
    """Give a reader its expression and its edges."""
    state, entry, tasklet = reader.state, reader.entry, reader.tasklet
    for conn, (node, _) in reader.reads.items():
        if conn not in made.reads:
            _disconnect(state, entry, tasklet, conn)
            if not state.degree(node):
                state.remove_node(node)
    for conn, (node, index) in made.reads.items():
        if conn not in reader.reads:
            tasklet.add_in_connector(conn)
            memlet = Memlet(data=node.data, subset=subsets.Range([(i, i, 1) for i in index]))
            enter_map(state, state.sdfg, entry, _node_in(reader, node), tasklet, conn, memlet)
    assignments: Assignments = ((reader.name, made.value),)
    tasklet.assign(assignments)


def _disconnect(state: SDFGState, entry: nodes.MapEntry, tasklet: Computation, conn: str) -> None:
    """Take an input from a tasklet, and what leads to it and to nothing else."""
    (edge,) = state.in_edges_by_connector(tasklet, conn)
    state.remove_edge(edge)
    tasklet.remove_in_connector(conn)
    if not list(state.out_edges_by_connector(entry, edge.src_conn)):
        entering = f"IN_{edge.src_conn[4:]}"
        for outer in list(state.in_edges_by_connector(entry, entering)):
            state.remove_edge(outer)
        entry.remove_in_connector(entering)
        entry.remove_out_connector(edge.src_conn)


def _node_in(reader: Elementwise, node: nodes.AccessNode) -> nodes.AccessNode:
    """The node of a container that a reader reads: the giver's, or one of the reader's state."""
    state = reader.state
    if node in state.nodes():
        return node
    for other in state.data_nodes():
        if other.data == node.data and not state.in_degree(other):
            return other
    return state.add_read(node.data)


def _remove(giver: Elementwise) -> None:
    """Remove a map whose result nobody reads, and the result."""
    state, sdfg, name = giver.state, giver.state.sdfg, giver.written.data
    inside = state.scope_subgraph(giver.entry).nodes()
    read = [e.src for e in state.in_edges(giver.entry)]
    state.remove_nodes_from([*inside, giver.written])
    state.remove_nodes_from([n for n in dict.fromkeys(read) if not state.degree(n)])
    sdfg.remove_data(name, validate=False)
