"""Maps whose iterations compute one expression of elements each, and write one element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy
from dace import Memlet, SDFGState, data, subsets
from dace.sdfg import nodes

from distspmd.analysis.control_values import is_control_value
from distspmd.dace_compat.exact_ranges import exact
from distspmd.expressions.ir import Argument, Expression
from distspmd.nodes.computation import Computation

Index = tuple[sympy.Expr, ...]


@dataclass(frozen=True)
class Elementwise:
    """A map whose iterations compute one expression of elements, and write one element each.

    Attributes:
        state: has it.
        entry: begins it.
        tasklet: what it computes.
        name: the connector of the result.
        value: the expression; its arguments are the names of what is read.
        reads: the element that each of them is.
        written: what the map writes.
        place: which element.
    """

    state: SDFGState
    entry: nodes.MapEntry
    tasklet: Computation
    name: str
    value: Expression
    reads: Mapping[str, tuple[nodes.AccessNode, Index]]
    written: nodes.AccessNode
    place: Index

    @property
    def ranges(self) -> dict[str, tuple[sympy.Expr, ...]]:
        """First, last and step of each parameter."""
        extents = (tuple(map(exact, r)) for r in self.entry.map.range.ranges)
        return dict(zip(map(str, self.entry.map.params), extents, strict=True))

    @property
    def is_copy(self) -> bool:
        """Whether it computes nothing."""
        return isinstance(self.value, Argument)


def elementwise(state: SDFGState, entry: nodes.MapEntry) -> Elementwise | None:
    """A map at the top level as such, if it is one."""
    leave = state.exit_node(entry)
    tasklet = next((e.dst for e in state.out_edges(entry)), None)
    inside = state.scope_subgraph(entry, include_entry=False, include_exit=False).nodes()
    alone = state.entry_node(entry) is None and inside == [tasklet]
    if not alone or leave is None or not isinstance(tasklet, Computation):
        return None
    outer, inner = state.out_edges(leave), state.out_edges(tasklet)
    found = tasklet.assignments()
    if found is None or len(found) != 1 or len(outer) != 1 or len(inner) != 1 or tasklet.before:
        return None
    reads = _reads(state, entry, tasklet)
    place = _element(inner[0].data)
    written = outer[0].dst
    if reads is None or place is None or inner[0].data.wcr or outer[0].data.wcr:
        return None
    if not isinstance(written, nodes.AccessNode) or is_control_value(entry):
        return None
    ((name, value),) = found
    return Elementwise(state, entry, tasklet, name, value, reads, written, place)


def _reads(
    state: SDFGState, entry: nodes.MapEntry, tasklet: Computation
) -> dict[str, tuple[nodes.AccessNode, Index]] | None:
    """The element behind each input of a tasklet; None where one is anything else."""
    outer = {e.dst_conn: e.src for e in state.in_edges(entry)}
    found: dict[str, tuple[nodes.AccessNode, Index]] = {}
    for edge in state.in_edges(tasklet):
        if edge.data.is_empty():
            continue
        index, source = _element(edge.data), outer.get(f"IN_{str(edge.src_conn)[4:]}")
        if index is None or not isinstance(source, nodes.AccessNode) or edge.data.dynamic:
            return None
        if edge.data.data != source.data or isinstance(state.sdfg.arrays[source.data], data.View):
            return None
        found[edge.dst_conn] = source, index
    plain = all(name and name.startswith("IN_") for name in outer)
    return found if plain else None


def _element(memlet: Memlet) -> Index | None:
    """The index of the one element that a memlet is."""
    if not isinstance(memlet.subset, subsets.Range) or memlet.other_subset is not None:
        return None
    if any(sympy.expand(first - last) != 0 for first, last, _ in memlet.subset.ranges):
        return None
    return tuple(sympy.sympify(exact(first)) for first, _, _ in memlet.subset.ranges)


def makes_all(found: Elementwise) -> bool:
    """Whether a map writes each element of its result once, at a parameter plus a number."""
    ranges, shape = found.ranges, found.state.sdfg.arrays[found.written.data].shape
    left = set(ranges)
    for at, extent in zip(found.place, shape, strict=True):
        own = [s.name for s in at.free_symbols if s.name in left]
        if not own:
            if at != 0 or extent != 1:
                return False
            continue
        left.discard(own[0])
        first, last, step = ranges[own[0]]
        shift = sympy.expand(at - _symbol(at, own[0]))
        if len(own) > 1 or shift.free_symbols or step != 1:
            return False
        if sympy.expand(first + shift) != 0 or sympy.expand(last + shift + 1 - extent) != 0:
            return False
    return not left


def _symbol(expression: sympy.Expr, name: str) -> sympy.Symbol:
    return next(s for s in expression.free_symbols if s.name == name)
