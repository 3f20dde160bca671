"""Proof of a lowered program: of its plans, its tiles and its ranges, and of how they fit together.

The proof walks through the lowered SDFG as all ranks run it, and keeps what each of them holds of
each array (:mod:`distspmd.checking.validity`). It shows, for every rank:

- each plan does what it says (:func:`distspmd.plans.verifier.verify`), on the tiles that its node
  stores: same first index, same strides;
- what a space or a plan touches lies in the tiles that store it;
- all iterations of a space run, on the ranks that the record names, and on one of them where they
  make operands of a reduction;
- what is read is not older than the last write of it, on any rank; so a redistribution that is
  left out, comes too late, or brings too little is found;
- results are where the caller looks for them.

Loops with known values are walked through value by value, up to ``MOST_VALUES`` of them from each
end; others until nothing changes. Indices that data decide are
bounded by the tile. What ranks compute is not looked at: that is what running the program checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import networkx as nx
import numpy as np
import sympy
from dace import SDFG, SDFGState, symbolic
from dace.sdfg import nodes
from dace.sdfg.state import (
    AbstractControlFlowRegion,
    BreakBlock,
    ConditionalBlock,
    ContinueBlock,
    ControlFlowBlock,
    LoopRegion,
    ReturnBlock,
)
from dace.transformation.passes.analysis import loop_analysis

from distspmd.analysis.accesses import edges_of
from distspmd.analysis.iteration_spaces import source
from distspmd.analysis.scopes import nodes_inside
from distspmd.checking.holdings import Holdings
from distspmd.checking.lowered_accesses import Evaluator, LibrarySpace, Touched
from distspmd.checking.parts_of_spaces import Parts, prove_complete
from distspmd.checking.rims import handed_on_to, prove_chains
from distspmd.checking.stores import Stores
from distspmd.checking.validity import Validity
from distspmd.errors import PlanError
from distspmd.layouts import intervals
from distspmd.lowering import Lowering, TiledSpace
from distspmd.nodes.distributed_memlet import DistributedMemlet
from distspmd.nodes.fetched_memlet import FetchedMemlet
from distspmd.nodes.row_exchange import ExchangedRows
from distspmd.nodes.scatter import Scatter
from distspmd.plans.verifier import verify

MOST_VALUES = (8, 3, 2)
"""Values of a loop's variable that are walked through, from each end of its range: of an outermost
loop, of one in it, and of those further in."""


_UNREADABLE = (TypeError, ValueError, SyntaxError, AttributeError, sympy.SympifyError)
"""Errors of DaCe and SymPy about texts that are no expressions of symbols."""


def prove_program(lowering: Lowering) -> None:
    """Prove a lowered program.

    Raises:
        PlanError: names what is wrong first: the space or the plan, its line, the rank and the box.
    """
    for memlet in (*lowering.memlets, *lowering.fetches):
        verify(memlet.solution.plan)
    for space in lowering.spaces:
        prove_complete(space)
    for pipeline in lowering.pipelines:
        prove_chains(pipeline)
    if lowering.sdfg is not None:
        _Walk(lowering).run()


@dataclass
class _Walk:
    """A walk through a lowered program.

    Attributes:
        lowering: of the program.
        leaves: what ranks hold where control flow leaves a loop, or the program, early.
    """

    lowering: Lowering
    leaves: list[tuple[AbstractControlFlowRegion, Validity]] = field(default_factory=list)

    def __post_init__(self) -> None:
        lowering = self.lowering
        self.sdfg: SDFG = lowering.sdfg
        self.on_ranks = Evaluator.of(self.sdfg, lowering)
        self.ranks = self.on_ranks.ranks
        self.stores = Stores(lowering, self.on_ranks)
        self.holdings = Holdings(self.stores)
        self.parts = Parts(self.on_ranks)
        self.spaces = {space.node: space for space in lowering.spaces}
        self.library: dict[nodes.LibraryNode, LibrarySpace] = {}
        self.depth = 0

    # -- control flow ---------------------------------------------------------------------------

    def run(self) -> None:
        """Walk through the program, and look where its results are."""
        self._region(self.sdfg)
        ends = [v for region, v in self.leaves if region is self.sdfg]
        for validity in [*ends, self.holdings.validity]:
            self.holdings.validity = validity
            self.holdings.prove_results()
        self.parts.prove_run()

    def _region(self, region: AbstractControlFlowRegion) -> None:
        """Walk through the blocks of a region, each after those that lead to it."""
        arriving: dict[ControlFlowBlock, list[Validity]] = {
            region.start_block: [self.holdings.validity]
        }
        order = _in_order(region)
        ended: list[Validity] = []
        for block in order:
            if block not in arriving:
                continue
            self.holdings.validity = _joined(arriving[block]).copy()
            if not self._block(block):
                continue
            leaving = region.out_edges(block)
            if not leaving:
                ended.append(self.holdings.validity)
            for edge in leaving:
                self._prove_reads(edge.data.get_read_memlets(self.sdfg.arrays, True), block)
                self._assign(edge.data.assignments)
                arriving.setdefault(edge.dst, []).append(self.holdings.validity)
        if ended:
            self.holdings.validity = _joined(ended)

    def _block(self, block: ControlFlowBlock) -> bool:
        """Walk through a block; whether control flow goes on behind it."""
        if isinstance(block, SDFGState):
            self._state(block)
        elif isinstance(block, LoopRegion):
            self._loop(block)
        elif isinstance(block, ConditionalBlock):
            self._branches(block)
        elif isinstance(block, (BreakBlock, ContinueBlock, ReturnBlock)):
            loop: Any = block.parent_graph
            while not isinstance(loop, SDFG) and not (
                isinstance(loop, LoopRegion) and not isinstance(block, ReturnBlock)
            ):
                loop = loop.parent_graph
            self.leaves.append((loop, self.holdings.validity))
            return False
        elif isinstance(block, AbstractControlFlowRegion):
            self._region(block)
        return True

    def _branches(self, block: ConditionalBlock) -> None:
        self._prove_reads(block.get_meta_read_memlets(self.sdfg.arrays, True), block)
        before, found = self.holdings.validity, []
        for condition, branch in block.branches:
            taken = True if condition is None else self._decided(condition.as_string)
            if taken is False:
                continue
            self.holdings.validity = before.copy()
            self._region(branch)
            found.append(self.holdings.validity)
            if taken:
                break
        else:
            found.append(before)
        self.holdings.validity = _joined(found)

    def _decided(self, condition: str) -> bool | None:
        """What a condition is by the values of symbols; None where the run or the rank decides."""
        try:
            found = symbolic.pystr_to_symbolic(condition)
            names = {symbol.name: symbol for symbol in found.free_symbols}
            values = {symbol: self.on_ranks.values[name] for name, symbol in names.items()}
        except (KeyError, *_UNREADABLE):
            return None
        if any(len(set(each.tolist())) > 1 for each in values.values()):
            return None
        known = found.subs({symbol: int(each[0]) for symbol, each in values.items()})
        return bool(known) if known in (sympy.true, sympy.false) else None

    def _loop(self, loop: LoopRegion) -> None:
        """Walk through a loop: by the values of its variable where they choose what is touched."""
        self._prove_reads(loop.get_meta_read_memlets(self.sdfg.arrays, True), loop)
        values = self._values_of(loop)
        before = self.holdings.validity.copy()
        if values is not None:
            for value in _some(values, MOST_VALUES[min(self.depth, len(MOST_VALUES) - 1)]):
                self.on_ranks.values[loop.loop_variable] = np.full(self.ranks, value, np.int64)
                self._iteration(loop)
            self.on_ranks.values.pop(loop.loop_variable, None)
            if values:
                self._leave(loop)
            return
        if loop.loop_variable:
            self.on_ranks.unknown.add(loop.loop_variable)
        while True:
            entered = self.holdings.validity
            self._iteration(loop)
            self.holdings.validity = entered.join(self.holdings.validity)
            if self.holdings.validity.holds_all_of(entered):
                break
        self.on_ranks.unknown.discard(loop.loop_variable)
        self.holdings.validity = before.join(self.holdings.validity)
        self._leave(loop)

    def _iteration(self, loop: LoopRegion) -> None:
        self.depth += 1
        self._region(loop)
        self.depth -= 1
        self._prove_reads(loop.get_meta_read_memlets(self.sdfg.arrays, True), loop)

    def _leave(self, loop: LoopRegion) -> None:
        """Join what holds at the end of a loop with what holds where it is left or cut short."""
        for region, validity in self.leaves:
            if region is loop:
                self.holdings.validity = self.holdings.validity.join(validity)
        self.leaves = [(region, v) for region, v in self.leaves if region is not loop]

    def _values_of(self, loop: LoopRegion) -> range | None:
        """Values of a loop's variable; None where there is none, or where the run decides them."""
        if not loop.loop_variable:
            return None
        ends = [
            None if end is None else self.on_ranks.numbers(end)
            for end in (
                loop_analysis.get_init_assignment(loop),
                loop_analysis.get_loop_end(loop),
                loop_analysis.get_loop_stride(loop),
            )
        ]
        if any(end is None for end in ends):
            return None
        first, last, step = (int(end[0]) for end in ends)  # type: ignore[index]
        return range(first, last + (1 if step > 0 else -1), step)

    def _assign(self, assignments: dict[str, Any]) -> None:
        for name, text in assignments.items():
            try:
                found = self.on_ranks.numbers(symbolic.pystr_to_symbolic(str(text)))
            except _UNREADABLE:
                found = None  # a call, or an element of an array: the run decides it
            self.on_ranks.values.pop(name, None)
            if found is None:
                self.on_ranks.unknown.add(name)
            else:
                self.on_ranks.unknown.discard(name)
                self.on_ranks.values[name] = found

    def _prove_reads(self, memlets: Any, block: ControlFlowBlock) -> None:
        """What control flow reads is there on every rank."""
        for memlet in memlets:
            if memlet.data in self.sdfg.arrays:
                self.holdings.read(
                    self.on_ranks.of_memlet(memlet, memlet.data, False),
                    f"the condition of {block.label}",
                )

    # -- states ---------------------------------------------------------------------------------

    def _state(self, state: SDFGState) -> None:
        for node in nx.topological_sort(state.nx):
            if state.entry_node(node) is not None:
                continue
            self.holdings.enter(state, node)
            if isinstance(node, nodes.AccessNode):
                self._copies(state, node)
            elif isinstance(node, (DistributedMemlet, FetchedMemlet)):
                self.holdings.move(state, node)
            elif isinstance(node, (ExchangedRows, nodes.ExitNode)):
                continue
            elif isinstance(node, nodes.MapEntry):
                self._run(state, node, [*self.on_ranks.of_map(state, node)])
            elif isinstance(node, nodes.LibraryNode):
                self._run(state, node, self._of_library_node(state, node))
            elif isinstance(node, nodes.CodeNode):
                self._run(state, node, self._of_memlets(state, node))
        self.holdings.leave()

    def _of_library_node(self, state: SDFGState, node: nodes.LibraryNode) -> list[Touched]:
        if node not in self.library:
            self.library[node] = LibrarySpace.of(state, node)
        space = self.spaces.get(node.guid)
        idle = np.zeros(self.ranks, bool)
        if space is not None and space.bounds is not None:
            idle = ~self.parts.busy(space)  # it may touch an element that nobody asks for
        found = [*self.on_ranks.of_library_node(self.library[node], idle)]
        return self._together(state, node, found) if isinstance(node, Scatter) else found

    def _together(self, state: SDFGState, node: Scatter, found: Sequence[Touched]) -> list[Touched]:
        """Of indices and values that ranks send each other they have all together."""
        own = {e.data.data for e in state.in_edges(node) if e.dst_conn in {*node.indices, "_value"}}
        for each in found if node.in_parts else ():
            tiles = self.stores.tiles.get(each.store)
            if each.is_write or each.store not in own or tiles is None:
                continue
            missing = intervals.subtract_all(
                intervals.whole(tiles.extents), [*dict.fromkeys(each.box)]
            )
            if missing:
                raise PlanError(
                    f"{source(state, node)}: no rank has [{intervals.box_text(missing[0])}] of "
                    f"{each.store!r} for the write of {node.label!r}."
                )
        parts = own if node.in_parts else set()
        return [replace(each, fixed=()) if each.store in parts else each for each in found]

    def _of_memlets(self, state: SDFGState, node: nodes.Node) -> list[Touched]:
        return [
            self.on_ranks.of_memlet(edge.data, edge.data.data, edge.src is node)
            for edge in edges_of(state)
            if node in (edge.src, edge.dst) and not edge.data.is_empty()
        ]

    def _copies(self, state: SDFGState, node: nodes.AccessNode) -> None:
        for edge in state.in_edges(node):
            if isinstance(edge.src, nodes.AccessNode) and not edge.data.is_empty():
                where = f"a copy to {node.data}"
                self.holdings.read(self.on_ranks.of_memlet(edge.data, edge.src.data, False), where)
                self.holdings.write(self.on_ranks.of_memlet(edge.data, node.data, True), where)

    def _run(self, state: SDFGState, node: nodes.Node, touched: Sequence[Touched]) -> None:
        """A space runs: it reads what is there, and then writes."""
        space = self.spaces.get(node.guid)
        place = source(state, node)
        where = f"{place}: " * bool(place) + f"the space {space.name if space else str(node)!r}"
        if space is not None:
            self._prove_parts(space, node, where)
        writes = [each for each in touched if each.is_write]
        own = [each for each in writes if each.exact and _may_read_its_own(state, node)]
        own += handed_on_to(state, node, writes, self.lowering.pipelines)
        for each in touched:
            if not each.is_write:
                self.holdings.read(each, where, [w for w in own if w.store == each.store])
        fills = not [each for each in touched if not each.is_write]
        for each in writes:
            if space is not None and each.reduces and each.store in self.stores.partial:
                self.parts.prove_once(space, self.stores.operands[each.store], where)
            self.holdings.write(each, where, fills and space is None)

    def _prove_parts(self, space: TiledSpace, node: nodes.Node, where: str) -> None:
        if isinstance(node, nodes.MapEntry):
            self.parts.prove(space, node, where)
        elif isinstance(node, nodes.LibraryNode):
            self.parts.prove(space, self.library[node], where)


def _may_read_its_own(state: SDFGState, node: nodes.Node) -> bool:
    """Whether a space may read what it has written before: one whose body has states."""
    inside = nodes_inside(state, node) if isinstance(node, nodes.MapEntry) else []
    return any(isinstance(each, nodes.NestedSDFG) for each in inside)


def _in_order(region: AbstractControlFlowRegion) -> list[ControlFlowBlock]:
    graph = region.nx
    if nx.is_directed_acyclic_graph(graph):
        return [*nx.topological_sort(graph)]
    return [*nx.dfs_preorder_nodes(graph, region.start_block)]


def _joined(ways: Sequence[Validity]) -> Validity:
    found = ways[0]
    for other in ways[1:]:
        found = found.join(other)
    return found


def _some(values: range, most: int) -> Iterator[int]:
    """The values of a loop that are walked through, so many from each end."""
    if len(values) <= 2 * most:
        yield from values
    else:
        yield from values[:most]
        yield from values[-most:]
