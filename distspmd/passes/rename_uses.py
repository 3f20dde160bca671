"""Lets nodes, edges between states, and the memlets of uses name tiles instead of containers.

before -> after:  ``map -> y[i]``  ->  ``map -> y_tile[i]``
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dace import SDFG
from dace.sdfg import nodes

from distspmd.analysis.accesses import Edge
from distspmd.analysis.uses import Use
from distspmd.passes.allocate_tiles import AllocatedTiles
from distspmd.passes.tiles import describe_inside, nested_ends


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
            for child, name in nested_ends(edge):
                if name in child.sdfg.arrays:
                    describe_inside(tiles.sdfg, container, child, name)
        if isinstance(use.space.node, nodes.LibraryNode):
            border.data.subset = window.within(border.data.subset, single)
        else:
            border.data.subset = window.subset()
        border.data.other_subset = None
