"""What a map or a library node computes: one expression of elements for each element that it
writes.

The tasklets of a map are joined to one expression of the elements that it reads. A library node
computes what the main map of its pure expansion computes, in the windows that it has.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sympy
from dace import Memlet, SDFGState, dtypes
from dace.dtypes import DebugInfo
from dace.frontend.operations import detect_reduction_type
from dace.libraries import standard
from dace.sdfg import nodes
from dace.subsets import Range

from distspmd.analysis.accesses import Edge
from distspmd.analysis.iteration_spaces import (
    Extent,
    main_map,
    parameters_of,
    pure_expansion,
    source,
    window_name,
)
from distspmd.analysis.library_nodes import outermost
from distspmd.errors import UnsupportedProgram
from distspmd.nodes.contraction import Contraction
from distspmd.passes.autodiff.derivatives import expression, names_of, with_names

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
class Operation:
    """``data[indices] = code``, or that reduced, for all values of the parameters.

    Attributes:
        state: where it stands.
        node: the map entry or library node.
        ranges: of each parameter, from 0 in steps of 1; none of a parameter with one value.
        reads: what the names in the code stand for.
        written: what is written.
        code: an expression of the names, and of the parameters.
        reduction: name of the conflict resolution in DaCe; empty for a plain write.
        accumulates: whether what was there before is reduced, too.
    """

    state: SDFGState = field(repr=False)
    node: nodes.Node
    ranges: Mapping[str, Extent]
    reads: Mapping[str, Element]
    written: Element
    code: ast.expr = field(repr=False)
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


def operations_of(state: SDFGState, node: nodes.Node) -> list[Operation]:
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


def _operation(state: SDFGState, entry: nodes.MapEntry, node: nodes.Node, edge: Edge) -> Operation:
    walk = _Walk(state, entry)
    written = state.memlet_path(edge)[-1].dst.data
    code = walk.value(edge.src, edge.src_conn)
    reduction = edge.data.wcr and detect_reduction_type(edge.data.wcr)
    kind = "" if reduction is None else str(reduction).rpartition(".")[2]
    ranges = walk.ranges(edge.src)
    used = names_of(code)
    reads = {name: element for name, element in walk.reads.items() if name in used}
    at = walk.element(written, edge.data)
    found = Operation(state, node, ranges, reads, at, code, kind, accumulates=bool(kind))
    return _counted(found)


def _counted(operation: Operation) -> Operation:
    """The operation with parameters that count from 0, without those that have one value."""
    values: dict[str, sympy.Expr] = {}
    ranges: dict[str, Extent] = {}
    zero, one = sympy.Integer(0), sympy.Integer(1)
    for name, extent in operation.ranges.items():
        if not extent.step.is_positive:
            raise _unknown(operation.state, operation.node, f"a map of {name} in {extent}")
        (count,) = Range([(extent.begin, extent.end - 1, extent.step)]).size()
        if count != 1:
            ranges[name] = Extent(zero, sympy.sympify(count), one)
            if extent.begin != 0 or extent.step != 1:
                values[name] = extent.begin + extent.step * sympy.Symbol(name)
        else:
            values[name] = extent.begin
    return replace(
        operation,
        ranges=ranges,
        reads={name: element.at(values) for name, element in operation.reads.items()},
        written=operation.written.at(values),
        code=with_names(operation.code, {p: expression(str(v)) for p, v in values.items()}),
    )


def as_sum(operation: Operation) -> Operation:
    """``y[i] = y[i] + a``  ->  ``y[i] += a``; any other operation as it is."""
    own = [name for name, element in operation.reads.items() if element == operation.written]
    rest = None if operation.reduction or len(own) != 1 else _rest(operation.code, own[0])
    if rest is None:
        return operation
    reads = {name: element for name, element in operation.reads.items() if name != own[0]}
    return replace(operation, reads=reads, code=rest, reduction="Sum", accumulates=True)


def _rest(code: ast.expr, own: str) -> ast.expr | None:
    """What a sum adds to a name; None if the code is no sum of that kind."""
    if isinstance(code, ast.Name) and code.id == own:
        return ast.Constant(0.0)
    if not isinstance(code, ast.BinOp) or not isinstance(code.op, (ast.Add, ast.Sub)):
        return None
    if own not in names_of(code.right):
        left = _rest(code.left, own)
        return None if left is None else ast.BinOp(left, code.op, code.right)
    if own not in names_of(code.left) and isinstance(code.op, ast.Add):
        right = _rest(code.right, own)
        return None if right is None else ast.BinOp(code.left, code.op, right)
    return None


class _Walk:
    """Joins the tasklets of a map, from one that writes back to what it reads."""

    def __init__(self, state: SDFGState, entry: nodes.MapEntry) -> None:
        self.state, self.entry = state, entry
        self.reads: dict[str, Element] = {}

    def ranges(self, node: nodes.Node) -> dict[str, Extent]:
        """Parameters around a node, outermost first."""
        around: list[nodes.MapEntry] = []
        scope = self.state.entry_node(node)
        while scope is not None:
            if not isinstance(scope, nodes.MapEntry):
                raise _unknown(self.state, self.entry, f"{scope}")
            around.insert(0, scope)
            scope = self.state.entry_node(scope)
        found: dict[str, Extent] = {}
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

    def value(self, node: nodes.Node, connector: str | None) -> ast.expr:
        """What a node inside of the map gives, as an expression of elements."""
        if isinstance(node, nodes.AccessNode):
            return self._copied(node)
        if not isinstance(node, nodes.Tasklet) or node.language != dtypes.Language.Python:
            raise _unknown(
                self.state,
                self.entry,
                f"a loop, a branch or an index that data decide, in a map ({node})",
            )
        given = {edge.dst_conn: self._given(edge) for edge in self.state.in_edges(node)}
        known = {name: code for name, code in given.items() if name and code is not None}
        for statement in node.code.code:
            self._run(statement, known)
        if connector not in known:
            raise _unknown(self.state, self.entry, f"the code {node.code.as_string!r}")
        return known[connector]

    def _copied(self, node: nodes.AccessNode) -> ast.expr:
        """What a temporary inside of the map holds."""
        found = [self._given(edge) for edge in self.state.in_edges(node)]
        if len(found) != 1 or found[0] is None:
            raise _unknown(self.state, self.entry, f"the temporary {node.data!r} inside of a map")
        return found[0]

    def _given(self, edge: Edge) -> ast.expr | None:
        if edge.data.is_empty():
            return None
        if not isinstance(edge.src, nodes.EntryNode):
            return self.value(edge.src, edge.src_conn)
        element = self.element(self.state.memlet_path(edge)[0].src.data, edge.data)
        for name, known in self.reads.items():
            if known == element:
                return ast.Name(name)
        name = f"__r{len(self.reads)}"
        self.reads[name] = element
        return ast.Name(name)

    def _run(self, statement: ast.stmt, known: dict[str, ast.expr]) -> None:
        """Follow one statement of a tasklet."""
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return
        if isinstance(statement, ast.If):
            branches = [dict(known), dict(known)]
            for body, own in zip((statement.body, statement.orelse), branches, strict=True):
                for inner in body:
                    self._run(inner, own)
            test = with_names(statement.test, known)
            for name in branches[0].keys() & branches[1].keys():
                if ast.dump(branches[0][name]) != ast.dump(branches[1][name]):
                    known[name] = ast.IfExp(test, branches[0][name], branches[1][name])
            return
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Name):
            raise _unknown(self.state, self.entry, f"the code {ast.unparse(statement)!r}")
        known[target.id] = with_names(statement.value, known)


def _in_windows(
    operation: Operation, inner: SDFGState, state: SDFGState, node: nodes.LibraryNode
) -> Operation:
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
    code = operation.code
    if isinstance(node, Contraction):
        if node.code:
            raise _unknown(state, node, f"the contraction {node.label!r} of an expression")
        factors = [ast.Name(name) for name in _factors(code)]
        code = factors[0]
        for factor in factors[1:]:
            code = ast.BinOp(code, ast.Mult(), factor)
    return replace(
        operation,
        state=state,
        node=node,
        reads=reads,
        written=outside(operation.written),
        code=code,
        accumulates=isinstance(node, standard.Reduce) and node.identity is None,
    )


def _factors(code: ast.expr) -> Iterator[str]:
    """The names that the map of a contraction, which only is analysed, adds up."""
    if isinstance(code, ast.BinOp):
        yield from itertools.chain(_factors(code.left), _factors(code.right))
    else:
        assert isinstance(code, ast.Name)
        yield code.id
