"""Lets nodes, edges between states, and the memlets of uses name tiles instead of containers.

before -> after:  ``map -> y[i]``  ->  ``map -> y_tile[i]``
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sympy
from dace import SDFG
from dace.sdfg import nodes

from distspmd.analysis.accesses import Edge
from distspmd.analysis.library_nodes import library_accesses
from distspmd.analysis.uses import Use
from distspmd.errors import UnsupportedProgram
from distspmd.passes.allocate_tiles import AllocatedTiles
from distspmd.passes.tiles import End, common, describe_inside, nested_ends


def rename_nodes(sdfg: SDFG, tiles: AllocatedTiles) -> None:
    """Let the access nodes of all states stand for the tiles of the homes."""
    for state in sdfg.states():
        for node in state.data_nodes():
            if state.entry_node(node) is None:
                node.data = tiles.of(node.data)


def rename_control_values(sdfg: SDFG, tiles: AllocatedTiles, containers: Collection[str]) -> None:
    """Let edges between states that name a value read it from its tile."""
    for edge in sdfg.all_interstate_edges(recursive=False):
        for symbol, name in edge.data.assignments.items():
            if name in containers:
                edge.data.assignments[symbol] = f"{tiles.of_homes[name]}[0]"


def _moving_parts(use: Use, tiles: AllocatedTiles, border: Edge) -> dict[int, tuple[End, End]]:
    """Of a window that loops move, the first and the last index of what each rank has of it.

    The box of a rank is the hull over all iterations, of which the window's part is no longer what
    a rank runs; that is the part of the parameter which runs over the dimension.
    """
    found: dict[int, tuple[End, End]] = {}
    ranges = border.data.subset.ranges
    moving = [d for d, (begin, _, _) in enumerate(ranges) if sympy.sympify(begin).free_symbols]
    tiling = tiles.tilings.get(use.space.name)
    if not moving or tiling is None:
        return found
    accesses, _ = library_accesses(use.space)
    for d in moving:
        begin, end, _ = map(sympy.sympify, ranges[d])
        for access in accesses:
            dimension = access.dimensions[d] if access.edge is border else None
            if dimension is None:
                continue
            inner = sympy.expand(sympy.sympify(dimension.first) - begin)
            own = [s.name for s in inner.free_symbols if s.name in use.space.parameters]
            if not own:
                continue
            split = [p for p in own if tiling.parts[use.space.parameters.index(p)] > 1]
            if split and (len(own) > 1 or inner != _symbol(inner, own[0])):
                raise UnsupportedProgram(
                    f"{use.space.source}: the space {use.space.name!r} splits "
                    f"{', '.join(split)}, over which it reads {inner} in a window of {use.data!r} "
                    f"that a loop moves, from {begin}. Leave {', '.join(split)} whole."
                )
            if split:
                place = use.space.parameters.index(own[0])
                lower, upper = tiles.symbols.part(use.space.name, own[0], place, tiling)
                first, last = common((sympy.Integer(0), end - begin), lower, upper)
                found[d] = begin + first, begin + last
    return found


def _symbol(expression: sympy.Expr, name: str) -> sympy.Expr:
    return next(s for s in expression.free_symbols if s.name == name)


def _is_between_maps(edge: Edge) -> bool:
    """Whether an edge passes a container on from a map to one in it, or back."""
    borders = (nodes.MapEntry, nodes.MapExit)
    passes = str(edge.dst_conn).startswith("IN_")  # others are ends of the inner map's range
    return passes and isinstance(edge.src, borders) and isinstance(edge.dst, borders)


def rename_edges(use: Use, tiles: AllocatedTiles, tile: str, edges: Sequence[Edge]) -> None:
    """Let the memlets of a use name another container, and nested SDFGs describe it."""
    state = use.space.state
    window = tiles.symbols.window(tile, use.tiles)
    container = tiles.sdfg.arrays[tile]
    for border in edges:
        sizes = border.data.subset.size()
        single = frozenset(d for d, n in enumerate(sizes) if (n == 1) == True)  # noqa: E712
        for leaf in state.memlet_tree(border).root().traverse_children(include_self=True):
            memlet, edge = leaf.edge.data, leaf.edge
            if memlet.data == use.data:
                memlet.data = tile
                if _is_between_maps(edge):
                    memlet.subset = window.subset()
            for child, name in nested_ends(edge):
                if name in child.sdfg.arrays:
                    describe_inside(tiles.sdfg, container, child, name)
                    memlet.subset = window.subset()  # DaCe refuses an index below the first
        if isinstance(use.space.node, nodes.LibraryNode):
            parts = _moving_parts(use, tiles, border)
            border.data.subset = window.within(border.data.subset, single, parts)
        else:
            border.data.subset = window.subset()
        border.data.other_subset = None
