"""Branches in loops that change numbers alone become values that a condition chooses.

before -> after:  ``if x[i] > 0: s = s + x[i]``  ->  ``s = (s + x[i] if x[i] > 0 else s)``, which is
a sum like any other; ``if x[i] > m: m = x[i]``  ->  ``m = (x[i] if x[i] > m else m)``, a maximum.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
from dace import SDFG, Memlet, SDFGState
from dace.sdfg import nodes
from dace.sdfg.state import ConditionalBlock, ControlFlowRegion, LoopRegion
from dace.subsets import Range

from distspmd.analysis.accesses import bound_around, loops_around, state_accesses
from distspmd.analysis.dependences import LoopRange, is_inside
from distspmd.analysis.loop_values import header_names, names_in, own_names, words
from distspmd.analysis.symbol_values import ElementValue, values_at
from distspmd.analysis.whole_program import is_straight
from distspmd.expressions.ir import (
    Argument,
    Expression,
    Operation,
    apply,
    cast,
    count_additions,
    parts,
    substitute,
)
from distspmd.nodes.computation import Computation
from distspmd.passes.normalize.loop_dimensions import replace_loop

_MOST_WORK = 64
"""Additions that a branch may take, at most, where it is computed in each iteration."""
_CHECKS = ("checked", "checked_index")
"""Operations that tell of an error."""
_FAILS = ("floor_divide", "remainder", "fmod", "modulo", "floored_rest", "divide", "power")
"""Operations that may end a program where numbers are whole."""


@dataclass
class _Condition:
    """When a branch is taken: an expression, and what its arguments read."""

    value: Expression
    reads: dict[str, Memlet]
    symbols: set[str] = field(default_factory=set)


@dataclass
class _Branch:
    """States of a branch, in order, and those tasklets in them that change numbers."""

    states: list[SDFGState]
    changes: list[tuple[SDFGState, Computation]]


def choose_values(sdfg: SDFG) -> None:
    """Rewrite such branches in place, inner ones first."""
    symbols: set[str] = set()
    containers: set[str] = set()
    for region in reversed(list(sdfg.all_control_flow_regions(recursive=False))):
        if isinstance(region, ConditionalBlock) and _is_in_range(region):
            for condition in _rewritten(region):
                symbols |= condition.symbols
                containers |= {str(memlet.data) for memlet in condition.reads.values()}
    if symbols:
        _forget(sdfg, symbols, containers)


def _is_in_range(block: ConditionalBlock) -> bool:
    """Whether the next loop around a block has a range."""
    loop = next(loops_around(block), None)
    return loop is not None and LoopRange.of(loop) is not None


def _rewritten(block: ConditionalBlock) -> list[_Condition]:
    """Rewrite a block; its conditions, or none where it stays."""
    conditions: list[_Condition] = []
    branches: list[_Branch] = []
    for text, region in block.branches:
        branch = _branch_of(block, region)
        condition = text and _condition_of(block, text.as_string)
        if branch is None or (text is not None and condition is None):
            return []
        branches.append(branch)
        conditions += [condition] if condition else []
    changes = [change for branch in branches for change in branch.changes]
    states = [state for branch in branches for state in branch.states]
    if not changes or not _are_handed_on(block, changes):
        return []
    used = _inlined(block, conditions[0]) if len(changes) == 1 == len(conditions) else None
    for number, branch in enumerate(branches):
        known = [used] if used else conditions[: number + 1]
        for state, tasklet in branch.changes:
            _guard(state, tasklet, known, is_else=number == len(conditions))
    replace_loop(block, states)
    return conditions


# -- branches -----------------------------------------------------------------------------------


def _branch_of(block: ConditionalBlock, region: ControlFlowRegion) -> _Branch | None:
    """A branch that is harmless where it is not taken, but for numbers that it changes."""
    if not is_straight(region) or any(edge.data.assignments for edge in region.edges()):
        return None
    states = [b for b in nx.topological_sort(region.nx) if isinstance(b, SDFGState)]
    if len(states) < len(region.nodes()):
        return None
    found = _Branch(states, [])
    work = 0
    for state in states:
        for node in nx.topological_sort(state.nx):
            if isinstance(node, nodes.AccessNode):
                continue
            value = _value_of(state, node)
            if value is None or not isinstance(node, Computation):
                return None
            work += count_additions(value)
            if _is_own(block.sdfg, state.out_edges(node)[0].data.data, states):
                continue
            if not _is_number_changed(state, node) and not _is_compared(block, state, node):
                return None
            found.changes.append((state, node))
    if work > _MOST_WORK or not all(map(_reads_inside, states)):
        return None
    return found


def _value_of(state: SDFGState, node: nodes.Node) -> Expression | None:
    """What a tasklet of one result computes, which cannot fail."""
    if not isinstance(node, Computation) or len(state.out_edges(node)) != 1:
        return None
    (leaving,), found = state.out_edges(node), node.assignments()
    plain = isinstance(leaving.dst, nodes.AccessNode) and leaving.data.wcr is None
    if not plain or not found or len(found) != 1 or leaving.data.dynamic:
        return None
    if not all(isinstance(edge.src, nodes.AccessNode) for edge in state.in_edges(node)):
        return None
    for part in parts(found[0][1]):
        name = part.name if isinstance(part, Operation) else ""
        if name in _CHECKS or (name in _FAILS and part.dtype.kind in "iub"):
            return None
    return found[0][1]


def _is_own(sdfg: SDFG, name: str, states: Sequence[SDFGState]) -> bool:
    """Whether a temporary is used in some states alone."""
    if not sdfg.arrays[name].transient:
        return False
    used = (s for s in sdfg.states() for node in s.data_nodes() if node.data == name)
    edges = sdfg.all_interstate_edges(recursive=False)
    return all(s in states for s in used) and not any(
        name in words(str(value)) for edge in edges for value in edge.data.assignments.values()
    )


def _is_number_changed(state: SDFGState, tasklet: Computation) -> bool:
    """Whether a tasklet writes a number, or an element that it reads as well."""
    (leaving,) = state.out_edges(tasklet)
    name = leaving.data.data
    before = [e for e in state.in_edges(tasklet) if e.data.data == name]
    others = [n for n in state.data_nodes() if n.data == name and n is not leaving.dst]
    if len(before) == 1 and str(before[0].data.subset) == str(leaving.data.subset):
        return True
    return not before and not others and bool(state.sdfg.arrays[name].total_size == 1)


def _is_compared(block: ConditionalBlock, state: SDFGState, tasklet: Computation) -> bool:
    """Whether what decides a branch reads the element that a tasklet writes, right before it."""
    (leaving,) = state.out_edges(tasklet)
    before = block.parent_graph.in_edges(block)
    states = [edge.src for edge in before if isinstance(edge.src, SDFGState)]
    name, place = leaving.data.data, str(leaving.data.subset)
    read = {(e.data.data, str(e.data.subset)) for s in states for e in s.edges()}
    alone = sum(node.data == name for node in state.data_nodes() if state.in_degree(node)) == 1
    return len(before) == 1 and alone and leaving.data.num_elements() == 1 and (name, place) in read


def _reads_inside(state: SDFGState) -> bool:
    """Whether all that a state reads is inside, also where the branch would not be taken."""
    scope = bound_around(state)
    accesses = [a for a in state_accesses(state, scope) if not a.is_write]
    return all(is_inside(access, state.sdfg) for access in accesses)


def _are_handed_on(
    block: ConditionalBlock, changes: Sequence[tuple[SDFGState, Computation]]
) -> bool:
    """Whether iterations hand on all that branches change; else each runs them for itself."""
    names = {str(state.out_edges(tasklet)[0].data.data) for state, tasklet in changes}
    loop = next(loops_around(block))
    return not own_names(loop, names)


# -- conditions ---------------------------------------------------------------------------------


def _condition_of(block: ConditionalBlock, text: str) -> _Condition | None:
    """A condition of truth values that are in containers; None of another one."""
    sdfg, values = block.sdfg, values_at(block)
    reads: dict[str, Memlet] = {}
    symbols: set[str] = set()

    def value(tree: ast.expr) -> Expression | None:
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
            inner = value(tree.operand)
            return inner and apply("logical_not", inner)
        if isinstance(tree, ast.BoolOp):
            found = [value(each) for each in tree.values]
            name = "logical_and" if isinstance(tree.op, ast.And) else "logical_or"
            whole = found[0]
            for each in found[1:]:
                whole = whole and each and apply(name, whole, each)
            return whole
        if not isinstance(tree, ast.Name) or not isinstance(values.get(tree.id), ElementValue):
            return None
        known = values[tree.id]
        container = sdfg.arrays[known.data]
        if np.dtype(container.dtype.type).kind != "b" or _writer_of(sdfg, known.data) is None:
            return None
        symbols.add(tree.id)
        connector = f"_{tree.id}"
        reads[connector] = Memlet(data=known.data, subset=Range([(i, i, 1) for i in known.indices]))
        return Argument(connector, np.dtype(bool))

    found = value(ast.parse(text.strip(), mode="eval").body)
    return None if found is None else _Condition(found, reads, symbols)


def _writer_of(sdfg: SDFG, name: str) -> tuple[SDFGState, Computation] | None:
    """The one tasklet that writes a number."""
    places = [(s, n) for s in sdfg.states() for n in s.data_nodes() if n.data == name]
    written = [(s, n) for s, n in places if s.in_degree(n)]
    if len(written) != 1 or sdfg.arrays[name].total_size != 1:
        return None
    ((state, node),) = written
    edges = state.in_edges(node)
    if len(edges) != 1 or not isinstance(edges[0].src, Computation):
        return None
    return (state, edges[0].src) if state.entry_node(node) is None else None


def _inlined(block: ConditionalBlock, condition: _Condition) -> _Condition | None:
    """A condition with what computes it, where the operands of that are unchanged at the block."""
    if not isinstance(condition.value, Argument):
        return None
    (memlet,) = condition.reads.values()
    found = _writer_of(block.sdfg, str(memlet.data))
    assert found is not None
    state, tasklet = found
    value = _value_of(state, tasklet)
    region = block.parent_graph
    if value is None or state.parent_graph is not region or not is_straight(region):
        return None
    order = list(nx.topological_sort(region.nx))
    between = order[order.index(state) : order.index(block)]
    if not all(isinstance(each, SDFGState) for each in between):
        return None
    edges = state.in_edges(tasklet)
    sources = {id(edge.src) for edge in edges}
    written = {
        n.data for s in between for n in s.data_nodes() if s.in_degree(n) and id(n) not in sources
    }
    assigned = {n for b in between for e in region.out_edges(b) for n in e.data.assignments}
    used = {s for e in edges for s in map(str, e.data.free_symbols)}
    if any(e.data.data in written for e in edges) or used & assigned:
        return None
    by = {str(e.dst_conn): f"_of{e.dst_conn}" for e in edges}
    arguments = {
        str(e.dst_conn): Argument(by[str(e.dst_conn)], _type(block.sdfg, e.data.data))
        for e in edges
    }
    reads = {by[str(e.dst_conn)]: Memlet.from_memlet(e.data) for e in edges}
    return _Condition(substitute(value, arguments), reads, condition.symbols)


def _type(sdfg: SDFG, name: str) -> np.dtype[Any]:
    found: np.dtype[Any] = np.dtype(sdfg.arrays[name].dtype.type)
    return found


# -- rewriting ----------------------------------------------------------------------------------


def _guard(
    state: SDFGState, tasklet: Computation, known: Sequence[_Condition], *, is_else: bool
) -> None:
    """Let a tasklet keep what is there, unless the last condition holds and those before do not."""
    (leaving,) = state.out_edges(tasklet)
    name = str(leaving.data.data)
    ((connector, value),) = tasklet.assignments() or ()
    dtype = _type(state.sdfg, name)
    kept = _argument(state, tasklet, "_old", leaving.data)
    chosen: Expression = cast(value, dtype)
    for number, condition in enumerate(reversed(known)):
        is_own = not number and not is_else
        by = {n: _argument(state, tasklet, n, memlet) for n, memlet in condition.reads.items()}
        pair = (chosen, kept) if is_own else (kept, chosen)
        chosen = apply("where", substitute(condition.value, by), *pair)
    tasklet.assign(((connector, chosen),))


def _argument(state: SDFGState, tasklet: Computation, name: str, memlet: Memlet) -> Argument:
    """The operand that a tasklet reads from somewhere; a new one, if it reads nothing there."""
    dtype = _type(state.sdfg, memlet.data)
    for edge in state.in_edges(tasklet):
        if (edge.data.data, str(edge.data.subset)) == (memlet.data, str(memlet.subset)):
            return Argument(str(edge.dst_conn), dtype)
    connector = next(
        n for n in (name, *(f"{name}{k}" for k in range(99))) if n not in tasklet.in_connectors
    )
    tasklet.add_in_connector(connector)
    read = Memlet(data=memlet.data, subset=Range(memlet.subset.ranges))
    there = (n for n in state.data_nodes() if n.data == memlet.data and not state.in_degree(n))
    node = next(there, None) or state.add_read(memlet.data)
    state.add_edge(node, None, tasklet, connector, read)
    return Argument(connector, dtype)


def merge_numbers(sdfg: SDFG) -> None:
    """Compute a number where it is read, if one tasklet of a later state reads it alone."""
    for loop in list(sdfg.all_control_flow_regions(recursive=False)):
        if not isinstance(loop, LoopRegion) or not is_straight(loop):
            continue
        blocks = list(nx.topological_sort(loop.nx))
        if all(isinstance(block, SDFGState) for block in blocks) and not any(
            edge.data.assignments for edge in loop.edges()
        ):
            for state in blocks:
                for node in [n for n in state.data_nodes() if n.data in sdfg.arrays]:
                    _merge_number(sdfg, blocks, state, node)


def _merge_number(
    sdfg: SDFG, blocks: Sequence[SDFGState], state: SDFGState, node: nodes.AccessNode
) -> None:
    container, found = sdfg.arrays[node.data], _writer_of(sdfg, node.data)
    places = [(s, n) for s in sdfg.states() for n in s.data_nodes() if n.data == node.data]
    if not container.transient or found is None or len(places) != 2 or found[0] is not state:
        return
    ((other, reader),) = [(s, n) for s, n in places if n is not node] or [(state, node)]
    if other is state or other not in blocks or state.out_degree(node) or other.in_degree(reader):
        return
    edges, writer = other.out_edges(reader), found[1]
    tasklet = edges[0].dst
    value = _value_of(state, writer)
    if len(edges) != 1 or value is None or not isinstance(tasklet, Computation):
        return
    between = blocks[blocks.index(state) : blocks.index(other)]
    written = {n.data for s in between for n in s.data_nodes() if s.in_degree(n)}
    others = {n.data for n in other.data_nodes() for e in other.in_edges(n) if e.src is not tasklet}
    if {e.data.data for e in state.in_edges(writer)} & (written | others) or value.dtype != _type(
        sdfg, node.data
    ):
        return
    assignments = tasklet.assignments()
    if not assignments:
        return
    reads = {str(e.dst_conn): e.data for e in state.in_edges(writer)}
    by = {name: _argument(other, tasklet, f"_of{name}", memlet) for name, memlet in reads.items()}
    inner = substitute(value, by)
    connector = str(edges[0].dst_conn)
    tasklet.assign(tuple((n, substitute(v, {connector: inner})) for n, v in assignments))
    other.remove_node(reader)
    tasklet.remove_in_connector(connector)
    state.remove_nodes_from([writer, node])
    for each in list(state.data_nodes()):
        if not state.all_edges(each):
            state.remove_node(each)
    sdfg.remove_data(node.data, validate=False)


def _forget(sdfg: SDFG, symbols: set[str], containers: set[str]) -> None:
    """Remove symbols of conditions that nothing reads any more, and containers behind them."""
    read: set[str] = set()
    for block in sdfg.all_control_flow_blocks():
        if isinstance(block, SDFGState):
            read |= names_in(block)
        elif isinstance(block, LoopRegion | ConditionalBlock):
            read |= header_names(block)
    edges = list(sdfg.all_interstate_edges(recursive=False))
    for edge in edges:
        own = {n: v for n, v in edge.data.assignments.items() if n not in symbols}
        read |= {word for value in own.values() for word in words(str(value))}
        read |= words(edge.data.condition.as_string)
    for edge in edges:
        for name in symbols - read:
            edge.data.assignments.pop(name, None)
    for name in symbols - read:
        if name in sdfg.symbols:
            sdfg.remove_symbol(name)
    read |= {w for e in edges for v in e.data.assignments.values() for w in words(str(v))}
    for name in containers - read:
        _forget_container(sdfg, name)


def _forget_container(sdfg: SDFG, name: str) -> None:
    places = [(s, n) for s in sdfg.states() for n in s.data_nodes() if n.data == name]
    found = _writer_of(sdfg, name)
    if found is None or len(places) != 1 or places[0][0].out_degree(places[0][1]):
        return
    state, tasklet = found
    if len(state.out_edges(tasklet)) != 1:
        return
    state.remove_nodes_from([tasklet, places[0][1]])
    for node in list(state.data_nodes()):
        if not state.all_edges(node):
            state.remove_node(node)
    sdfg.remove_data(name, validate=False)
