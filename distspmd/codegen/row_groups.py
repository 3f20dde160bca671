"""Finds chains over rows that one kernel computes: reductions, and the maps around them.

before -> after:  ``max -> exp(x - max) -> sum -> divide``  ->  a call of one kernel

A group begins with a reduction, whose result has rows and whose terms are columns. It takes in what
reads or writes the same elements at the same row and column, as long as no other node stands
between two of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

import networkx as nx
import sympy
from dace import SDFG, Memlet, SDFGState
from dace.sdfg import nodes
from dace.sdfg.utils import dfs_topological_sort

from distspmd.codegen.device_stages import (
    Access,
    Stage,
    permuted,
    reduction_stage,
)
from distspmd.codegen.map_stages import map_stage
from distspmd.codegen.row_kernels import MOST_COLUMNS, RowGroup, RowKernel
from distspmd.nodes.device_calls import DeviceCall

_MOST_STAGES = 32
"""Of a kernel, about: what they pass on has to fit into registers."""


_MOST_PERMUTED = 4
"""Variables of a map that are tried in each order."""


def fuse_rows(
    sdfg: SDFG, needed: Collection[str], exact: bool, symbols: Mapping[str, Sequence[int]]
) -> None:
    """Replace chains over rows by calls of kernels, in place, in all states of an SDFG.

    Args:
        sdfg: whose library nodes know how they are implemented.
        needed: containers that something else than nodes of states reads.
        exact: whether reductions have an order that nobody may change.
        symbols: values of symbols, on each rank.
    """
    if exact:
        return
    for state in sdfg.states():
        _fuse_in(state, needed, symbols)


def _fuse_in(
    state: SDFGState, needed: Collection[str], symbols: Mapping[str, Sequence[int]]
) -> None:
    order = [n for n in dfs_topological_sort(state) if state.entry_node(n) is None]
    stages = {node: stage for node in order if (stage := _stage_of(state, node)) is not None}
    done: set[nodes.Node] = set()
    for node, seed in stages.items():
        if node in done or seed.reduction is None or not 0 < seed.kept < len(seed.extents):
            continue
        most = _most(sympy.Mul(*seed.extents[seed.kept :]), symbols)
        if not 0 < most <= MOST_COLUMNS:
            continue
        left = {n: s for n, s in stages.items() if n not in done}
        found = _Group(state, seed, left, most)
        group = found.grown(order, needed)
        if group is not None:
            done |= set(found.members)
            _replace(state, group)


def _stage_of(state: SDFGState, node: nodes.Node) -> Stage | None:
    if isinstance(node, nodes.MapEntry):
        return map_stage(state, node)
    return reduction_stage(state, node) if isinstance(node, nodes.LibraryNode) else None


def _most(count: sympy.Expr, symbols: Mapping[str, Sequence[int]]) -> int:
    """The greatest value of a number on any rank; 0 if the run decides it."""
    names = {str(symbol): symbol for symbol in count.free_symbols}
    if not names.keys() <= symbols.keys():
        return 0
    ranks = min((len(symbols[name]) for name in names), default=1)
    values = [
        count.subs({symbol: symbols[name][rank] for name, symbol in names.items()})
        for rank in range(ranks)
    ]
    return max((int(value) for value in values if value.is_Integer), default=0)


class _Group:
    """A group that grows from a reduction."""

    def __init__(
        self, state: SDFGState, seed: Stage, stages: dict[nodes.Node, Stage], most: int
    ) -> None:
        self.state, self.stages, self.most = state, stages, most
        self.rows, self.columns = seed.extents[: seed.kept], seed.extents[seed.kept :]
        self.members: dict[nodes.Node, Stage] = {seed.node: seed}

    def grown(self, order: list[nodes.Node], needed: Collection[str]) -> RowGroup | None:
        """The whole group; None if it is the reduction alone."""
        left = [node for node in order if node in self.stages and node not in self.members]
        grows = True
        while grows and len(self.members) < _MOST_STAGES:
            grows = False
            for node in list(left):
                fitting = (
                    stage
                    for stage in self._fitting(self.stages[node])
                    if self._is_near(stage) and self._may_join(stage)
                )
                stage = next(fitting, None)
                if stage is not None:
                    self.members[node] = stage
                    left.remove(node)
                    grows = True
        stages = tuple(self.members[node] for node in order if node in self.members)
        group = RowGroup(self.rows, self.columns, self.most, stages, frozenset())
        if sum(map(group.has_columns, stages)) < 2:
            return None
        kept = {node for node in group.written if self._is_needed(node, needed)}
        return replace(group, kept=frozenset(kept))

    def _fitting(self, stage: Stage) -> Iterator[Stage]:
        """The stage as it has the group's rows, and its columns or none, in whichever order."""
        whole = (*self.rows, *self.columns)
        if stage.reduction is not None:
            if stage.kept == len(self.rows) and _same(stage.extents, whole):
                yield stage
            return
        count = len(stage.extents)
        goal = whole if count == len(whole) else self.rows
        if count != len(goal):
            return
        orders = permutations(range(count)) if count <= _MOST_PERMUTED else [tuple(range(count))]
        for order in orders:
            if _same(tuple(stage.extents[n] for n in order), goal):
                yield permuted(stage, order)

    def _is_near(self, stage: Stage) -> bool:
        """Whether it passes something on to a member, reads of one, or reads the same elements."""
        count = len(self.rows)
        return any(
            mine.node is theirs.node
            and _alike(mine, theirs)
            and (
                mine in stage.writes
                or theirs in other.writes
                or (any(mine.steps[:count]) and any(mine.steps[count:]))
            )
            for other in self.members.values()
            for mine, theirs in _pairs(stage, other)
        )

    def _may_join(self, stage: Stage) -> bool:
        """Whether rows can be computed in any order still, and nothing stands between members."""
        for other in self.members.values():
            for mine, theirs in _pairs(stage, other):
                same = mine.node.data == theirs.node.data
                writes = mine in stage.writes or theirs in other.writes
                if same and writes and not self._is_passed(mine, theirs, stage, other):
                    return False
        return self._nothing_between(stage)

    def _is_passed(self, mine: Access, theirs: Access, stage: Stage, other: Stage) -> bool:
        """Whether one of two stages reads what the other writes, at the same places."""
        if mine.node is not theirs.node or (mine in stage.writes) == (theirs in other.writes):
            return False
        return self.state.in_degree(mine.node) == 1 and _alike(mine, theirs)

    def _nothing_between(self, stage: Stage) -> bool:
        members = {*self.members, stage.node}
        inside = {n for m in members for n in _scope(self.state, m)}
        graph = self.state.nx
        before = {n for m in members for n in nx.ancestors(graph, m)}
        behind = {n for m in members for n in nx.descendants(graph, _last(self.state, m))}
        between = (before & behind) - inside
        return all(
            isinstance(node, nodes.AccessNode)
            and all(edge.src in inside for edge in self.state.in_edges(node))
            for node in between
        )

    def _is_needed(self, node: nodes.AccessNode, needed: Collection[str]) -> bool:
        """Whether somebody else than the members reads what they write."""
        sdfg = self.state.sdfg
        if not sdfg.arrays[node.data].transient or node.data in needed:
            return True
        own = {n for m in self.members for n in _scope(self.state, m)}
        if any(edge.dst not in own for edge in self.state.out_edges(node)):
            return True
        return any(
            other is not node and other.data == node.data
            for block in sdfg.states()
            for other in block.data_nodes()
        )


def _pairs(one: Stage, other: Stage) -> Iterator[tuple[Access, Access]]:
    for mine in (*one.reads, *one.writes):
        for theirs in (*other.reads, *other.writes):
            yield mine, theirs


def _alike(one: Access, other: Access) -> bool:
    """Whether both are the same element; one may have no columns."""
    steps = max(len(one.steps), len(other.steps))
    padded = [
        replace(a, steps=(*a.steps, *[sympy.Integer(0)] * (steps - len(a.steps))))
        for a in (one, other)
    ]
    return padded[0].is_like(padded[1])


def _same(one: tuple[sympy.Expr, ...], other: tuple[sympy.Expr, ...]) -> bool:
    return len(one) == len(other) and all(
        sympy.expand(a - b) == 0 for a, b in zip(one, other, strict=True)
    )


def _last(state: SDFGState, node: nodes.Node) -> nodes.Node:
    found = state.exit_node(node) if isinstance(node, nodes.MapEntry) else node
    assert found is not None, "every map has an end"
    return found


def _scope(state: SDFGState, node: nodes.Node) -> list[nodes.Node]:
    return state.scope_subgraph(node).nodes() if isinstance(node, nodes.MapEntry) else [node]


def _replace(state: SDFGState, group: RowGroup) -> DeviceCall:
    """Put the call of the group's kernel in the place of its members."""
    kernel = RowKernel(group)
    text = kernel.text()
    inside = {n for stage in group.stages for n in _scope(state, stage.node)}
    passed = [node for node in group.written if not state.in_degree(node) > 1]
    stored = {one.access.node for one in kernel.to.pointers.values() if one.writes}
    empty = [e for n in inside for e in state.all_edges(n) if e.data.is_empty()]
    call = kernel.to.replace(state, group.stages[-1].label, kernel.remark, text)
    for edge in empty:
        if edge.src not in inside and edge.src not in group.written:
            state.add_nedge(edge.src, call, Memlet())
        elif edge.dst not in inside and edge.dst not in group.written:
            state.add_nedge(call, edge.dst, Memlet())
    state.remove_nodes_from(list(inside))
    for node in passed:
        if node not in stored:
            state.remove_node(node)
            if not any(n.data == node.data for s in state.sdfg.states() for n in s.data_nodes()):
                state.sdfg.remove_data(node.data, validate=False)
    return call
