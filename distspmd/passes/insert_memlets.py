"""Inserts distributed memlets: from homes to copies in the layouts of uses, and back.

before -> after:  ``x_tile -> map``  ->  ``x_tile -> [distributed memlet] -> x_copy -> map``
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import sympy
from dace import SDFG, Memlet, SDFGState, data, dtypes
from dace.properties import CodeBlock
from dace.sdfg import nodes

from distspmd.analysis.accesses import Edge, bound_around
from distspmd.analysis.foresight import Foreseen, foresee, received_in_a_run
from distspmd.analysis.inspectors import Inspection
from distspmd.analysis.iteration_spaces import Source, main_map, parameters_of
from distspmd.analysis.loop_runs import times_exactly
from distspmd.analysis.uses import Read, Update, Use, Write
from distspmd.layouts.layout import Layout
from distspmd.lowering import CONTEXT, layout_text
from distspmd.nodes.distributed_memlet import DistributedMemlet
from distspmd.nodes.fetched_memlet import FetchedMemlet
from distspmd.passes.allocate_tiles import AllocatedTiles
from distspmd.passes.gathered_copies import GatheredCopies
from distspmd.passes.graph_queries import last, latest_before, node_of
from distspmd.passes.inspector_code import Pointer, Steps, foreseen_code, inspection_code
from distspmd.passes.movement import Movement, dtype_of
from distspmd.passes.neutral_fill import add_identity
from distspmd.passes.rename_uses import rename_edges
from distspmd.passes.tiles import common
from distspmd.passes.windows import Windows
from distspmd.placement.homes import Home
from distspmd.plans.redistribution import Redistribution


@dataclass
class Inserter:
    """Inserts nodes between tiles, one use after another; collects the movements."""

    sdfg: SDFG
    homes: Mapping[str, Home]
    tiles: AllocatedTiles
    gathered: GatheredCopies
    windows: Mapping[tuple[Use, Redistribution], Windows]
    movements: list[Movement] = field(default_factory=list)
    fetches: list[Movement] = field(default_factory=list)
    """Movements of what data decide, which have numbers of their own."""
    _shared: dict[tuple[str, object], str] = field(default_factory=dict)
    _fetched: dict[tuple[nodes.AccessNode, object], nodes.AccessNode] = field(default_factory=dict)
    _stored: dict[tuple[SDFGState, str], nodes.AccessNode] = field(default_factory=dict)
    """Where a state last stored a copy of a home, so that the next one is fetched after."""
    _rerouted: dict[int, tuple[Edge, nodes.AccessNode]] = field(default_factory=dict)
    """What is read instead through an edge that is no more, by the identity of the edge."""
    _begin: SDFGState | None = None

    def start(self) -> SDFGState:
        """The state before the program, in which homes are filled."""
        if self._begin is None:
            first = self.sdfg.start_block
            self._begin = self.sdfg.add_state_before(first, "distribute", is_start_block=True)
        return self._begin

    def home_node(self, begin: SDFGState, name: str) -> nodes.AccessNode:
        """The one node of a home in the first state: what loads it comes before what copies it."""
        return node_of(begin, self.tiles.of(name))

    # -- reads ----------------------------------------------------------------------------------

    def read_shared(self, use: Read, container: data.Data, move: Redistribution) -> None:
        """Read from the one copy in each layout of what nobody writes, loaded at the start."""
        key = (use.data, use.layout.boxes)
        if key not in self._shared:
            tile = self.tiles.add(f"{use.data}_copy", container, move.target)
            begin = self.start()
            origin = self.home_node(begin, use.data)
            self.move(begin, origin, begin.add_write(tile), use.data, move, use.space.source)
            self._shared[key] = tile
        state = use.space.state
        self._reroute(use, state, state.add_read(self._shared[key]), use.edges)

    def read_copy(self, use: Read, container: data.Data, move: Redistribution) -> None:
        """Read from a copy that is made after the last node that the use reads from."""
        state = use.space.state
        origin, run = _last_reader(use), self.gathered.of_reads.get(use)
        key = (origin, run or use.layout.boxes)
        if key not in self._fetched:
            copy = state.add_access(self._copy_of(use, container))
            self._fetched[key] = copy
            node = self.move(state, origin, copy, use.data, move, use.space.source)
            if run is not None:
                run.gather = node
        self._reroute(use, state, self._fetched[key], use.edges)

    def _copy_of(self, use: Read, container: data.Data) -> str:
        """The container of a copy: a new one, or the memory that gathered ones share."""
        run = self.gathered.of_reads.get(use)
        if run is None:
            return self.tiles.add(f"{use.data}_copy", container, use.layout)
        key, names = (run.form, run.memory), self.gathered.names
        if key not in names:
            names[key] = self.tiles.add(f"{use.data}_copy", container, use.layout)
        return names[key]

    def read_fetched(self, use: Read, asked: Inspection, container: data.Data) -> None:
        """Read from a copy of what the use touches, which is found out when the program runs.

        Once at the start, if neither the container nor what decides changes; what changes is
        fetched before the use, and asked for there too if what decides changes.
        """
        state, home = use.space.state, self.homes[use.data]
        tile = self.tiles.add(f"{use.data}_copy", container, use.layout)
        fixed = not any(self.homes[name].is_written for name in asked.sources)
        steps = self._steps(use)
        ends = (sympy.sympify(end) for extent in steps.values() for end in extent)
        names = asked.names | {symbol.name for end in ends for symbol in end.free_symbols}
        fixed = fixed and not names & bound_around(state).keys()
        node = FetchedMemlet(f"fetch_{use.data}")
        node.index = len(self.fetches)
        move = Redistribution(home.core, use.layout, dtype_of(container))
        if fixed and not home.is_written:
            begin, copy = self.start(), state.add_read(tile)
            origin = self.home_node(begin, use.data)
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
        foreseen = foresee(asked, steps, self.tiles.symbols.values.keys())
        self.fetches.append(self._with_foresight(made, asked, foreseen, state))
        if fixed and home.is_written:
            fetching, node = node, FetchedMemlet(f"ask_for_{use.data}")
            node.index, node.array = fetching.index, use.data
            node.source, node.target = fetching.source, fetching.target
            self.start().add_node(node)
            self.connect_context(self.start(), node)
        if foreseen is not None:
            node.asks, node.foresees = True, True
            node.inspection = CodeBlock(foreseen_code(foreseen), dtypes.Language.CPP)
        else:
            self._ask(self.start() if fixed else state, node, use, asked)
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
            window, container = self.tiles.window(origin.data), self.sdfg.arrays[origin.data]
            if origin.data not in connectors:
                connectors[origin.data] = f"_index{len(connectors)}"
                node.add_in_connector(connectors[origin.data])
                memlet = self.tiles.whole(origin.data)
                state.add_edge(origin, None, node, connectors[origin.data], memlet)
            pointers[id(read.edge)] = Pointer(
                connectors[origin.data], window, tuple(container.strides)
            )
        code = inspection_code(asked, self._steps(use), pointers)
        node.asks, node.inspection = True, CodeBlock(code, dtypes.Language.CPP)

    def _steps(self, use: Use) -> Steps:
        """What parameters run over on a rank: the first and the last value, and the step."""
        space = use.space
        if isinstance(space.node, nodes.MapEntry):
            own = space.node.map
            return dict(zip(own.params, own.range.ranges, strict=True))
        assert space.expansion is not None
        tiling, found = self.tiles.tilings[space.name], {}
        names, ranges = parameters_of(main_map(space.expansion)[1])
        for d, (name, extent) in enumerate(zip(names, ranges, strict=True)):
            ends = self.tiles.symbols.part(space.name, name, d, tiling)
            found[name] = (*common((extent.begin, extent.end - 1), *ends), extent.step)
        return found

    def _with_foresight(
        self, made: Movement, asked: Inspection, foreseen: Foreseen | None, state: SDFGState
    ) -> Movement:
        """A movement of what an inspection finds, with what is known of it before the run."""
        made = replace(made, inspection=asked, foreseen=foreseen)
        symbols = self.tiles.symbols.values
        known = foreseen and received_in_a_run(
            foreseen, state, symbols, asked.dimensions, made.redistribution
        )
        return replace(made, times=known[0], received=known[1]) if known else made

    def _reroute(
        self, use: Use, state: SDFGState, copy: nodes.AccessNode, edges: Sequence[Edge]
    ) -> None:
        """Let a read come from a copy instead of the home."""
        rename_edges(use, self.tiles, copy.data, edges)
        for edge in edges:
            self._rerouted[id(edge)] = edge, copy
            state.add_edge(copy, None, edge.dst, edge.dst_conn, edge.data)
            state.remove_edge(edge)
            if state.degree(edge.src) == 0:
                state.remove_node(edge.src)

    # -- writes ---------------------------------------------------------------------------------

    def write_copy(
        self,
        use: Write | Update,
        container: data.Data,
        before: Redistribution | None,
        after: Sequence[Redistribution],
    ) -> None:
        """Write a tile in the layout of the use, and bring the home up to date."""
        state = use.space.state
        tile = self.tiles.add(f"{use.data}_part", container, use.tiles)
        first = use.edges[0].dst
        entry = use.space.node
        if before is not None:
            fetched = state.add_access(tile)
            origin = (
                latest_before(state, first.data, entry)
                or self._stored.get((state, first.data))
                or state.add_read(first.data)
            )
            self.move(state, origin, fetched, use.data, before, use.space.source)
            self._reroute(use, state, fetched, reads_through(use))
            if not reads_through(use):
                state.add_nedge(fetched, entry, Memlet())
        elif use.accumulates:
            state.add_nedge(self._neutral(state, tile, use.layout), entry, Memlet())
        rename_edges(use, self.tiles, tile, use.edges)
        self.store_from(use, tile, after)
        self._stored[state, first.data] = first

    def store_from(self, use: Use, tile: str, moves: Sequence[Redistribution]) -> None:
        """Let a use write a tile, from which moves bring its home up to date, one by one.

        The nodes that the use wrote come after the last move, with all that reads them.
        """
        state = use.space.state
        written = list(dict.fromkeys(edge.dst for edge in use.edges))
        origin = state.add_access(tile)
        for edge in use.edges:
            state.add_edge(edge.src, edge.src_conn, origin, None, edge.data)
            state.remove_edge(edge)
        home = self.homes[use.data]
        done = self.empty(state, home, origin) if home.needs_neutral(use) else None
        for move in moves:
            goal = written[0] if move is moves[-1] else state.add_access(written[0].data)
            windows = self.windows.get((use, move))
            node = self.move(state, origin, goal, use.data, move, use.space.source, windows)
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
        window = self.tiles.symbols.window(tile, layout)
        return add_identity(state, tile, layout.partial.reduction, window, after)

    def empty(
        self, state: SDFGState, home: Home, after: nodes.AccessNode | None = None
    ) -> nodes.AccessNode:
        """Take all operands out of a partial home, for a value that comes into it next."""
        return self._neutral(state, self.tiles.of_homes[home.data], home.layout, after)

    # -- nodes ----------------------------------------------------------------------------------

    def move(
        self,
        state: SDFGState,
        origin: nodes.AccessNode,
        goal: nodes.AccessNode,
        name: str,
        move: Redistribution,
        source: Source | None,
        windows: Windows | None = None,
    ) -> DistributedMemlet:
        """Insert a distributed memlet between two nodes."""
        node = DistributedMemlet(f"distribute_{name}")
        node.index = len(self.movements)
        made = self._add_movement(state, node, origin, goal, name, move, source)
        if windows is None or None in (made.source_tiles, made.target_tiles):
            self.movements.append(made)  # the caller's array is as long as it is
            return node
        node.window, node.plans = windows.number, len(windows.moves)
        self.movements += [
            replace(made, redistribution=part, times=times)
            for part, times in zip(windows.moves, windows.times, strict=True)
        ]
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
            layout_text(layout, end.data not in self.tiles.layouts) for layout, end in ends
        )
        state.add_node(node)
        self.connect_context(state, node)
        node.add_in_connector("_in")
        node.add_out_connector("_out")
        state.add_edge(origin, None, node, "_in", self.tiles.whole(origin.data))
        leaving = self.tiles.whole(goal.data)
        leaving.dynamic = True
        state.add_edge(node, "_out", goal, None, leaving)
        return Movement(
            name,
            move,
            source,
            node,
            source_tiles=self.tiles.layouts.get(origin.data),
            target_tiles=self.tiles.layouts.get(goal.data),
            times=times_exactly(state),
            stores=(origin.data, goal.data),
        )

    def connect_context(self, state: SDFGState, node: nodes.LibraryNode) -> None:
        """Give a node of a state the handle of the runtime's plans."""
        context = state.add_read(CONTEXT)
        state.add_edge(context, None, node, "_context", Memlet(data=CONTEXT, subset="0"))


def reads_through(use: Use) -> tuple[Edge, ...]:
    """Edges through which a body reads what it also writes."""
    return use.reads_through if isinstance(use, Update) else ()


def _last_reader(use: Read) -> nodes.AccessNode:
    """The last of the nodes that a use reads from."""
    return last(use.space.state, {edge.src for edge in use.edges})
