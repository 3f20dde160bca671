"""What an iteration of a loop makes for itself: values that it writes before it reads them.

A temporary or a symbol is an iteration's own where each read comes after a write of all of it, in
the same iteration, and where nothing behind the loop reads what the last one leaves. Control flow
that is not straight counts as a read of everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx
import sympy
from dace import SDFG, SDFGState, data, dtypes
from dace.sdfg import nodes
from dace.sdfg.state import (
    AbstractControlFlowRegion,
    ConditionalBlock,
    ControlFlowBlock,
    LoopRegion,
)
from dace.transformation.passes.analysis import loop_analysis

from distspmd.analysis.accesses import Access, state_accesses
from distspmd.analysis.index_bounds import Range
from distspmd.analysis.whole_program import is_straight


class Flow:
    """Reads of names, containers and symbols, that no write before them in a region covers."""

    def __init__(self, sdfg: SDFG, names: Iterable[str]) -> None:
        self.sdfg, self.names = sdfg, frozenset(names)
        self.exposed: set[str] = set()

    def through(self, region: AbstractControlFlowRegion, covered: frozenset[str]) -> frozenset[str]:
        """What is covered behind a region, of what is covered before it."""
        if isinstance(region, ConditionalBlock):
            return self._branches(region, covered)
        if not is_straight(region):
            self.exposed |= self.names - covered
            return covered
        return self.blocks(region, list(nx.topological_sort(region.nx)), covered)

    def blocks(
        self,
        region: AbstractControlFlowRegion,
        blocks: Iterable[ControlFlowBlock],
        covered: frozenset[str],
    ) -> frozenset[str]:
        """The same of some blocks of a straight region, in their order."""
        for block in blocks:
            if isinstance(block, SDFGState):
                covered = self._state(block, covered)
            elif isinstance(block, LoopRegion):
                self._read(header_names(block), covered)
                own = frozenset([block.loop_variable]) if block.loop_variable else frozenset()
                self.through(block, covered | own)
            elif isinstance(block, AbstractControlFlowRegion):
                covered = self.through(block, covered)
            for edge in region.out_edges(block):
                self._read(map(str, edge.data.free_symbols), covered)
                covered |= self.names & edge.data.assignments.keys()
        return covered

    def _branches(self, block: ConditionalBlock, covered: frozenset[str]) -> frozenset[str]:
        self._read(header_names(block), covered)
        ends = [self.through(branch, covered) for _, branch in block.branches]
        if all(condition is not None for condition, _ in block.branches):
            ends.append(covered)
        return frozenset.intersection(*ends) if ends else covered

    def _read(self, names: Iterable[str], covered: frozenset[str]) -> None:
        self.exposed |= (self.names & {*names}) - covered

    def _state(self, state: SDFGState, covered: frozenset[str]) -> frozenset[str]:
        written: set[str] = set()
        touched = [node for node in state.data_nodes() if node.data in self.names]
        filled = self._filled(state) if touched else set()
        for node in touched:
            before = [edge for edge in state.in_edges(node) if not edge.data.is_empty()]
            alone = not before and any(not e.data.is_empty() for e in state.out_edges(node))
            in_part = bool(before) and node.data not in filled
            if alone or in_part or any(edge.data.wcr for edge in before):
                self._read([node.data], covered)
            if before and node.data in filled:
                written.add(node.data)
        if self.names - self.sdfg.arrays.keys():
            self._read(names_in(state), covered)
        return covered | written

    def _filled(self, state: SDFGState) -> set[str]:
        """Containers of which the state surely writes all."""
        return {
            access.data
            for access in state_accesses(state, {})
            if access.is_write and access.data in self.names and fills(access, self.sdfg)
        }


def words(text: str) -> set[str]:
    """The names in a text."""
    return set(re.findall(r"\b[A-Za-z_]\w*", text))


def names_in(state: SDFGState) -> set[str]:
    """Symbols that a state reads, also in code of C++, in which DaCe looks for none."""
    found = set(map(str, state.free_symbols))
    for node, _ in state.all_nodes_recursive():
        if isinstance(node, nodes.Tasklet) and node.language is not dtypes.Language.Python:
            found |= words(node.code.as_string)
    return found


def header_names(block: LoopRegion | ConditionalBlock) -> set[str]:
    """Names that a header reads; a loop gives its variable the first value itself."""
    found = {str(s) for code in block.get_meta_codeblocks() for s in code.get_free_symbols()}
    if isinstance(block, LoopRegion):
        first: Any = loop_analysis.get_init_assignment(block)
        if first is not None and block.loop_variable not in map(str, first.free_symbols):
            found.discard(str(block.loop_variable))
    return found


def fills(access: Access, sdfg: SDFG) -> bool:
    """Whether a write surely writes all of its container, whatever was there."""
    if access.conditional or access.reduction is not None:
        return False
    container = sdfg.arrays[access.data]
    shape = container.shape if isinstance(container, data.Array) else (1,)
    used: set[str] = set()
    for dimension, extent in zip(access.dimensions, shape, strict=True):
        if dimension is None or dimension.step != 1:
            return False
        first, last = map(sympy.sympify, (dimension.first, dimension.last))
        if first == last and first.is_Symbol:
            ends = access.scope.get(first.name)
            if first.name in used or not isinstance(ends, Range) or ends.step != 1:
                return False
            used.add(first.name)
            first, last = map(sympy.sympify, (ends.lower, ends.upper))
        if first != 0 or sympy.expand(last - extent + 1) != 0:
            return False
    known = used | access.values.keys()  # a symbol that is set once has one value
    return all(name in known or _has_values(access.scope, name) for name in access.scope)


def _has_values(scope: Mapping[str, Range | None], name: str) -> bool:
    ends = scope[name]
    return ends is not None and bool(sympy.expand(ends.upper - ends.lower).is_nonnegative)


def own_names(loop: LoopRegion, names: Iterable[str]) -> set[str]:
    """Those names of which each iteration makes its own value, and nothing else sees it."""
    sdfg = loop.sdfg
    flow = Flow(sdfg, names)
    own = frozenset([loop.loop_variable]) if loop.loop_variable else frozenset()
    flow.through(loop, own)
    return set(flow.names) - flow.exposed - live_after(loop, flow.names - flow.exposed)


def live_after(block: ControlFlowBlock, names: Iterable[str]) -> set[str]:
    """Those names whose values may be read behind a block, before they are written anew."""
    sdfg = block.sdfg
    flow = Flow(sdfg, names)
    covered: frozenset[str] = frozenset()
    while block is not sdfg:
        region = block.parent_graph
        if not isinstance(region, ConditionalBlock):
            if not is_straight(region):
                flow.exposed |= flow.names - covered
                break
            order = list(nx.topological_sort(region.nx))
            after = order[order.index(block) + 1 :]
            for edge in region.out_edges(block):
                flow._read(map(str, edge.data.free_symbols), covered)
                covered |= flow.names & edge.data.assignments.keys()
            covered = flow.blocks(region, after, covered)
            if isinstance(region, LoopRegion):
                flow._read(header_names(region), covered)
                again = Flow(sdfg, flow.names - covered)
                again.blocks(region, order[: order.index(block)], frozenset([region.loop_variable]))
                flow.exposed |= again.exposed
        block = region
    return flow.exposed
