"""What a map or a library node computes: one expression for each element that it writes.

The tasklets of a map are joined to one expression of the elements that it reads. A library node
computes what the main map of its pure expansion computes, in the windows that it has.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy
from dace import Memlet, SDFGState, dtypes
from dace.dtypes import DebugInfo
from dace.frontend.operations import detect_reduction_type
from dace.libraries import standard
from dace.sdfg import nodes
from dace.subsets import Range

from distspmd.analysis.accesses import Edge
from distspmd.analysis.iteration_spaces import (
    ParameterRange,
    main_map,
    parameters_of,
    pure_expansion,
    source,
    window_name,
)
from distspmd.analysis.library_nodes import outermost
from distspmd.errors import UnsupportedProgram
from distspmd.expressions.from_python import Unreadable, assigned, expression_of
from distspmd.expressions.ir import Argument, Constant, Expression, names, parts, substitute
from distspmd.expressions.linear import linear_in
from distspmd.nodes.computation import Computation
from distspmd.nodes.contraction import Contraction

Indices = tuple[sympy.Expr, ...]


@dataclass(frozen=True)
class Element:
    """An element of a container, by the parameters of a map."""

    data: str
    indices: Indices

    def at(self, values: Mapping[str, sympy.Expr]) -> Element:
        """The element if parameters have other values."""
        by_name = {
            symbol: values[str(symbol)]
            for index in self.indices
            for symbol in index.free_symbols
            if str(symbol) in values
        }
        moved = (index.subs(by_name, simultaneous=True) for index in self.indices)
        return Element(self.data, tuple(moved))


@dataclass(frozen=True)
class ForwardOperation:
    """``data[indices] = value``, or that reduced, for all values of the parameters.

    Attributes:
        state: where it stands.
        node: the map entry or library node.
        ranges: of each parameter, from 0 in steps of 1; none of a parameter with one value.
        reads: what the names in the value stand for.
        written: what is written.
        value: an expression of the names, and of the parameters.
        reduction: name of the conflict resolution in DaCe; empty for a plain write.
        accumulates: whether what was there before is reduced, too.
    """

    state: SDFGState = field(repr=False)
    node: nodes.Node
    ranges: Mapping[str, ParameterRange]
    reads: Mapping[str, Element]
    written: Element
    value: Expression = field(repr=False)
    reduction: str = ""
    accumulates: bool = False

    @property
    def info(self) -> DebugInfo | None:
        """DaCe's record of the source line."""
        of: Any = getattr(self.node, "map", self.node)
        found: DebugInfo | None = of.debuginfo
        return found

    @property
    def where(self) -> str:
        """The source line for messages."""
        return str(source(self.state, self.node) or f"node {self.node}")


def operations_of(state: SDFGState, node: nodes.Node) -> list[ForwardOperation]:
    """What a top-level map or library node computes.

    Raises:
        UnsupportedProgram: it is no expression of single elements.
    """
    if isinstance(node, nodes.MapEntry):
        return [_operation(state, node, node, edge) for edge in _written_inside(state, node)]
    assert isinstance(node, nodes.LibraryNode)
    beta = getattr(node, "beta", 0)
    if beta != 0 or getattr(node, "pick", "") or getattr(node, "operation", "sum") != "sum":
        raise _unknown(state, node, f"the library node {node.label!r}")
    proxy = pure_expansion(state, node)
    inner, entry = main_map(proxy)
    found = [_operation(inner, entry, node, edge) for edge in _written_inside(inner, entry)]
    return [_in_windows(operation, inner, state, node) for operation in found]


def _unknown(state: SDFGState, node: nodes.Node, what: str) -> UnsupportedProgram:
    return UnsupportedProgram(
        f"{source(state, node) or node}: a gradient is asked through {what}, whose derivative is "
        "not known. Write it with sums, products, functions of elements, maxima and products of "
        "matrices, or trace the program with torch: frontend.training_step."
    )


def _written_inside(state: SDFGState, entry: nodes.MapEntry) -> Iterator[Edge]:
    """Edges by which the code inside of a map writes."""
    leave = state.exit_node(entry)
    for edge in state.out_edges(leave):
        for leaf in state.memlet_tree(edge).leaves():
            if not leaf.data.is_empty():
                yield leaf


def _operation(
    state: SDFGState, entry: nodes.MapEntry, node: nodes.Node, edge: Edge
) -> ForwardOperation:
    walk = _Walk(state, entry)
    written = state.memlet_path(edge)[-1].dst.data
    value = walk.value(edge.src, edge.src_conn)
    reduction = edge.data.wcr and detect_reduction_type(edge.data.wcr)
    kind = "" if reduction is None else str(reduction).rpartition(".")[2]
    ranges = walk.ranges(edge.src)
    used = names(value)
    reads = {name: element for name, element in walk.reads.items() if name in used}
    at = walk.element(written, edge.data)
    found = ForwardOperation(state, node, ranges, reads, at, value, kind, accumulates=bool(kind))
    return _counted(found)


def _counted(operation: ForwardOperation) -> ForwardOperation:
    """The operation with parameters that count from 0, without those that have one value."""
    values: dict[str, sympy.Expr] = {}
    ranges: dict[str, ParameterRange] = {}
    zero, one = sympy.Integer(0), sympy.Integer(1)
    for name, extent in operation.ranges.items():
        if not extent.step.is_positive:
            raise _unknown(operation.state, operation.node, f"a map of {name} in {extent}")
        (count,) = Range([(extent.begin, extent.end - 1, extent.step)]).size()
        if count != 1:
            ranges[name] = ParameterRange(zero, sympy.sympify(count), one)
            if extent.begin != 0 or extent.step != 1:
                values[name] = extent.begin + extent.step * sympy.Symbol(name)
        else:
            values[name] = extent.begin
    return replace(
        operation,
        ranges=ranges,
        reads={name: element.at(values) for name, element in operation.reads.items()},
        written=operation.written.at(values),
        value=substitute(operation.value, {p: index_value(v) for p, v in values.items()}),
    )


def as_sum(operation: ForwardOperation) -> ForwardOperation:
    """``y[i] = y[i] + a``  ->  ``y[i] += a``; any other operation as it is."""
    own = [name for name, element in operation.reads.items() if element == operation.written]
    sums = None if operation.reduction or len(own) != 1 else linear_in(operation.value, own[0])
    if sums is None or not (isinstance(sums[0], Constant) and sums[0].value == 1):
        return operation
    rest = sums[1] or Constant(0.0, operation.value.dtype)
    reads = {name: element for name, element in operation.reads.items() if name != own[0]}
    return replace(operation, reads=reads, value=rest, reduction="Sum", accumulates=True)


def index_value(index: sympy.Expr) -> Expression:
    """A symbolic index as an expression."""
    return expression_of(ast.parse(str(index), mode="eval").body, {})


class _Walk:
    """Joins the tasklets of a map, from one that writes back to what it reads."""

    def __init__(self, state: SDFGState, entry: nodes.MapEntry) -> None:
        self.state, self.entry = state, entry
        self.reads: dict[str, Element] = {}

    def ranges(self, node: nodes.Node) -> dict[str, ParameterRange]:
        """Parameters around a node, outermost first."""
        around: list[nodes.MapEntry] = []
        scope = self.state.entry_node(node)
        while scope is not None:
            if not isinstance(scope, nodes.MapEntry):
                raise _unknown(self.state, self.entry, f"{scope}")
            around.insert(0, scope)
            scope = self.state.entry_node(scope)
        found: dict[str, ParameterRange] = {}
        for entry in around:
            for name, extent in zip(*parameters_of(entry), strict=True):
                bounds = extent.begin + extent.end + extent.step
                if {str(s) for s in bounds.free_symbols} & set(found) or name in found:
                    raise _unknown(
                        self.state, self.entry, f"a map whose range {name} others choose"
                    )
                found[name] = extent
        return found

    def element(self, data: str, memlet: Memlet) -> Element:
        """The element that a memlet has.

        Raises:
            UnsupportedProgram: it has several.
        """
        subset = memlet.subset if memlet.data == data else memlet.other_subset
        if subset is None or subset.num_elements() != 1 or memlet.dynamic:
            raise _unknown(self.state, self.entry, f"an index of {data!r} that data decide")
        return Element(data, tuple(sympy.sympify(begin) for begin, _, _ in subset.ranges))

    def value(self, node: nodes.Node, connector: str | None) -> Expression:
        """What a node inside of the map gives, as an expression of elements."""
        if isinstance(node, nodes.AccessNode):
            return self._copied(node)
        if isinstance(node, Computation) and not node.before and node.assignments() is not None:
            return self._computed(node, str(connector))
        if not isinstance(node, nodes.Tasklet) or node.language != dtypes.Language.Python:
            raise _unknown(
                self.state,
                self.entry,
                f"a loop, a branch or an index that data decide, in a map ({node})",
            )
        given = {edge.dst_conn: self._given(edge) for edge in self.state.in_edges(node)}
        known = {name: value for name, value in given.items() if name and value is not None}
        try:
            found = assigned(node.code.code, known)
        except Unreadable as part:
            raise _unknown(self.state, self.entry, f"the code {str(part)!r}") from None
        if connector is None or connector not in found:
            raise _unknown(self.state, self.entry, f"the code {node.code.as_string!r}")
        return found[connector]

    def _computed(self, node: Computation, connector: str) -> Expression:
        """What a tasklet computes whose expressions are known."""
        given = {edge.dst_conn: self._given(edge) for edge in self.state.in_edges(node)}
        known = {name: value for name, value in given.items() if name and value is not None}
        found = dict(node.assignments() or ())
        return substitute(found[connector], known)

    def _copied(self, node: nodes.AccessNode) -> Expression:
        """What a temporary inside of the map holds."""
        found = [self._given(edge) for edge in self.state.in_edges(node)]
        if len(found) != 1 or found[0] is None:
            raise _unknown(self.state, self.entry, f"the temporary {node.data!r} inside of a map")
        return found[0]

    def _given(self, edge: Edge) -> Expression | None:
        if edge.data.is_empty():
            return None
        if not isinstance(edge.src, nodes.EntryNode):
            return self.value(edge.src, edge.src_conn)
        element = self.element(self.state.memlet_path(edge)[0].src.data, edge.data)
        dtype = np.dtype(self.state.sdfg.arrays[element.data].dtype.as_numpy_dtype())
        for name, known in self.reads.items():
            if known == element:
                return Argument(name, dtype)
        name = f"__r{len(self.reads)}"
        self.reads[name] = element
        return Argument(name, dtype)


def _in_windows(
    operation: ForwardOperation, inner: SDFGState, state: SDFGState, node: nodes.LibraryNode
) -> ForwardOperation:
    """An operation of an expansion, on the containers that the node has."""
    windows = {
        window_name(connector): edge.data
        for connector, edge in [
            *((e.dst_conn or "_in", e) for e in state.in_edges(node)),
            *((e.src_conn or "_out", e) for e in state.out_edges(node)),
        ]
        if not edge.data.is_empty()
    }

    def outside(element: Element) -> Element:
        memlet = windows.get(outermost(inner.sdfg, element.data) or "")
        if memlet is None:
            raise _unknown(state, node, f"the library node {node.label!r}")
        indices = [sympy.sympify(begin) for begin, _, _ in memlet.subset.ranges]
        steps = [sympy.sympify(step) for _, _, step in memlet.subset.ranges]
        places = list(range(len(indices)))
        if len(places) != len(element.indices):
            places = [d for d, size in enumerate(memlet.subset.size()) if size != 1]
        if len(places) != len(element.indices):
            raise _unknown(state, node, f"the library node {node.label!r}")
        for place, index in zip(places, element.indices, strict=True):
            indices[place] += steps[place] * index
        return Element(memlet.data, tuple(indices))

    reads = {name: outside(element) for name, element in operation.reads.items()}
    value = operation.value
    if isinstance(node, Contraction):
        if node.reduced is not None:
            raise _unknown(state, node, f"the contraction {node.label!r} of an expression")
        value, *others = (part for part in parts(value) if isinstance(part, Argument))
        for factor in others:  # of what is analysed as a sum
            value = value * factor
    return replace(
        operation,
        state=state,
        node=node,
        reads=reads,
        written=outside(operation.written),
        value=value,
        accumulates=isinstance(node, standard.Reduce) and node.identity is None,
    )
