"""Values that decide what runs become scalars, which every rank holds before it decides.

before -> after:  ``if a[3] > 0``  ->  ``a_value = a[3]``, a map of one iteration that all ranks
run;  ``symbol = a_value`` on an edge;  ``if symbol > 0``.  A read of control flow is thus a read
like any other, and a distributed memlet brings that one element to every rank. The condition of a
loop is read before the loop, and again at the end of each iteration.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

from dace import SDFG, InterstateEdge, Memlet, SDFGState, data, dtypes
from dace.properties import CodeBlock
from dace.sdfg import nodes
from dace.sdfg.state import (
    AbstractControlFlowRegion,
    ConditionalBlock,
    ContinueBlock,
    ControlFlowBlock,
    LoopRegion,
)

from distspmd.analysis.accesses import edges_of
from distspmd.analysis.control_values import is_control_value, mark_control_value
from distspmd.errors import UnsupportedProgram

_LABEL = "value_for_control_flow"
"""Label of the states, tasklets and maps that read such values."""


def control_values(sdfg: SDFG) -> None:
    """Take reads of containers out of interstate edges and conditions, in place.

    Raises:
        UnsupportedProgram: control flow that reads a whole array.
    """
    written = {
        node.data for state in sdfg.states() for node in state.data_nodes() if state.in_edges(node)
    }
    for region in list(sdfg.all_control_flow_regions(recursive=False)):
        if isinstance(region, ConditionalBlock):
            _of_branches(sdfg, region)
            continue
        if isinstance(region, LoopRegion):
            _of_loop(sdfg, region, written)
        for block in list(region.nodes()):
            _of_edges(sdfg, region, block)


def _of_edges(sdfg: SDFG, region: AbstractControlFlowRegion, block: ControlFlowBlock) -> None:
    """Read what edges out of a block need, after the block."""
    edges = region.out_edges(block)
    values = _Values(sdfg)
    for edge in edges:
        assignments = edge.data.assignments
        edge.data.assignments = {name: values.text(old) for name, old in assignments.items()}
        edge.data.condition = values.code(edge.data.condition)
    for edge in edges if values.levels else ():
        region.remove_edge(edge)
    if values.levels:
        _, last = _chain(region, values, after=block)
        for edge in edges:
            region.add_edge(last, edge.dst, edge.data)


def _of_branches(sdfg: SDFG, block: ConditionalBlock) -> None:
    values = _Values(sdfg)
    for _, branch in list(block.branches):
        for number, (condition, region) in enumerate(block.branches):
            if region is branch and condition is not None:
                block.branches[number] = (values.code(condition), region)
    _read_before(block, values)


def _of_loop(sdfg: SDFG, loop: LoopRegion, written: set[str]) -> None:
    """Read what the loop's header needs before the loop, and what may change after each turn."""
    first = _Values(sdfg)
    if loop.init_statement is not None:
        loop.init_statement = first.code(loop.init_statement)
    again = _Values(sdfg, like=first)
    loop.loop_condition = again.code(loop.loop_condition)
    if loop.update_statement is not None:
        loop.update_statement = again.code(loop.update_statement)
    first.take(again)
    _read_before(loop, first)
    if again.containers & written:
        ends = [block for block in loop.sink_nodes() if not isinstance(block, ContinueBlock)]
        for block in ends:
            _chain(loop, again, after=block)
        for block in _continues(loop):
            _read_before(block, again)


def _continues(loop: LoopRegion) -> Iterator[ContinueBlock]:
    for block in list(loop.all_control_flow_blocks()):
        if isinstance(block, ContinueBlock):
            region = block.parent_graph
            while not isinstance(region, LoopRegion):
                region = region.parent_graph
            if region is loop:
                yield block


def _read_before(block: ControlFlowBlock, values: _Values) -> None:
    if not values.levels:
        return
    region = block.parent_graph
    entering = region.in_edges(block)
    starts = region.start_block is block
    for edge in entering:
        region.remove_edge(edge)
    first, last = _chain(region, values, is_start=starts)
    for edge in entering:
        region.add_edge(edge.src, first, edge.data)
    region.add_edge(last, block, InterstateEdge())


def _chain(
    region: AbstractControlFlowRegion,
    values: _Values,
    after: ControlFlowBlock | None = None,
    is_start: bool = False,
) -> tuple[SDFGState, SDFGState]:
    """States that read the values, level by level, each before the edge that names them."""
    first = current = region.add_state(_LABEL, is_start_block=is_start)
    if after is not None:
        region.add_edge(after, first, InterstateEdge())
    for level in values.levels:
        for value in level:
            value.read_in(current)
        following = region.add_state(_LABEL)
        assigned: dict[str, str | ast.AST] = {value.symbol: value.scalar for value in level}
        region.add_edge(current, following, InterstateEdge(assignments=assigned))
        current = following
    return first, current


@dataclass(frozen=True)
class _Value:
    """One element of a container that an expression reads."""

    container: str
    index: str
    scalar: str
    symbol: str

    def read_in(self, state: SDFGState) -> None:
        """Copy the element to the scalar."""
        tasklet = state.add_tasklet(_LABEL, {"__inp"}, {"__out"}, "__out = __inp")
        mark_control_value(tasklet)
        memlet = Memlet(data=self.container, subset=self.index)
        state.add_edge(state.add_read(self.container), None, tasklet, "__inp", memlet)
        written = Memlet(data=self.scalar, subset="0")
        state.add_edge(tasklet, "__out", state.add_write(self.scalar), None, written)


@dataclass
class _Values(ast.NodeTransformer):
    """Replaces reads of containers by symbols; an index that reads one is a level before."""

    sdfg: SDFG
    like: _Values | None = None
    levels: list[list[_Value]] = field(default_factory=list)

    @functools.cached_property
    def ready(self) -> set[str]:
        """Scalars that were values for control flow already."""
        return {
            edge.dst.data
            for state in self.sdfg.states()
            for edge in edges_of(state)
            if isinstance(edge.dst, nodes.AccessNode) and is_control_value(edge.src)
        }

    @property
    def containers(self) -> set[str]:
        return {value.container for level in self.levels for value in level}

    def take(self, other: _Values) -> None:
        """Read what another one reads, too."""
        for number, level in enumerate(other.levels):
            for value in level:
                self._add(number, value)

    def text(self, expression: object) -> str:
        """The expression of an assignment, without reads."""
        return self._replaced(str(expression), "eval")

    def code(self, block: CodeBlock) -> CodeBlock:
        """A condition or statement, without reads."""
        return CodeBlock(self._replaced(block.as_string, "exec"), block.language)

    def _replaced(self, text: str, mode: str) -> str:
        if not text.strip():
            return text
        tree = ast.parse(text.strip(), mode=mode)
        return ast.unparse(ast.fix_missing_locations(self.visit(tree)))

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Replace an element of a container."""
        if not isinstance(node.value, ast.Name) or not self._is_read(node.value):
            return self.generic_visit(node)
        before = self._depth(node.slice)
        index = self.visit(node.slice)
        elements = index.elts if isinstance(index, ast.Tuple) else [index]
        text = ", ".join(map(ast.unparse, elements))
        if any(isinstance(element, ast.Slice) for element in elements):
            self._refuse(node.value.id)
        return self._named(node.value.id, text, before)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Replace a scalar."""
        if not self._is_read(node) or not isinstance(node.ctx, ast.Load):
            return node
        container = self.sdfg.arrays[node.id]
        if isinstance(container, data.Array) and container.total_size != 1:
            self._refuse(node.id)
        return self._named(node.id, ", ".join("0" for _ in container.shape), 0)

    def _refuse(self, name: str) -> None:
        raise UnsupportedProgram(
            f"control flow reads {name!r}, an array of several elements, as a whole. Compute the "
            "number that it needs before: any_above = np.max(x) > 0."
        )

    def _depth(self, tree: ast.AST) -> int:
        """How many levels of values an expression needs before it is known."""
        if isinstance(tree, ast.Subscript) and self._is_read(tree.value):
            return self._depth(tree.slice) + 1
        inner = max(map(self._depth, ast.iter_child_nodes(tree)), default=0)
        return max(inner, int(self._is_read(tree)))

    def _is_read(self, tree: ast.AST) -> bool:
        return (
            isinstance(tree, ast.Name) and tree.id in self.sdfg.arrays and tree.id not in self.ready
        )

    def _named(self, container: str, index: str, level: int) -> ast.Name:
        known = self.like.levels if self.like else []
        for value in (v for values in (*self.levels, *known) for v in values):
            if (value.container, value.index) == (container, index):
                self._add(level, value)
                return ast.Name(value.symbol, ast.Load())
        dtype: dtypes.typeclass = self.sdfg.arrays[container].dtype
        scalar, _ = self.sdfg.add_scalar(
            f"{container}_value".lstrip("_"), dtype, transient=True, find_new_name=True
        )
        symbol = self.sdfg.find_new_symbol(f"{scalar}_now")
        self.sdfg.add_symbol(symbol, dtype)
        self._add(level, _Value(container, index, scalar, symbol))
        return ast.Name(symbol, ast.Load())

    def _add(self, level: int, value: _Value) -> None:
        while len(self.levels) <= level:
            self.levels.append([])
        if not any(value in values for values in self.levels):
            self.levels[level].append(value)
