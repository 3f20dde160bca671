"""Puts every container into its home, and distributed memlets where a use wants another layout.

before -> after:  ``x -> map -> y``  ->
``x -> [distributed memlet] -> x_tile -> map -> y_tile -> [distributed memlet] -> y``
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dace import SDFG, InterstateEdge, Memlet, SDFGState, data, dtypes
from dace.sdfg import nodes
from dace.sdfg.state import ReturnBlock

from distspmd.analysis.accesses import bound_around, changes_in_loops
from distspmd.analysis.iteration_spaces import IterationSpace, Source
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.uses import Read, Update, Use, Write
from distspmd.lowering import CONTEXT
from distspmd.nodes.host_call import HostCall
from distspmd.nodes.lapack_together import LapackTogether
from distspmd.nodes.line_in_parts import LineInParts
from distspmd.nodes.row_exchange import ExchangedRows
from distspmd.nodes.scatter import Scatter
from distspmd.passes.allocate_tiles import allocate_tiles, scalar_to_array
from distspmd.passes.compilation import Compilation
from distspmd.passes.gathered_copies import GatheredCopies
from distspmd.passes.graph_queries import state_before
from distspmd.passes.insert_memlets import Inserter, reads_through
from distspmd.passes.movement import dtype_of
from distspmd.passes.rename_uses import rename_control_values, rename_edges, rename_nodes
from distspmd.passes.tiles import Symbols
from distspmd.passes.windows import Windows
from distspmd.placement.homes import Home, load, plan_fetch, store, stores, works_in_place
from distspmd.placement.propagation import Tiled
from distspmd.plans.redistribution import Redistribution


@dataclass(frozen=True)
class InsertMemlets:
    """Tiles the maps, puts containers into their homes, and inserts the distributed memlets."""

    name: str = "insert-memlets"

    def apply(self, compilation: Compilation) -> None:
        """Rewrite the SDFG in place, and collect its movements."""
        sdfg, symbols = compilation.sdfg, compilation.symbols
        for space in compilation.spaces:
            tiling = compilation.tiled[space.name].tiling
            if isinstance(space.node, nodes.MapEntry):
                symbols.tile_map(space.name, tiling, space.node)
            elif isinstance(space.node, HostCall):
                space.node.iterations = symbols.iterations(space.name, space.parameters, tiling)
            elif isinstance(space.node, Scatter):
                space.node.in_parts = _in_parts(compilation.tiled[space.name])
                space.node.fixed = list(_fixed_inputs(space))
        tilings = {name: tiled.tiling for name, tiled in compilation.tiled.items()}
        inserter = distribute(sdfg, compilation.homes, symbols, tilings, compilation.windows)
        compilation.movements = inserter.movements
        compilation.fetches = inserter.fetches
        compilation.tiles = inserter.tiles.layouts
        compilation.stores = {name: inserter.tiles.of(name) for name in compilation.homes}


def distribute(
    sdfg: SDFG,
    homes: Mapping[str, Home],
    symbols: Symbols,
    tilings: Mapping[str, Tiling],
    windows: Mapping[tuple[Use, Redistribution], Windows],
) -> Inserter:
    """Rewrite an SDFG in place, use by use; what has inserted the movements."""
    for name in homes:
        scalar_to_array(sdfg, name)
    containers = {name: sdfg.arrays[name] for name in homes}
    gathered = GatheredCopies.of(sdfg, homes, containers)
    sdfg.add_scalar(CONTEXT, dtypes.int64)
    tiles = allocate_tiles(sdfg, homes, symbols, tilings)
    inserter = Inserter(sdfg, homes, tiles, gathered, windows)
    uses = [use for home in homes.values() for use in home.uses]
    uses.sort(key=_depth)
    rename_nodes(sdfg, tiles)
    rename_control_values(sdfg, tiles, homes)
    _load(inserter, containers)
    for use in uses:
        _redirect(inserter, use, containers[use.data])
    for node, state in sdfg.all_nodes_recursive():
        if _talks(node) and isinstance(state, SDFGState):
            assert isinstance(node, nodes.LibraryNode)
            node.add_in_connector("_context", dtypes.int64)
            inserter.connect_context(state, node)
    gathered.keep_in_order()
    _store(inserter, containers)
    for name, home in homes.items():
        if not home.at_caller and containers[name].transient:
            sdfg.remove_data(name, validate=False)
    for graph in sdfg.all_sdfgs_recursive():
        graph.openmp_sections = False
    return inserter


def _talks(node: object) -> bool:
    """Whether ranks talk within a node."""
    if isinstance(node, Scatter):
        return bool(node.in_parts)
    return isinstance(node, ExchangedRows | LineInParts | LapackTogether)


def _in_parts(tiled: Tiled) -> bool:
    """Whether some rank that writes at places that data choose has not all of the indices."""
    (own,) = (use for use in tiled.uses if any(edge.dst_conn == "_in0" for edge in use.edges))
    lacks = own.layout.volumes < math.prod(own.layout.extents)
    return bool((lacks & ~tiled.tiling.idle).any())


def _fixed_inputs(space: IterationSpace) -> Iterator[str]:
    """Connectors of a node whose operand is the same whenever the node runs in a run."""
    state = space.state
    for edge in state.in_edges(space.node):
        name, subset = edge.data.data, edge.data.subset
        if name is None or set(map(str, subset.free_symbols)) & bound_around(state).keys():
            continue
        if not changes_in_loops(state, name):
            yield edge.dst_conn


def _redirect(inserter: Inserter, use: Use, container: data.Data) -> None:
    """Let a use work on the tile of the home, or on a copy of it in its own layout."""
    home, tiles, dtype = inserter.homes[use.data], inserter.tiles, dtype_of(container)
    if works_in_place(use, home.layout):
        if use.data in tiles.of_homes:
            edges = (*use.edges, *reads_through(use))
            rename_edges(use, tiles, tiles.of_homes[use.data], edges)
        elif isinstance(use.space.node, nodes.LibraryNode):
            rename_edges(use, tiles, use.data, use.edges)
        if moves := stores(use, home, dtype):
            inserter.store_from(use, tiles.of(use.data), moves)
        return
    match use:
        case Read(inspection=asked) if asked and use.is_asked_for(home.is_written):
            inserter.read_fetched(use, asked, container)
        case Read():
            move = plan_fetch(use, home, dtype)
            assert move is not None
            if home.is_written or home.is_gathered:
                inserter.read_copy(use, container, move)
            else:
                inserter.read_shared(use, container, move)
        case Write() | Update():
            before, after = plan_fetch(use, home, dtype), stores(use, home, dtype)
            inserter.write_copy(use, container, before, after)


def _load(inserter: Inserter, containers: Mapping[str, data.Data]) -> None:
    """Bring the caller's arrays to their homes at the start."""
    for name, home in inserter.homes.items():
        if move := load(home, dtype_of(containers[name])):
            begin = inserter.start()
            goal, origin = inserter.home_node(begin, name), begin.add_read(name)
            node = inserter.move(begin, origin, goal, name, move, _first_source(home.uses))
            if home.needs_neutral(None):
                begin.add_nedge(inserter.empty(begin, home), node, Memlet())


def _store(inserter: Inserter, containers: Mapping[str, data.Data]) -> None:
    """Bring what the program wrote from the homes to the caller's arrays at the end."""
    dtypes_of = {name: dtype_of(container) for name, container in containers.items()}
    moves = {name: store(home, dtypes_of[name]) for name, home in inserter.homes.items()}
    if not any(moves.values()):
        return
    ends: list[SDFGState] = []
    sinks = [block for block in inserter.sdfg.sink_nodes() if not isinstance(block, ReturnBlock)]
    if sinks:
        ends.append(inserter.sdfg.add_state("collect"))
        for sink in sinks:
            inserter.sdfg.add_edge(sink, ends[0], InterstateEdge())
    blocks = list(inserter.sdfg.all_control_flow_blocks())
    ends += [state_before(block) for block in blocks if isinstance(block, ReturnBlock)]
    for end in ends:
        for name, move in moves.items():
            if move is not None:
                origin, goal = end.add_read(inserter.tiles.of_homes[name]), end.add_write(name)
                first = _first_source(inserter.homes[name].uses)
                inserter.move(end, origin, goal, name, move, first)


def _first_source(uses: Sequence[Use]) -> Source | None:
    return next((use.space.source for use in uses if use.space.source), None)


def _depth(use: Use) -> int:
    """How many inspections have to come before a use."""
    return use.inspection.depth if isinstance(use, Read) and use.inspection else 0
