"""How threads share maps: not those of few iterations, and evenly where a dimension is short.

What an iteration has for itself stands on the stack of its thread, if it is small: DaCe would
allocate it anew in each iteration of a map that one thread runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

import sympy
from dace import SDFG, SDFGState, data, dtypes
from dace.sdfg import nodes
from dace.sdfg.state import LoopRegion
from dace.subsets import Range

from distspmd.plans.heuristics import HEURISTICS

_SMALL = 4096
"""Bytes that a container has at most which stands on the stack: many may stand there."""


def share_maps(sdfg: SDFG) -> None:
    """Let maps of known and few iterations run on one thread, and share others evenly; in place."""
    for node, state in sdfg.all_nodes_recursive():
        if not isinstance(node, nodes.MapEntry) or not isinstance(state, SDFGState):
            continue
        if node.map.schedule != dtypes.ScheduleType.Default:
            continue
        count = sympy.sympify(node.map.range.num_elements())
        if count.is_Integer and count < HEURISTICS.thread_iterations:
            node.map.schedule = dtypes.ScheduleType.Sequential
        elif node.map.collapse == 1:
            node.map.collapse = _shared(node.map)


def keep_on_stack(sdfg: SDFG) -> None:
    """Let small containers that belong to an iteration of a map stand on the stack, in place."""
    for container in _of_iterations(sdfg):
        if not container.transient or container.storage != dtypes.StorageType.Default:
            continue
        nbytes = sympy.sympify(container.total_size) * container.dtype.bytes
        if nbytes.is_Integer and nbytes <= _SMALL:
            container.storage = dtypes.StorageType.Register


def _of_iterations(sdfg: SDFG) -> Iterator[data.Array]:
    """Arrays inside of maps, and of nested programs, all of which stand in maps."""
    for inner in sdfg.all_sdfgs_recursive():
        if inner is not sdfg:
            yield from (c for c in inner.arrays.values() if type(c) is data.Array)
            continue
        for state in inner.states():
            inside = state.scope_dict()
            for node in state.data_nodes():
                container = inner.arrays[node.data]
                if inside[node] is not None and type(container) is data.Array:
                    yield container


def _shared(of: nodes.Map) -> int:
    """How many outer dimensions threads share; the last one is left to the lanes of vectors."""
    if set(of.params) & {str(symbol) for symbol in of.range.free_symbols}:
        return 1
    shared, size = 1, sympy.sympify(of.range.size()[0])
    while size.is_Integer and size < HEURISTICS.shared_iterations and shared < len(of.params) - 1:
        size *= of.range.size()[shared]
        shared += 1
    return shared


def keep_apart(sdfg: SDFG) -> None:
    """Let threads write without atomic operations where each has elements of its own, in place.

    So it is where an index of the element is a parameter that the threads share, and nothing that
    iterations of one thread set: ``y[i] += a[i, j]`` in a map over ``i``, whatever is inside.
    """
    known = {str(s) for s in sdfg.free_symbols}  # DaCe looks at the whole program for them
    for state in sdfg.states():
        for entry in state.nodes():
            if not isinstance(entry, nodes.MapEntry) or state.entry_node(entry) is not None:
                continue
            if entry.map.schedule != dtypes.ScheduleType.Sequential:
                _keep_apart(state, entry, known)


def _keep_apart(state: SDFGState, entry: nodes.MapEntry, known: Set[str]) -> None:
    inside = state.scope_subgraph(entry, include_entry=False, include_exit=False)
    shared = entry.map.params[: max(1, entry.map.collapse)]
    own = known - _set_inside(inside) - set(entry.map.params)
    for node in inside.nodes():
        if not isinstance(node, nodes.CodeNode):
            continue
        for edge in state.out_edges(node):
            if edge.data.wcr is not None and _is_own(edge.data.subset, shared, own):
                edge.data.wcr_nonatomic = True
        if isinstance(node, nodes.NestedSDFG):
            _keep_apart_in(state, node, shared, own)


def _keep_apart_in(
    state: SDFGState, nested: nodes.NestedSDFG, shared: Sequence[str], own: Set[str]
) -> None:
    """The same in a nested program that sees whole containers, under the names of symbols."""
    known = {str(name): str(value) for name, value in nested.symbol_mapping.items()}
    if any(known.get(name, name) != name for name in shared):
        return
    alike = own & {name for name, value in known.items() if name == value}
    whole = {e.src_conn for e in state.out_edges(nested) if _begins_alike(state, nested, e)}
    for inner in nested.sdfg.states():
        for edge in inner.edges():
            if edge.data.wcr is None or not isinstance(edge.src, nodes.CodeNode):
                continue
            if edge.data.data in whole and _is_own(edge.data.subset, shared, alike):
                edge.data.wcr_nonatomic = True
        for node in inner.nodes():
            if isinstance(node, nodes.NestedSDFG):
                _keep_apart_in(inner, node, shared, alike)


def _begins_alike(state: SDFGState, nested: nodes.NestedSDFG, edge: Any) -> bool:
    """Whether an element of a container has the same index in a nested program."""
    outer, inner = state.sdfg.arrays[edge.data.data], nested.sdfg.arrays[edge.src_conn]
    first = edge.data.subset.min_element()
    is_first = all(n == 0 for n in first) or first == Range.from_array(outer).min_element()
    return is_first and isinstance(inner, data.Array) and list(inner.offset) == list(outer.offset)


def _is_own(subset: Any, shared: Sequence[str], known: Set[str]) -> bool:
    """Whether each of some parameters is, up to what is known, an index of one element."""
    if not isinstance(subset, Range) or any(n != 1 for n in subset.size()):
        return False
    left = set(shared)
    for index in map(sympy.sympify, subset.min_element()):
        names = {str(s) for s in index.free_symbols}
        for name in left & names:
            (symbol,) = (s for s in index.free_symbols if str(s) == name)
            rest = sympy.expand(index - symbol)
            if {str(s) for s in rest.free_symbols} <= known:
                left.discard(name)
                break
    return not left


def _set_inside(scope: Any) -> set[str]:
    """Names of symbols that the iterations of a map set."""
    nested = [n.sdfg for n in scope.nodes() if isinstance(n, nodes.NestedSDFG)]
    every = [sdfg for each in nested for sdfg in each.all_sdfgs_recursive()]
    regions = [region for sdfg in every for region in sdfg.all_control_flow_regions()]
    within = [n for sdfg in every for state in sdfg.states() for n in state.nodes()]
    found = {
        p for n in (*scope.nodes(), *within) if isinstance(n, nodes.MapEntry) for p in n.map.params
    }
    found |= {r.loop_variable for r in regions if isinstance(r, LoopRegion)}
    return found | {name for r in regions for e in r.edges() for name in e.data.assignments}
