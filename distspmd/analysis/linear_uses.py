"""What a space does with containers that it reads: if it is linear in them, or needs their sums.

Maps of tasklets and contractions are understood; they can be changed to read a sum in place of its
summands.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from dace import Memlet, SDFGState, dtypes
from dace.libraries import linalg
from dace.properties import CodeBlock
from dace.sdfg import nodes

from distspmd.analysis.accesses import Edge
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.expressions.from_python import Unreadable, assigned
from distspmd.expressions.ir import Argument, Constant, Expression, substitute
from distspmd.expressions.linear import FREE, Factor, Form, Leaf, Number, Tracker, sums
from distspmd.expressions.operations import DType
from distspmd.expressions.text import Assignments
from distspmd.nodes.computation import Computation
from distspmd.nodes.contraction import Contraction
from distspmd.nodes.subscripts import Subscripts

_MOVING = (linalg.Transpose, linalg.TensorTranspose)
"""Library nodes that are linear in what they read."""


@dataclass(frozen=True, eq=False)
class Reading:
    """How a space reads some containers.

    Attributes:
        space: the space.
        is_linear: whether all that it writes is a linear combination of them.
        sums: sums that it needs of them, where it needs nothing else of those; with weights
            up to a common factor.
        edges: the edges at its border through which it reads each.
    """

    space: IterationSpace
    is_linear: bool
    sums: tuple[dict[str, Number], ...]
    edges: Mapping[str, tuple[Edge, ...]]

    def reads_from(self, origins: Collection[nodes.AccessNode]) -> bool:
        """Whether the containers of some nodes are read from these nodes alone."""
        return all(e.src in origins for node in origins for e in self.edges[node.data])


def reading(
    space: IterationSpace, names: Collection[str], dtype: dtypes.typeclass
) -> Reading | None:
    """How a space reads containers of one type; None if that is not understood."""
    tracker = Tracker(np.dtype(dtype.as_numpy_dtype()))
    if isinstance(space.node, nodes.MapEntry):
        places = _Map(space.state, space.node, names, dtype, tracker).run()
    elif isinstance(space.node, Contraction):
        places = _of_contraction(space.state, space.node, names, tracker)
    elif isinstance(space.node, _MOVING) and getattr(space.node, "beta", 0) == 0:
        return Reading(space, True, (), {})
    else:
        return None
    if places is None:
        return None
    found = tuple(_of_containers(added, places) for added in sums(tracker.consumed))
    edges = {
        name: tuple(e for e in space.state.in_edges(space.node) if e.data.data == name)
        for name in names
    }
    return Reading(space, tracker.is_linear, tuple(filter(None, found)), edges)


Places = dict[Leaf, str]
"""The container of each leaf; a leaf is an element, as the code names it."""


def _of_containers(added: Mapping[Leaf, Number], places: Places) -> dict[str, Number]:
    """A sum of leaves as one of containers, of which each has one leaf, all at one place."""
    read = [*places.values()]
    alone = {leaf: weight for leaf, weight in added.items() if read.count(places[leaf]) == 1}
    first = next((leaf[1:] for leaf in alone), None)  # type: ignore[index]
    found = {places[x]: weight for x, weight in alone.items() if x[1:] == first}  # type: ignore[index]
    return found if len(found) > 1 else {}


class _Map:
    """Follows leaves through the tasklets of a map."""

    def __init__(
        self,
        state: SDFGState,
        entry: nodes.MapEntry,
        names: Collection[str],
        dtype: dtypes.typeclass,
        tracker: Tracker,
    ) -> None:
        self.state, self.entry, self.names = state, entry, names
        self.dtype, self.tracker = dtype, tracker
        self.places: Places = {}
        self.forms: dict[tuple[nodes.Node, str | None], Form] = {}

    def run(self) -> Places | None:
        """The leaves; None if more than tasklets is inside, or whole numbers of several types."""
        edges = self.state.scope_subgraph(self.entry).edges()
        named = {e.data.data for e in edges if e.data.data}
        types = {self.state.sdfg.arrays[name].dtype for name in named}
        if self.tracker.whole and len(types) > 1:
            return None
        inside = self.state.nx.subgraph(self.state.scope_subgraph(self.entry).nodes())
        for number, node in enumerate(nx.topological_sort(inside)):
            if isinstance(node, nodes.Tasklet):
                if not self._tasklet(node, str(number)):
                    return None
            elif isinstance(node, nodes.AccessNode):
                if not self._scalar(node):
                    return None
            elif isinstance(node, nodes.MapExit):
                self._leave(node)
            elif node is not self.entry:
                return None
        return self.places

    def _tasklet(self, node: nodes.Tasklet, scope: str) -> bool:
        code = computed(self.state, node, self.tracker.dtype)
        if code is None:
            return False
        forms = {e.dst_conn: self._through(e) for e in self.state.in_edges(node) if e.dst_conn}
        known: dict[int, Form] = {}
        found = {
            name: self.tracker.form(value, forms, scope, known)
            for name, value in code
            if name in node.out_connectors
        }
        self.forms.update({(node, name): found.get(name, FREE) for name in node.out_connectors})
        return True

    def _scalar(self, node: nodes.AccessNode) -> bool:
        """A container inside that passes one element on."""
        container = self.state.sdfg.arrays[node.data]
        before = self.state.in_edges(node)
        if len(before) != 1 or before[0].src is self.entry or container.total_size != 1:
            return False
        self.forms[node, None] = self._stored(before[0], node.data)
        return True

    def _leave(self, node: nodes.MapExit) -> None:
        for edge in self.state.in_edges(node):
            self.tracker.leave(self._stored(edge, edge.data.data))

    def _stored(self, edge: Edge, name: str) -> Form:
        form = self._through(edge)
        if edge.data.wcr is None and self.state.sdfg.arrays[name].dtype == self.dtype:
            return form
        self.tracker.consume(form)
        return FREE

    def _through(self, edge: Edge) -> Form:
        """The form of what an edge carries."""
        if edge.src is not self.entry:
            return self.forms.get((edge.src, edge.src_conn), FREE)
        if edge.data.data not in self.names:
            return FREE
        leaf = edge.data.data, str(edge.data.subset)
        self.places[leaf] = edge.data.data
        return Form({leaf: Factor()})


def computed(state: SDFGState, node: nodes.Tasklet, dtype: DType) -> Assignments | None:
    """The expressions of a tasklet; None if it is more than that, or they are not known.

    Args:
        state: where the tasklet is.
        node: the tasklet.
        dtype: the type of names that come through no connector.
    """
    if isinstance(node, Computation):
        return node.assignments()
    if node.language is not dtypes.Language.Python:
        return None
    types = {
        e.dst_conn: np.dtype(state.sdfg.arrays[e.data.data].dtype.as_numpy_dtype())
        for e in state.in_edges(node)
        if e.dst_conn and e.data.data
    }
    read: dict[str, Expression] = {name: Argument(name, t) for name, t in types.items()}
    try:
        found = assigned(node.code.code, read, other=dtype)
    except Unreadable:
        return None
    return tuple((name, value) for name, value in found.items() if name not in read)


def _of_contraction(
    state: SDFGState,
    node: Contraction,
    names: Collection[str],
    tracker: Tracker,
) -> Places:
    """Follow the operands of a contraction; the leaves."""
    places: Places = {}
    terms = Subscripts.parse(node.subscripts).operands
    known = {}
    for n, edge in _operands(state, node):
        if edge.data.data in names:
            leaf = edge.data.data, str(edge.data.subset), terms[n]
            places[leaf] = edge.data.data
            known[f"_v{n}"] = Form({leaf: Factor()})
            if node.pick and node.pick.operand == n:
                tracker.consume(known[f"_v{n}"])
    value = node.reduced
    if value is None:
        for form in known.values():
            tracker.consume(form)
    else:
        tracker.consume(tracker.form(value, known, ""))
    return places


def _operands(state: SDFGState, node: Contraction) -> Iterator[tuple[int, Edge]]:
    for edge in state.in_edges(node):
        if edge.dst_conn:
            yield int(edge.dst_conn.removeprefix("_in")), edge


# -- reading a sum instead ------------------------------------------------------------------------


def read_sum(reader: Reading, names: Sequence[str], origin: nodes.AccessNode) -> None:
    """Let a space read a sum for the first of some containers, and zeros for the others."""
    state, node = reader.space.state, reader.space.node
    dtype = state.sdfg.arrays[origin.data].dtype
    for name in names:
        for edge in reader.edges[name]:
            if isinstance(node, Contraction):
                if name != names[0]:
                    assert node.reduced is not None, "operands of a product have no sum"
                    zero = {edge.dst_conn.replace("_in", "_v"): _zero(dtype)}
                    node.expression = str(substitute(node.reduced, zero))
                _reread(state, edge, origin)
            elif name == names[0]:
                _reread(state, edge, origin)
            else:
                _unread(state, edge, dtype)


def _reread(state: SDFGState, edge: Edge, origin: nodes.AccessNode) -> None:
    for leaf in state.memlet_tree(edge).traverse_children(include_self=True):
        leaf.edge.data.data = origin.data
    state.add_edge(origin, None, edge.dst, edge.dst_conn, edge.data)
    _remove(state, edge)


def _unread(state: SDFGState, border: Edge, dtype: dtypes.typeclass) -> None:
    """Take an edge into a map away; what it brought is zero."""
    entry = border.dst
    inside = "OUT_" + border.dst_conn.removeprefix("IN_")
    for edge in list(state.out_edges_by_connector(entry, inside)):
        tasklet = edge.dst
        _put_zero(tasklet, edge.dst_conn, dtype)
        state.remove_edge(edge)
        tasklet.remove_in_connector(edge.dst_conn)
        if state.in_degree(tasklet) == 0:
            state.add_nedge(entry, tasklet, Memlet())
    entry.remove_out_connector(inside)
    entry.remove_in_connector(border.dst_conn)
    _remove(state, border)


def _remove(state: SDFGState, edge: Edge) -> None:
    state.remove_edge(edge)
    if state.degree(edge.src) == 0:
        state.remove_node(edge.src)


def _zero(dtype: dtypes.typeclass) -> Constant:
    element: DType = np.dtype(dtype.as_numpy_dtype())
    return Constant(element.type(0).item(), element)


def _put_zero(tasklet: nodes.Tasklet, name: str, dtype: dtypes.typeclass) -> None:
    """Put zero for an operand of a tasklet."""
    if isinstance(tasklet, Computation):
        code = tasklet.assignments()
        assert code is not None, "it was read"
        by = {name: _zero(dtype)}
        tasklet.assign(tuple((target, substitute(value, by)) for target, value in code))
        return
    converted = ast.Attribute(ast.Name("dace"), dtype.to_string())
    zero = ast.Call(converted, [ast.Constant(0)], [])
    body = [ast.fix_missing_locations(_Zero(name, zero).visit(line)) for line in tasklet.code.code]
    tasklet.code = CodeBlock(body, tasklet.language)


class _Zero(ast.NodeTransformer):
    """Puts an expression for a name, in Python that DaCe's parser wrote."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == self.name else node
