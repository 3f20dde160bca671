"""The accesses of library nodes: those of their pure expansion, in the windows that they have."""

from __future__ import annotations

from dataclasses import replace

import sympy
from dace import SDFG, SDFGState
from dace.sdfg import nodes

from distspmd.analysis.accesses import Access, Dimension, Edge, map_accesses
from distspmd.analysis.index_bounds import constant, stepping
from distspmd.analysis.iteration_spaces import IterationSpace, main_map, window_name
from distspmd.errors import UnsupportedProgram

Window = tuple[sympy.Expr, sympy.Expr, sympy.Expr]
"""First and last index, both included, and step: a dimension of a subset in DaCe."""


def library_accesses(space: IterationSpace) -> tuple[list[Access], set[str]]:
    """Accesses of the main map of the pure expansion, moved into the windows that the node has.

    Also the containers that the expansion initialises before that map.
    """
    assert space.expansion is not None
    proxy, state, node = space.expansion, space.state, space.node
    inner_state, entry = main_map(proxy)
    inner = inner_state.sdfg
    windows = {
        window_name(connector or default): edge
        for connector, default, edge in [
            *((e.dst_conn, "_in", e) for e in state.in_edges(node) if not e.data.is_empty()),
            *((e.src_conn, "_out", e) for e in state.out_edges(node) if not e.data.is_empty()),
        ]
    }
    edges = {
        name: windows[origin]
        for name in inner.arrays
        if (origin := outermost(inner, name)) in windows
    }
    found = []
    for access in map_accesses(inner_state, entry):
        if access.data not in edges:
            raise UnsupportedProgram(
                f"{space.label}: its expansion passes through the temporary {access.data!r}, "
                "so it is not one map over its operands. Expand it before you lower the SDFG."
            )
        found.append(_in_window(access, edges[access.data]))
    initialised = {
        edges[n.data].data.data
        for other in inner.states()
        for n in other.data_nodes()
        if n.data in edges and inner is not proxy and _initialises(other, n, entry)
    }
    return found, initialised


def outermost(sdfg: SDFG, name: str) -> str | None:
    """The container of the outermost SDFG that a container is inside; None for a transient."""
    while sdfg.parent is not None:
        node = sdfg.parent_nsdfg_node
        edges = [e for e in sdfg.parent.in_edges(node) if e.dst_conn == name]
        edges += [e for e in sdfg.parent.out_edges(node) if e.src_conn == name]
        if not edges:
            return None
        sdfg, name = sdfg.parent.sdfg, edges[0].data.data
    return name  # type: ignore[unreachable]  # DaCe's parent may be None


def _initialises(state: SDFGState, node: nodes.AccessNode, main: nodes.MapEntry) -> bool:
    """Whether something other than the main map writes the node."""
    return any(
        edge.src is not (state.exit_node(main) if main in state.nodes() else None)
        for edge in state.in_edges(node)
    )


def _in_window(access: Access, edge: Edge) -> Access:
    """Shift an access to a window of a container to the container."""
    windows = edge.data.subset.ranges
    sizes = [sympy.sympify(size) for size in edge.data.subset.size()]
    kept = list(range(len(windows)))
    if len(access.dimensions) != len(windows):
        kept = [d for d, size in enumerate(sizes) if size != 1]
    shifted: list[Dimension | None] = [_whole(window) for window in windows]
    if len(kept) == len(access.dimensions):
        for d, inner in zip(kept, access.dimensions, strict=True):
            shifted[d] = inner and _inside(inner, windows[d])
    return replace(access, data=edge.data.data, edge=edge, dimensions=tuple(shifted))


def _whole(window: Window) -> Dimension:
    values = stepping(*window)
    return Dimension(values.lower, values.upper, values.step)


def _inside(inner: Dimension, window: Window) -> Dimension:
    """Indices of a window, as indices of the container."""
    begin, _, step = map(sympy.sympify, window)
    stride = constant(step)
    if not stride:
        return _whole(window)
    first, last = (begin + stride * end for end in (inner.first, inner.last))
    if stride < 0:
        first, last = last, first
    return Dimension(first, last, inner.step and abs(stride) * inner.step)
