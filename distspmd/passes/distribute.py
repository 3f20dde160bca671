"""Puts every container into its home, and distributed memlets where a use wants another layout.

before -> after:  ``x -> map -> y``  ->
``x -> [distributed memlet] -> x_tile -> map -> y_tile -> [distributed memlet] -> y``
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import sympy
from dace import SDFG, InterstateEdge, Memlet, SDFGState, data, dtypes
from dace.properties import CodeBlock
from dace.sdfg import nodes
from dace.sdfg.state import ReturnBlock

from distspmd.analysis.accesses import Edge, bound_around, times_exactly
from distspmd.analysis.inspectors import Inspection
from distspmd.analysis.iteration_spaces import Source
from distspmd.analysis.uses import Read, Update, Use, Write
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.lowering import place
from distspmd.nodes.distributed_memlet import CONTEXT, DistributedMemlet
from distspmd.nodes.fetched_memlet import FetchedMemlet
from distspmd.passes.compilation import Compilation
from distspmd.passes.graph_queries import last, latest_before, node_of, state_before
from distspmd.passes.inspector_code import Pointer, inspection_code
from distspmd.passes.movement import Movement
from distspmd.passes.neutral_fill import add_identity
from distspmd.passes.tiles import Symbols, Window, add_tile, describe_inside, nested_ends
from distspmd.placement.homes import Home, fetch, load, store, stores, works_in_place
from distspmd.plans.redistribution import Redistribution


@dataclass(frozen=True)
class InsertMemlets:
    """Tiles the maps, puts containers into their homes, and inserts the distributed memlets."""

    name: str = "insert-memlets"

    def apply(self, compilation: Compilation) -> None:
        """Rewrite the SDFG in place, and collect its movements."""
        sdfg, symbols = compilation.sdfg, compilation.symbols
        for space in compilation.spaces:
            if isinstance(space.node, nodes.MapEntry):
                tiling = compilation.tiled[space.name].tiling
                symbols.tile_map(space.name, tiling, space.node)
        distributor = Distributor(sdfg, compilation.homes, symbols)
        distributor.run()
        compilation.movements = distributor.movements
        compilation.fetches = distributor.fetches


@dataclass
class Distributor:
    """Rewrites an SDFG use by use; collects the movements."""

    sdfg: SDFG
    homes: Mapping[str, Home]
    symbols: Symbols
    movements: list[Movement] = field(default_factory=list)
    fetches: list[Movement] = field(default_factory=list)
    """Movements of what data decide, which have numbers of their own."""
    tiles: dict[str, str] = field(default_factory=dict)
    """Tile of the home of each container that does not live at the root."""
    layouts: dict[str, Layout] = field(default_factory=dict)
    """Layout of each tile."""
    _shared: dict[tuple[str, object], str] = field(default_factory=dict)
    _fetched: dict[tuple[nodes.AccessNode, object], nodes.AccessNode] = field(default_factory=dict)
    _stored: dict[tuple[SDFGState, str], nodes.AccessNode] = field(default_factory=dict)
    """Where a state last stored a copy of a home, so that the next one is fetched after."""
    _rerouted: dict[int, tuple[Edge, nodes.AccessNode]] = field(default_factory=dict)
    """What is read instead through an edge that is no more, by the identity of the edge."""
    _begin: SDFGState | None = None

    def run(self) -> None:
        """Rewrite the SDFG in place."""
        for name in self.homes:
            _scalar_to_array(self.sdfg, name)
        containers = {name: self.sdfg.arrays[name] for name in self.homes}
        self.sdfg.add_scalar(CONTEXT, dtypes.int64)
        for name, home in self.homes.items():
            if home.at_caller:
                self._describe(name, home.layout)
            else:
                self.tiles[name] = self._add_tile(f"{name}_tile", containers[name], home.layout)
        uses = [use for home in self.homes.values() for use in home.uses]
        uses.sort(key=_depth)
        self._rename_nodes(self.sdfg.states())
        self._rename_control_values()
        self._load(containers)
        for use in uses:
            self._redirect(use, containers[use.data])
        self._store(containers)
        for name, home in self.homes.items():
            if not home.at_caller and containers[name].transient:
                self.sdfg.remove_data(name, validate=False)
        for graph in self.sdfg.all_sdfgs_recursive():
            graph.openmp_sections = False

    def _describe(self, name: str, layout: Layout) -> None:
        """Give a container that the caller holds in tiles the descriptor of a tile."""
        if all(box == intervals.whole(layout.extents) for box in layout.holders()):
            return
        tile = self._add_tile(name, self.sdfg.arrays[name], layout)
        described = self.sdfg.arrays.pop(tile)
        described.transient = False
        described.lifetime = dtypes.AllocationLifetime.Scope
        self.sdfg.arrays[name] = described
        self.layouts[name] = self.layouts.pop(tile)
        self.tiles[name] = name

    def _add_tile(self, name: str, like: data.Data, layout: Layout) -> str:
        tile = add_tile(self.sdfg, name, like, layout, self.symbols)
        self.layouts[tile] = layout
        return tile

    def _rename_nodes(self, states: Iterable[SDFGState]) -> None:
        for state in states:
            for node in state.data_nodes():
                if state.entry_node(node) is None:
                    node.data = self.tiles.get(node.data, node.data)

    def _rename_control_values(self) -> None:
        """Edges between states that name a value read it from its tile."""
        for edge in self.sdfg.all_interstate_edges(recursive=False):
            for symbol, name in edge.data.assignments.items():
                if name in self.homes:
                    edge.data.assignments[symbol] = f"{self.tiles[name]}[0]"

    # -- one use ------------------------------------------------------------------------------

    def _redirect(self, use: Use, container: data.Data) -> None:
        home = self.homes[use.data]
        state = use.space.state
        dtype = _dtype(container)
        if works_in_place(use, home.layout):
            if use.data in self.tiles:
                self._rename_edges(use, self.tiles[use.data], (*use.edges, *_reads_through(use)))
            elif isinstance(use.space.node, nodes.LibraryNode):
                self._rename_edges(use, use.data, use.edges)
            if moves := stores(use, home, dtype):
                self._store_from(use, state, self.tiles.get(use.data, use.data), moves)
            return
        match use:
            case Read(inspection=asked) if asked and use.is_asked_for(home.is_written):
                self._fetch(use, asked, container)
            case Read() if not home.is_written:
                copy = state.add_read(self._shared_tile(use, container))
                self._reroute(use, state, copy, use.edges)
            case Read():
                move = fetch(use, home, dtype)
                assert move is not None
                self._read_copy(use, state, container, move)
            case Write() | Update():
                before, after = fetch(use, home, dtype), stores(use, home, dtype)
                self._write_copy(use, state, container, before, after)

    def _shared_tile(self, use: Read, container: data.Data) -> str:
        """One copy in each layout of a container that nobody writes, loaded at the start."""
        key = (use.data, use.layout.boxes)
        if key not in self._shared:
            tile = self._add_tile(f"{use.data}_copy", container, use.layout)
            begin = self._start()
            origin = self._home_node(begin, use.data)
            move = Redistribution(self.homes[use.data].core, use.layout, _dtype(container))
            self._move(begin, origin, begin.add_write(tile), use.data, move, use.space.source)
            self._shared[key] = tile
        return self._shared[key]

    def _read_copy(
        self, use: Read, state: SDFGState, container: data.Data, move: Redistribution
    ) -> None:
        origin = _last_reader(use)
        key = (origin, use.layout.boxes)
        if key not in self._fetched:
            copy = state.add_access(self._add_tile(f"{use.data}_copy", container, use.layout))
            self._fetched[key] = copy
            self._move(state, origin, copy, use.data, move, use.space.source)
        self._reroute(use, state, self._fetched[key], use.edges)

    def _fetch(self, use: Read, asked: Inspection, container: data.Data) -> None:
        """Read from a copy of what the use touches, which is found out when the program runs.

        Once at the start, if neither the container nor what decides changes; what changes is
        fetched before the use, and asked for there too if what decides changes.
        """
        state, home = use.space.state, self.homes[use.data]
        tile = self._add_tile(f"{use.data}_copy", container, use.layout)
        fixed = not any(self.homes[name].is_written for name in asked.sources)
        entry = use.space.node
        assert isinstance(entry, nodes.MapEntry)
        names = asked.names | {str(symbol) for symbol in entry.map.range.free_symbols}
        fixed = fixed and not names & bound_around(state).keys()
        node = FetchedMemlet(f"fetch_{use.data}")
        node.index = len(self.fetches)
        move = Redistribution(home.core, use.layout, _dtype(container))
        if fixed and not home.is_written:
            begin, copy = self._start(), state.add_read(tile)
            origin = self._home_node(begin, use.data)
            made = self._add_movement(
                begin, node, origin, begin.add_write(tile), use.data, move, use.space.source
            )
        else:
            copy = state.add_access(tile)
            made = self._add_movement(
                state,
                node,
                _last_reader(use),
                copy,
                use.data,
                move,
                use.space.source,
            )
        self.fetches.append(replace(made, inspection=asked))
        if fixed and home.is_written:
            fetching, node = node, FetchedMemlet(f"ask_for_{use.data}")
            node.index, node.array = fetching.index, use.data
            node.source, node.target = fetching.source, fetching.target
            self._connect_context(self._start(), node)
        self._ask(self._start() if fixed else state, node, use, asked)
        self._reroute(use, state, copy, use.edges)

    def _ask(self, state: SDFGState, node: FetchedMemlet, use: Use, asked: Inspection) -> None:
        """Let a node find out what a use touches, from the tiles that the use reads."""
        pointers: dict[int, Pointer] = {}
        connectors: dict[str, str] = {}
        for read in asked.loads:
            assert read.edge is not None
            if id(read.edge) in pointers:
                continue
            _, found = self._rerouted.get(id(read.edge), (read.edge, read.edge.src))
            origin = found if state is use.space.state else node_of(state, found.data)
            window, container = self._window(origin.data), self.sdfg.arrays[origin.data]
            if origin.data not in connectors:
                connectors[origin.data] = f"_index{len(connectors)}"
                node.add_in_connector(connectors[origin.data])
                memlet = self._whole(origin.data)
                state.add_edge(origin, None, node, connectors[origin.data], memlet)
            pointers[id(read.edge)] = Pointer(
                connectors[origin.data], window, tuple(container.strides)
            )
        entry = use.space.node
        assert isinstance(entry, nodes.MapEntry)
        steps = dict(zip(entry.map.params, entry.map.range.ranges, strict=True))
        code = inspection_code(asked, steps, pointers)
        node.asks, node.inspection = True, CodeBlock(code, dtypes.Language.CPP)

    def _write_copy(
        self,
        use: Write | Update,
        state: SDFGState,
        container: data.Data,
        before: Redistribution | None,
        after: Sequence[Redistribution],
    ) -> None:
        tile = self._add_tile(f"{use.data}_part", container, use.tiles)
        first = use.edges[0].dst
        entry = use.space.node
        if before is not None:
            fetched = state.add_access(tile)
            origin = (
                latest_before(state, first.data, entry)
                or self._stored.get((state, first.data))
                or state.add_read(first.data)
            )
            self._move(state, origin, fetched, use.data, before, use.space.source)
            self._reroute(use, state, fetched, _reads_through(use))
            if not _reads_through(use):
                state.add_nedge(fetched, entry, Memlet())
        elif use.accumulates:
            state.add_nedge(self._neutral(state, tile, use.layout), entry, Memlet())
        self._rename_edges(use, tile, use.edges)
        self._store_from(use, state, tile, after)
        self._stored[state, first.data] = first

    def _store_from(
        self, use: Use, state: SDFGState, tile: str, moves: Sequence[Redistribution]
    ) -> None:
        """Let a use write a tile, from which moves bring its home up to date, one by one.

        The nodes that the use wrote come after the last move, with all that reads them.
        """
        written = list(dict.fromkeys(edge.dst for edge in use.edges))
        origin = state.add_access(tile)
        for edge in use.edges:
            state.add_edge(edge.src, edge.src_conn, origin, None, edge.data)
            state.remove_edge(edge)
        home = self.homes[use.data]
        done = self._empty(state, home, origin) if home.needs_neutral(use) else None
        for move in moves:
            goal = written[0] if move is moves[-1] else state.add_access(written[0].data)
            node = self._move(state, origin, goal, use.data, move, use.space.source)
            if done is not None:
                state.add_nedge(done, node, Memlet())
            done = goal
        for other in written[1:]:
            state.add_nedge(written[0], other, Memlet())

    def _neutral(
        self,
        state: SDFGState,
        tile: str,
        layout: Layout,
        after: nodes.AccessNode | None = None,
    ) -> nodes.AccessNode:
        """Fill a tile with the neutral element of the reduction of its layout."""
        assert layout.partial is not None
        window = self.symbols.window(tile, layout)
        return add_identity(state, tile, layout.partial.reduction, window, after)

    def _empty(
        self, state: SDFGState, home: Home, after: nodes.AccessNode | None = None
    ) -> nodes.AccessNode:
        """Take all operands out of a partial home, for a value that comes into it next."""
        return self._neutral(state, self.tiles[home.data], home.layout, after)

    # -- edges --------------------------------------------------------------------------------

    def _reroute(
        self, use: Use, state: SDFGState, copy: nodes.AccessNode, edges: Sequence[Edge]
    ) -> None:
        """Let a read come from a copy instead of the home."""
        self._rename_edges(use, copy.data, edges)
        for edge in edges:
            self._rerouted[id(edge)] = edge, copy
            state.add_edge(copy, None, edge.dst, edge.dst_conn, edge.data)
            state.remove_edge(edge)
            if state.degree(edge.src) == 0:
                state.remove_node(edge.src)

    def _rename_edges(self, use: Use, tile: str, edges: Sequence[Edge]) -> None:
        """Let the memlets of a use name another container, and nested SDFGs describe it."""
        state = use.space.state
        window = self.symbols.window(tile, use.tiles)
        container = self.sdfg.arrays[tile]
        for border in edges:
            sizes = border.data.subset.size()
            single = frozenset(d for d, n in enumerate(sizes) if (n == 1) == True)  # noqa: E712
            for leaf in state.memlet_tree(border).root().traverse_children(include_self=True):
                memlet, edge = leaf.edge.data, leaf.edge
                if memlet.data == use.data:
                    memlet.data = tile
                for child, name in nested_ends(edge):
                    if name in child.sdfg.arrays:
                        describe_inside(self.sdfg, container, child, name)
            if isinstance(use.space.node, nodes.LibraryNode):
                border.data.subset = window.within(border.data.subset, single)
            else:
                border.data.subset = window.subset()
            border.data.other_subset = None

    # -- distributed memlets ------------------------------------------------------------------

    def _move(
        self,
        state: SDFGState,
        origin: nodes.AccessNode,
        goal: nodes.AccessNode,
        name: str,
        move: Redistribution,
        source: Source | None,
    ) -> DistributedMemlet:
        node = DistributedMemlet(f"distribute_{name}")
        node.index = len(self.movements)
        self.movements.append(self._add_movement(state, node, origin, goal, name, move, source))
        return node

    def _add_movement(
        self,
        state: SDFGState,
        node: DistributedMemlet | FetchedMemlet,
        origin: nodes.AccessNode,
        goal: nodes.AccessNode,
        name: str,
        move: Redistribution,
        source: Source | None,
    ) -> Movement:
        """Put a node between the storages of a movement."""
        ends = [(move.source, origin), (move.target, goal)]
        node.array = name
        node.source, node.target = (
            place(layout, end.data not in self.layouts) for layout, end in ends
        )
        self._connect_context(state, node)
        node.add_in_connector("_in")
        node.add_out_connector("_out")
        state.add_edge(origin, None, node, "_in", self._whole(origin.data))
        leaving = self._whole(goal.data)
        leaving.dynamic = True
        state.add_edge(node, "_out", goal, None, leaving)
        return Movement(
            name,
            move,
            source,
            node,
            source_tiles=self.layouts.get(origin.data),
            target_tiles=self.layouts.get(goal.data),
            times=times_exactly(state),
        )

    def _connect_context(self, state: SDFGState, node: DistributedMemlet | FetchedMemlet) -> None:
        state.add_node(node)
        context = state.add_read(CONTEXT)
        state.add_edge(context, None, node, "_context", Memlet(data=CONTEXT, subset="0"))

    def _whole(self, name: str) -> Memlet:
        """All of a container that the rank holds."""
        return Memlet(data=name, subset=self._window(name).subset())

    def _window(self, name: str) -> Window:
        """The part of a container that the rank holds."""
        if name in self.layouts:
            return self.symbols.window(name, self.layouts[name])
        shape = self.sdfg.arrays[name].shape
        return Window((sympy.Integer(0),) * len(shape), tuple(map(sympy.sympify, shape)))

    # -- the ends of the program ----------------------------------------------------------------

    def _start(self) -> SDFGState:
        if self._begin is None:
            first = self.sdfg.start_block
            self._begin = self.sdfg.add_state_before(first, "distribute", is_start_block=True)
        return self._begin

    def _load(self, containers: Mapping[str, data.Data]) -> None:
        """Bring the caller's arrays to their homes at the start."""
        for name, home in self.homes.items():
            if move := load(home, _dtype(containers[name])):
                begin = self._start()
                goal, origin = self._home_node(begin, name), begin.add_read(name)
                node = self._move(begin, origin, goal, name, move, _first_source(home.uses))
                if home.needs_neutral(None):
                    begin.add_nedge(self._empty(begin, home), node, Memlet())

    def _store(self, containers: Mapping[str, data.Data]) -> None:
        """Bring what the program wrote from the homes to the caller's arrays at the end."""
        dtypes_of = {name: _dtype(container) for name, container in containers.items()}
        moves = {name: store(home, dtypes_of[name]) for name, home in self.homes.items()}
        if not any(moves.values()):
            return
        ends: list[SDFGState] = []
        sinks = [block for block in self.sdfg.sink_nodes() if not isinstance(block, ReturnBlock)]
        if sinks:
            ends.append(self.sdfg.add_state("collect"))
            for sink in sinks:
                self.sdfg.add_edge(sink, ends[0], InterstateEdge())
        blocks = list(self.sdfg.all_control_flow_blocks())
        ends += [state_before(block) for block in blocks if isinstance(block, ReturnBlock)]
        for end in ends:
            for name, move in moves.items():
                if move is not None:
                    origin, goal = end.add_read(self.tiles[name]), end.add_write(name)
                    first = _first_source(self.homes[name].uses)
                    self._move(end, origin, goal, name, move, first)

    def _home_node(self, begin: SDFGState, name: str) -> nodes.AccessNode:
        """The one node of a home in the first state: what loads it comes before what copies it."""
        return node_of(begin, self.tiles.get(name, name))


def _scalar_to_array(sdfg: SDFG, name: str) -> None:
    """Make a scalar an array of one element: all arguments are pointers, complex ones too."""
    scalar = sdfg.arrays[name]
    if isinstance(scalar, data.Scalar):
        sdfg.arrays[name] = data.Array(scalar.dtype, (1,), transient=scalar.transient)


def _dtype(container: data.Data) -> np.dtype:
    dtype: np.dtype = np.dtype(container.dtype.as_numpy_dtype())
    return dtype


def _first_source(uses: Sequence[Use]) -> Source | None:
    return next((use.space.source for use in uses if use.space.source), None)


def _depth(use: Use) -> int:
    """How many inspections have to come before a use."""
    return use.inspection.depth if isinstance(use, Read) and use.inspection else 0


def _reads_through(use: Use) -> tuple[Edge, ...]:
    """Edges through which a body reads what it also writes."""
    return use.reads_through if isinstance(use, Update) else ()


def _last_reader(use: Read) -> nodes.AccessNode:
    """The last of the nodes that a use reads from."""
    return last(use.space.state, {edge.src for edge in use.edges})
