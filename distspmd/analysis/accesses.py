"""The accesses of an iteration space: every innermost memlet, with the ranges around it.

The walk passes through map scopes and into nested SDFGs, whose containers are those outside, with
the same global indices (DaCe 2). Subsets are taken where data meet code, and never from the
propagated memlets around it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import sympy
from dace import SDFG, Memlet, SDFGState, dtypes, subsets, symbolic
from dace.frontend.operations import detect_reduction_type
from dace.sdfg import nodes
from dace.sdfg.graph import MultiConnectorEdge
from dace.sdfg.state import (
    AbstractControlFlowRegion,
    ConditionalBlock,
    ControlFlowBlock,
    ControlFlowRegion,
    LoopRegion,
)
from dace.transformation.passes.analysis import loop_analysis

from distspmd.analysis.index_bounds import Range, stepping
from distspmd.analysis.scopes import edges_at, nodes_inside
from distspmd.analysis.symbol_values import (
    ElementValue,
    Value,
    connector_values,
    index_in_code,
    load_through,
    values_at,
)
from distspmd.analysis.whole_program import assigned_symbols, is_straight, returns
from distspmd.layouts import user_reductions

Edge = MultiConnectorEdge[Memlet]

_NO_EDGE: Edge = MultiConnectorEdge(
    None,
    None,  # type: ignore[arg-type]  # connectors may be None
    None,
    None,  # type: ignore[arg-type]
    Memlet(),
    None,
)


@dataclass(frozen=True, slots=True)
class Dimension:
    """Indices ``first..last`` (both included) in one dimension.

    These are each ``step``-th, ``last`` too; a step of None is not known, or does not lead there.
    """

    first: sympy.Expr
    last: sympy.Expr
    step: int | None = 1


@dataclass(frozen=True, slots=True)
class Access:
    """One innermost read or write of a container.

    Attributes:
        data: name of the container in the SDFG of the iteration space.
        edge: the edge at the border of the space through which the access goes.
        dimensions: indices; None for a dimension of which nothing is known.
        scope: ranges of the symbols in them, outermost first.
        values: what symbols hold whose range is unknown, as far as that is known.
        conditional: whether the access may not happen.
        reduction: conflict resolution of a write: its name in DaCe (``Sum``), a lambda, or None.
    """

    data: str
    edge: Edge
    is_write: bool
    dimensions: tuple[Dimension | None, ...]
    scope: dict[str, Range | None] = field(hash=False)
    values: dict[str, Value] = field(hash=False, default_factory=dict)
    conditional: bool = False
    reduction: str | None = None


def map_accesses(state: SDFGState, entry: nodes.MapEntry) -> list[Access]:
    """All accesses of a top-level map to containers outside it."""
    return list(_Walk(state.sdfg).state_accesses(state, set(nodes_inside(state, entry)), {}))


def state_accesses(state: SDFGState, scope: dict[str, Range | None]) -> Iterator[Access]:
    """All accesses of the code of a state to containers.

    Args:
        state: of an SDFG; its copies between containers are no code.
        scope: ranges of the symbols that are bound around it, outermost first.
    """
    code = {node for node in state.nodes() if not isinstance(node, nodes.AccessNode)}
    return _Walk(state.sdfg).state_accesses(state, code, scope)


def edges_of(state: SDFGState) -> list[Edge]:
    """Edges of a state, of the type that they have."""
    return state.edges()  # type: ignore[return-value]  # DaCe says Edge


def happens_once(state: SDFGState) -> bool:
    """Whether a state runs exactly once in every run of its SDFG."""
    return state.parent_graph is state.sdfg and _runs_always(state) and not returns(state.sdfg)


def loops_around(block: ControlFlowBlock) -> Iterator[LoopRegion]:
    """Loops around a block of its SDFG, innermost first."""
    return (region for region in _regions(block) if isinstance(region, LoopRegion))


def changes_in_loops(state: SDFGState, data: str) -> bool:
    """Whether a container may have other values each time that a state runs in a run.

    It has the same ones if nothing in the outermost loop around the state writes it; outside of
    loops the state runs once.
    """
    around = list(loops_around(state))
    if not around:
        return True
    return any(
        node.data == data and other.in_degree(node)
        for other in around[-1].all_control_flow_blocks()
        if isinstance(other, SDFGState)
        for node in other.data_nodes()
    )


def runs_in_each_iteration(state: SDFGState) -> bool:
    """Whether a state runs in each iteration of the loops around it, in every run."""
    regions = list(_regions(state))
    loops = [region for region in regions if isinstance(region, LoopRegion)]
    branches = any(isinstance(region, ConditionalBlock) for region in regions)
    leaves = any(loop.has_break or loop.has_return or loop.has_continue for loop in loops)
    nested = state.sdfg is not state.sdfg.cfg_list[0]
    ends_early = returns(state.sdfg) and state is not state.sdfg.start_block
    if branches or leaves or nested or ends_early:
        return False
    return all(map(_runs_always, [state, *regions]))


def bound_around(state: SDFGState) -> dict[str, Range | None]:
    """Symbols that loops around a state, and edges between states, give other values in a run."""
    return _bound_in(state.sdfg, loops_around(state))


class _Walk:
    """Collects accesses; gives symbols that are bound inside names that no other symbol has."""

    def __init__(self, sdfg: SDFG) -> None:
        self.sdfg = sdfg
        self.fresh = 0

    def _unique(self, name: str) -> str:
        self.fresh += 1
        return f"{name}__{self.fresh}"

    def state_accesses(
        self, state: SDFGState, inside: set[nodes.Node], scope: dict[str, Range | None]
    ) -> Iterator[Access]:
        """Accesses by the nodes of a set to containers that are no transients of that set."""
        for edge in edges_at(state, inside):
            if edge.data.is_empty():
                continue
            path = state.memlet_path(edge)
            first, last = path[0].src, path[-1].dst
            if edge is path[-1] and edge.dst in inside and _enters(first, inside, state.sdfg):
                yield from self._leaf(state, edge, path[0], first, False, scope)
            if edge is path[0] and edge.src in inside and _enters(last, inside, state.sdfg):
                yield from self._leaf(state, edge, path[-1], last, True, scope)

    def _leaf(
        self,
        state: SDFGState,
        edge: Edge,
        border: Edge,
        container: nodes.AccessNode,
        is_write: bool,
        outer: dict[str, Range | None],
    ) -> Iterator[Access]:
        node = edge.src if is_write else edge.dst
        scope = {**outer, **self._around(state, node)}
        values = connector_values(state, _maps_around(state, node))
        connector = edge.src_conn if is_write else edge.dst_conn
        if isinstance(node, nodes.NestedSDFG) and _same_shape(state, container, node, connector):
            for access in self._nested(node, connector, is_write, scope):
                inner = _values_outside(access.values, state, node)
                yield replace(access, data=container.data, edge=border, values={**values, **inner})
            return
        subset = (
            edge.data.get_dst_subset(edge, state)
            if is_write
            else edge.data.get_src_subset(edge, state)
        )
        access = Access(
            container.data,
            border,
            is_write,
            _dimensions(subset, state.sdfg.arrays[container.data].shape),
            scope,
            values,
            conditional=is_write and (edge.data.dynamic or isinstance(node, nodes.NestedSDFG)),
            reduction=_reduction(edge.data),
        )
        if isinstance(node, nodes.Tasklet) and not is_write:
            access = self._indexed(access, state, node, edge)
        yield access

    def _indexed(
        self, access: Access, state: SDFGState, tasklet: nodes.Tasklet, edge: Edge
    ) -> Access:
        """The access, where the code of a tasklet chooses from a window: ``__arr[__inp0]``."""
        windows = [d for d, size in enumerate(edge.data.subset.size()) if size != 1]
        indices = index_in_code(tasklet, edge.dst_conn)
        begins = edge.data.subset.min_element()
        if not windows or indices is None or len(indices) != len(windows):
            return access
        operands = {e.dst_conn: e for e in state.in_edges(tasklet) if e.dst_conn}
        names = {connector: self._unique(connector.strip("_")) for connector in operands}
        loads = {names[c]: load_through(state, e) for c, e in operands.items()}
        dimensions = list(access.dimensions)
        for d, text in zip(windows, indices, strict=True):
            index = symbolic.pystr_to_symbolic(text)
            inner = {s: names[s.name] for s in index.free_symbols if s.name in names}
            symbols = {s: symbolic.pystr_to_symbolic(name) for s, name in inner.items()}
            chosen = sympy.sympify(begins[d]) + index.subs(symbols)
            dimensions[d] = Dimension(chosen, chosen)
        return replace(
            access,
            dimensions=tuple(dimensions),
            scope={**access.scope, **dict.fromkeys(loads)},
            values={**access.values, **{n: load for n, load in loads.items() if load}},
        )

    def _around(self, state: SDFGState, node: nodes.Node) -> dict[str, Range | None]:
        """Ranges of the parameters of the maps around a node, outermost first."""
        scope: dict[str, Range | None] = {}
        for entry in reversed(_maps_around(state, node)):
            dynamic = {c for c in entry.in_connectors if not c.startswith("IN_")}
            scope.update(dict.fromkeys(dynamic))
            for name, values in zip(entry.map.params, entry.map.range.ranges, strict=True):
                scope[name] = stepping(*values)
        return scope

    def _nested(
        self, node: nodes.NestedSDFG, connector: str, is_write: bool, scope: dict[str, Range | None]
    ) -> Iterator[Access]:
        """Accesses inside a nested SDFG to the container behind a connector, in outside symbols."""
        for block_scope, state, conditional in self._states(node.sdfg):
            known = values_at(state)
            for access in self.state_accesses(state, set(_code(state, connector)), block_scope):
                if access.data != connector or access.is_write != is_write:
                    continue
                access = replace(access, values={**known, **access.values})
                yield replace(
                    self._outside(access, node, scope),
                    conditional=access.conditional or (is_write and conditional),
                )
        if not is_write:
            yield from (
                self._outside(access, node, scope) for access in control_reads(node.sdfg, connector)
            )

    def _states(self, sdfg: SDFG) -> Iterator[tuple[dict[str, Range | None], SDFGState, bool]]:
        """States with the symbols bound around each, and whether it may be skipped."""
        for state in sdfg.states():
            around = list(_regions(state))
            loops = [region for region in around if isinstance(region, LoopRegion)]
            branches = any(isinstance(region, ConditionalBlock) for region in around)
            yield _bound_in(sdfg, loops), state, branches or bool(loops) or not _runs_always(state)

    def _outside(
        self, access: Access, node: nodes.NestedSDFG, scope: dict[str, Range | None]
    ) -> Access:
        """Rename symbols that the nested SDFG binds, and put the outside's in for the others."""
        names = {name: self._unique(name) for name in access.scope}
        substitution = {
            str(inner): symbolic.pystr_to_symbolic(str(outer))
            for inner, outer in node.symbol_mapping.items()
            if str(inner) not in names
        }
        for name, unique in names.items():
            substitution[name] = symbolic.pystr_to_symbolic(unique)

        def moved(expression: sympy.Expr) -> sympy.Expr:
            found = {
                s: substitution[s.name] for s in expression.free_symbols if s.name in substitution
            }
            return expression.subs(found, simultaneous=True)

        inner = {
            names[name]: values and Range(moved(values.lower), moved(values.upper), values.step)
            for name, values in access.scope.items()
        }
        dimensions = tuple(
            d and Dimension(moved(d.first), moved(d.last), d.step) for d in access.dimensions
        )
        values = {
            names[name]: replace(value, indices=tuple(map(moved, value.indices)))
            if isinstance(value, ElementValue)
            else moved(value)
            for name, value in access.values.items()
            if name in names
        }
        return replace(access, dimensions=dimensions, scope={**scope, **inner}, values=values)


def _values_outside(
    values: dict[str, Value], state: SDFGState, node: nodes.NestedSDFG
) -> dict[str, Value]:
    """Values seen from outside of a nested SDFG; those of its own containers are not known."""
    found: dict[str, Value] = {}
    for name, value in values.items():
        if not isinstance(value, ElementValue):
            found[name] = value
            continue
        for edge in state.in_edges_by_connector(node, value.data):
            border = state.memlet_path(edge)[0]
            container = border.src
            if (
                isinstance(container, nodes.AccessNode)
                and state.entry_node(container) is None
                and _same_shape(state, container, node, value.data)
            ):
                found[name] = replace(value, data=container.data, edge=border)
    return found


def _maps_around(state: SDFGState, node: nodes.Node) -> list[nodes.MapEntry]:
    """Maps of a state around a node, innermost first."""
    entries: list[nodes.MapEntry] = []
    entry = state.entry_node(node)
    while entry is not None:
        assert isinstance(entry, nodes.MapEntry)
        entries.append(entry)
        entry = state.entry_node(entry)
    return entries


def _enters(node: nodes.Node, inside: set[nodes.Node], sdfg: SDFG) -> bool:
    return isinstance(node, nodes.AccessNode) and node not in inside


def _code(state: SDFGState, connector: str) -> Iterable[nodes.Node]:
    """All nodes but the access nodes of a container: what lies inside, seen from the container."""
    return (
        node
        for node in state.nodes()
        if not (isinstance(node, nodes.AccessNode) and node.data == connector)
    )


def _same_shape(
    state: SDFGState, container: nodes.AccessNode, node: nodes.NestedSDFG, connector: str
) -> bool:
    """Whether the inner container is the outer one (else the memlet is a window onto it)."""
    inner, outer = node.sdfg.arrays[connector], state.sdfg.arrays[container.data]
    shape = [
        symbolic.pystr_to_symbolic(str(extent)).subs(
            {
                s: symbolic.pystr_to_symbolic(str(node.symbol_mapping[s.name]))
                for s in symbolic.pystr_to_symbolic(str(extent)).free_symbols
                if s.name in node.symbol_mapping
            }
        )
        for extent in inner.shape
    ]
    return [str(extent) for extent in shape] == [str(extent) for extent in outer.shape]


def _dimensions(
    subset: subsets.Subset | None, shape: tuple[sympy.Expr, ...]
) -> tuple[Dimension | None, ...]:
    if not isinstance(subset, subsets.Range):
        return (None,) * len(shape)
    found: list[Dimension | None] = []
    for ends, tile in zip(subset.ranges, subset.tile_sizes, strict=True):
        values = stepping(*ends)
        step = values.step
        if step is not None and tile != 1:
            step = 1 if (sympy.sympify(tile) - step).is_nonnegative else None
        found.append(Dimension(values.lower, values.upper + sympy.sympify(tile) - 1, step))
    return tuple(found)


def _reduction(memlet: Memlet) -> str | None:
    return None if memlet.wcr is None else _named_reduction(str(memlet.wcr))


@functools.cache
def _named_reduction(function: str) -> str:
    found = detect_reduction_type(function)
    if found is not dtypes.ReductionType.Custom:
        return str(found.name)
    try:
        return user_reductions.canonical(function)
    except ValueError:
        return function


def _regions(block: ControlFlowBlock) -> Iterator[ControlFlowRegion]:
    """Control-flow regions around a block, innermost first, up to its SDFG."""
    region = block.parent_graph
    while region is not None and not isinstance(region, SDFG):
        yield region
        region = region.parent_graph


def _bound_in(sdfg: SDFG, loops: Iterable[LoopRegion]) -> dict[str, Range | None]:
    """Symbols that an SDFG assigns, with the ranges of the given loops (innermost first)."""
    scope: dict[str, Range | None] = dict.fromkeys(assigned_symbols(sdfg))
    for loop in reversed(list(loops)):
        if loop.loop_variable:
            scope.pop(loop.loop_variable, None)
            scope[loop.loop_variable] = _loop_range(loop)
    return scope


def bound_around_loop(loop: LoopRegion) -> dict[str, Range | None]:
    """The same of a loop, without its own variable."""
    return _bound_in(loop.sdfg, loops_around(loop))


def copies_in(state: SDFGState, scope: dict[str, Range | None]) -> Iterator[Access]:
    """What copies between containers of a state read and write, outside of maps."""
    for edge in edges_of(state):
        if not isinstance(edge.src, nodes.AccessNode) or not isinstance(edge.dst, nodes.AccessNode):
            continue
        if edge.data.is_empty():
            continue
        for node, subset, is_write in (
            (edge.src, edge.data.get_src_subset(edge, state), False),
            (edge.dst, edge.data.get_dst_subset(edge, state), True),
        ):
            found = _dimensions(subset, state.sdfg.arrays[node.data].shape)
            yield Access(node.data, edge, is_write, found, scope, reduction=_reduction(edge.data))


def control_reads_in(loop: LoopRegion) -> Iterator[Access]:
    """Reads of containers by the control flow inside of a loop."""
    for graph in loop.all_control_flow_regions(recursive=False):
        found = [m for e in graph.edges() for m in e.data.get_read_memlets(loop.sdfg.arrays, True)]
        around = [graph, *_regions(graph)] if not isinstance(graph, ConditionalBlock) else []
        around = around or [*_regions(graph)]
        if graph is not loop:
            found += _meta_reads(graph)
        scope = _bound_in(loop.sdfg, (r for r in around if isinstance(r, LoopRegion)))
        for memlet in found:
            shape = loop.sdfg.arrays[memlet.data].shape
            yield Access(memlet.data, _NO_EDGE, False, _dimensions(memlet.subset, shape), scope)


def control_reads(sdfg: SDFG, data: str) -> Iterator[Access]:
    """Reads of a container by interstate edges, and by conditions of loops and branches."""
    arrays, shape = sdfg.arrays, sdfg.arrays[data].shape
    reads: list[tuple[Memlet, list[AbstractControlFlowRegion], ControlFlowBlock]] = []
    for graph in sdfg.all_control_flow_regions(recursive=False):
        around: list[AbstractControlFlowRegion] = []
        if not isinstance(graph, SDFG):
            around = [graph, *_regions(graph)]
        found: list[tuple[Memlet, ControlFlowBlock]] = [
            *((m, e.src) for e in graph.edges() for m in e.data.get_read_memlets(arrays, True)),
            *((m, graph) for m in _meta_reads(graph)),
        ]
        reads += ((memlet, around, at) for memlet, at in found if memlet.data == data)
    for memlet, regions, at in reads:
        scope = _bound_in(sdfg, (region for region in regions if isinstance(region, LoopRegion)))
        dimensions = _dimensions(memlet.subset, shape)
        yield Access(data, _NO_EDGE, False, dimensions, scope, values_at(at))


def _meta_reads(graph: AbstractControlFlowRegion) -> list[Memlet]:
    if isinstance(graph, (LoopRegion, ConditionalBlock)):
        return list(graph.get_meta_read_memlets(graph.sdfg.arrays, True))
    return []


def _runs_always(block: ControlFlowBlock) -> bool:
    """Whether no branch of an unstructured control flow goes round the block."""
    graph = block.parent_graph
    if isinstance(graph, ConditionalBlock):
        return False
    return is_straight(graph)


def _loop_range(loop: LoopRegion) -> Range | None:
    start: sympy.Expr = loop_analysis.get_init_assignment(loop)
    end: sympy.Expr = loop_analysis.get_loop_end(loop)
    stride: sympy.Expr = loop_analysis.get_loop_stride(loop)
    if start is None or end is None or stride is None:
        return None
    stride = sympy.sympify(stride)
    if stride.is_positive or stride.is_negative:
        return stepping(start, end, stride)
    return None
