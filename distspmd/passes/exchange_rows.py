"""Rows that data choose go from the ranks that have them to those that need them: all-to-alls.

before -> after:  ``y: [S, h] + partial(sum){e} -> [all-reduce] -> z[s] = y[i[s]]``  ->
``y -> [all-to-all of rows] -> y_rows``, of which each rank has the rows at its own ``i[s]``

A space that picks needs some rows of what it reads, and writes some rows of what it makes
(:mod:`distspmd.analysis.row_sets`). What is read so comes from a copy of which each rank has the
rows that it needs; in the graph the exchange copies, for it means that and no more. Spaces that no
schedule splits, and that work row by row on the way to such a reader, run on the rows that this
reader needs, and so does a gather, if zeros of rows that are not needed stay zeros. Each exchange
is made if homes then have no more traffic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import networkx as nx
import numpy as np
from dace import Memlet
from dace.sdfg import nodes

from distspmd.analysis.apart import keeps_zero
from distspmd.analysis.constraints import uses
from distspmd.analysis.iteration_spaces import IterationSpace, ParameterRange
from distspmd.analysis.row_sets import Rows
from distspmd.analysis.tiling import Tiling
from distspmd.analysis.uses import Read, Use, Write
from distspmd.errors import UnsupportedProgram
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout, Partial
from distspmd.layouts.mesh import Mesh
from distspmd.lowering import Choice, Reason
from distspmd.nodes.row_exchange import ExchangedRows
from distspmd.passes.compilation import Compilation
from distspmd.passes.partial_values import reads_operands
from distspmd.passes.rows_needed import RowsNeeded
from distspmd.passes.tiles import new_name
from distspmd.placement.propagation import Tiled
from distspmd.plans.row_exchange import RowExchange, RowSet

WHY = Choice(Reason.ROWS)


@dataclass(frozen=True)
class ExchangeRows:
    """Exchanges of rows, where they spare traffic."""

    name: str = "exchange-rows"

    def apply(self, compilation: Compilation) -> None:
        """Add nodes that exchange rows, and change the tilings of spaces."""
        ranks = compilation.ranks
        if ranks == 1:
            return

        def weigh(data: str, uses: Sequence[Use]) -> float:
            return compilation.choose_home(data, uses, ranks).traffic

        rows = _Exchanges(
            compilation.sdfg,
            list(compilation.spaces),
            dict(compilation.tiled),
            weigh,
            compilation.apart,
        )
        for data in list(rows.uses):
            rows.exchange(data)
        compilation.spaces = rows.spaces
        compilation.tiled = {space.name: rows.tiled[space.name] for space in rows.spaces}
        compilation.row_exchanges = rows.made


@dataclass
class _Exchanges(RowsNeeded):
    """The exchanges of rows of a program."""

    made: list[RowExchange] = field(default_factory=list)
    """In the order of their numbers."""

    def exchange(self, data: str) -> None:
        """Exchange rows of a container for each set of rows that readers of it need."""
        write, has = self.only_write(data), self.has(data)
        if write is None or has is None or not self.adds_up(data):
            return
        wanted: dict[Rows, list[IterationSpace]] = {}
        for use in self.uses[data]:
            if isinstance(use, Read) and use.space.state is write.space.state:
                rows = self.need(use.space, data)
                if rows is not None:
                    wanted.setdefault(rows, []).append(use.space)
        for rows, readers in wanted.items():
            self._try(_Exchange(self, write, has, rows, readers))

    def _try(self, exchange: _Exchange) -> None:
        """Make an exchange, if there is then no more traffic than before."""
        if not exchange.is_possible():
            return
        before = list(self.spaces), dict(self.tiled), dict(self.on_rows)
        touched = exchange.touched()
        old = sum(self.weigh(name, self.uses[name]) for name in touched)
        if exchange.change():
            new = sum(self.weigh(name, self.uses[name]) for name in touched)
            if new + exchange.record.expected_bytes <= old:
                exchange.rewrite()
                return
        exchange.take_back()
        self.spaces, self.tiled, self.on_rows = before
        self.index()


@dataclass
class _Exchange:
    """One exchange: rows of what is written once, for readers that need the same rows of it."""

    program: _Exchanges
    write: Write
    has: RowSet
    needs: Rows
    readers: Sequence[IterationSpace]

    def __post_init__(self) -> None:
        sdfg, data = self.program.sdfg, self.write.data
        self.state = self.write.space.state
        self.by_row = list({s.name: s for s in self._by_row(self.readers)}.values())
        self.rows_of = {s.name: self.program.needed_of(s) for s in self.by_row}
        taken = {*sdfg.arrays, *sdfg.symbols, *self.program.tiled}
        self.name = new_name(f"{data}_rows", taken)
        held = self.program.layouts[data] if self.write.layout.partial else self.write.layout
        self.held = Layout.of_boxes(held.mesh, held.extents, held.boxes, held.partial)
        firsts = tuple(box[0][0] if not intervals.is_empty(box) else 0 for box in held.boxes)
        extents = held.extents
        dims = None if self.needs.set.index else 1
        source = next((str(r.source) for r in self.readers if r.source), "")
        self.record = RowExchange(
            data,
            np.dtype(sdfg.arrays[data].dtype.as_numpy_dtype()),
            extents[0],
            int(np.prod(extents[1:], dtype=np.int64)),
            self._padded(self.has),
            self._padded(self.needs.set),
            (*firsts, *(0 for _ in range(self.mesh.size - len(firsts)))),
            int(np.prod(sdfg.arrays[self.needs.set.index or data].shape[:dims], dtype=np.int64)),
            source,
        )

    def _by_row(self, readers: Iterable[IterationSpace]) -> Iterator[IterationSpace]:
        """Readers that run on rows from now on, and readers of what they write, in any order."""
        for space in readers:
            program = self.program
            if program.picking(space) is not None or space.name in program.on_rows:
                continue
            tiled = program.tiled[space.name]
            if max(tiled.tiling.parts, default=1) > 1 or space.name in program.running:
                continue
            yield space
            for use in tiled.uses:
                if not isinstance(use, Read):
                    yield from self._by_row([u.space for u in self._reads(use.data)])

    def _reads(self, data: str) -> list[Read]:
        return [use for use in self.program.uses[data] if isinstance(use, Read)]

    @property
    def mesh(self) -> Mesh:
        """All ranks that have or need rows."""
        return max(self.held.mesh, self.needs.mesh, key=lambda mesh: mesh.size)

    def _padded(self, rows: RowSet) -> RowSet:
        """The same for all these ranks."""
        more = ((0, 0),) * (self.mesh.size - len(rows.parts))
        return replace(rows, parts=(*rows.parts, *more))

    @property
    def arrays(self) -> tuple[str, ...]:
        """Arrays that say which rows ranks have and need."""
        return tuple(dict.fromkeys([*self.has.names, *self.needs.set.names]))

    def is_possible(self) -> bool:
        """Whether arrays have their values before the exchange, and no reader makes them."""
        program, graph = self.program, self.state.nx
        for name in self.arrays:
            writes = [use for use in program.uses[name] if not isinstance(use, Read)]
            once = len(writes) == 1 and writes[0].certain and writes[0].times == 1
            kind = program.kind(name)
            if name == self.write.data or kind not in "iu":
                return False
            if not writes:
                continue
            if not once or not program.sdfg.arrays[name].transient:
                return False
            maker = writes[0].space
            if maker.state is self.state and any(
                nx.has_path(graph, reader.node, maker.node) for reader in self.readers
            ):
                return False
        return all(space.state is self.state for space in self.by_row)

    def touched(self) -> list[str]:
        """Containers whose homes may change."""
        program = self.program
        spaces = [*self.by_row, *self.readers]
        found = [use.data for space in spaces for use in program.tiled[space.name].uses]
        return list(dict.fromkeys([self.write.data, *self.arrays, *found]))

    # -- tilings --------------------------------------------------------------------------------

    def change(self) -> bool:
        """Tile the exchange, and all spaces that then run on rows; whether that fits."""
        program, sdfg = self.program, self.program.sdfg
        like = sdfg.arrays[self.write.data]
        sdfg.add_array(self.name, like.shape, like.dtype, transient=True)
        space = self._space()
        place = 1 + max(
            n
            for n, other in enumerate(program.spaces)
            if {self.write.data, *self.arrays} & {*other.writes}
        )
        program.spaces.insert(place, space)
        program.tiled[space.name] = self._tiled(space)
        program.index()
        in_rows = {self.write.data}
        for reader in self.by_row:
            made, rows = self._on_rows(reader), self.rows_of[reader.name]
            if made is None or rows is None:
                return False
            in_rows |= {use.data for use in made.uses if not isinstance(use, Read)}
            program.tile(reader.name, made)
            program.on_rows[reader.name] = rows
        running = {space.name for space in self.by_row}
        names = {reader.name for reader in self.readers}
        for data in in_rows:
            for use in self._reads(data):
                wanted = use.space.name in names or data != self.write.data
                if wanted and use.space.name != self.name:
                    running.add(use.space.name)
        return all(self._reads_rows(name, in_rows) for name in running)

    def _space(self) -> IterationSpace:
        """The iteration space of the exchange, whose node is not in the graph yet."""
        node = ExchangedRows(f"exchange_{self.write.data}")
        node.array = self.write.data
        source = next((reader.source for reader in self.readers if reader.source), None)
        ranges = (ParameterRange.up_to(1),)
        return IterationSpace(
            self.name,
            node.label,
            ("__once",),
            ranges,
            source,
            (self.name,),
            self.state,
            node,
            None,
        )

    def _tiled(self, space: IterationSpace) -> Tiled:
        """What the exchange reads and writes."""
        mesh, extents = self.mesh, self.held.extents
        tiling = Tiling.of(space.ranges, mesh, ((),))
        found: list[Use] = [Read(space, self.write.data, self.held, ())]
        for name in self.arrays:
            of = self.program.uses[name][0].layout.extents
            found.append(
                Read(space, name, Layout.of_boxes(mesh, of, [intervals.whole(of)] * mesh.size), ())
            )
        found.append(Write(space, self.name, self._layout(extents), ()))
        return Tiled(tiling, found, WHY)

    def _layout(self, extents: Sequence[int]) -> Layout:
        """All rows on each rank that needs some, of which it has its own."""
        nothing, all_of_it = intervals.empty(len(extents)), intervals.whole(extents)
        boxes = [nothing if idle else all_of_it for idle in self.needs.idle]
        return Layout.of_boxes(
            self.needs.mesh, tuple(extents), boxes, Partial("sum", self.needs.axes)
        )

    def _on_rows(self, space: IterationSpace) -> Tiled | None:
        """A space as it runs on all rows of each rank that needs some of what it writes."""
        tiling = Tiling.of(space.ranges, self.needs.mesh, [()] * len(space.ranges))
        idle = np.array(self.needs.idle)
        tiling = replace(tiling, upper=np.where(idle[:, None], tiling.lower, tiling.upper))
        try:
            found = uses(space, tiling)
        except UnsupportedProgram:
            return None
        made: list[Use] = []
        for use in found:
            if not isinstance(use, Read):
                layout = self._layout(use.layout.extents)
                if not use.layout.same_boxes(layout):
                    return None
                use = replace(use, layout=layout)
            made.append(use)
        before = self.program.tiled[space.name]
        for use in before.uses:  # what it reads in rows already
            if reads_operands(use):
                return None
        return Tiled(tiling, made, WHY)

    def _reads_rows(self, name: str, in_rows: set[str]) -> bool:
        """Let a space read rows where it read values; whether its boxes fit."""
        program, own = self.program, self.program.tiled[name]
        is_reader = name in {reader.name for reader in self.readers}
        found: list[Use] = []
        for use in own.uses:
            known = use.data != self.write.data or is_reader
            if isinstance(use, Read) and use.data in in_rows and known:
                layout = self._layout(use.layout.extents)
                if use.layout.partial is not None or not use.layout.same_boxes(layout):
                    return False
                data = self.name if use.data == self.write.data else use.data
                use = replace(use, data=data, layout=layout)
            found.append(use)
        program.tile(name, replace(own, uses=found))
        pairs = zip(own.uses, found, strict=True)
        rows = [before.data for before, after in pairs if reads_operands(after)]
        by_row = name in program.on_rows  # rows that are not needed must not become infinite
        return not by_row or keeps_zero(program.spaces[program.places[name]], rows)

    def take_back(self) -> None:
        """Forget the container of the rows."""
        self.program.sdfg.arrays.pop(self.name, None)

    # -- the graph ------------------------------------------------------------------------------

    def rewrite(self) -> None:
        """Put the node of the exchange between what is written and its readers."""
        program, state = self.program, self.state
        tiled = program.tiled[self.name]
        space = tiled.uses[0].space
        node = space.node
        assert isinstance(node, ExchangedRows)
        node.index = len(program.made)
        program.made.append(self.record)
        state.add_node(node)
        written, rows = self.write.edges[-1].dst, state.add_access(self.name)
        edges = [state.add_edge(written, None, node, "_in", self._whole(self.write.data))]
        connectors = {name: f"_a{n}" for n, name in enumerate(self.arrays)}
        for name, connector in connectors.items():
            node.add_in_connector(connector)
            origin = self._node_of(name)
            edges.append(state.add_edge(origin, None, node, connector, self._whole(name)))
        for side, rowset in (("has", self.has), ("needs", self.needs.set)):
            setattr(node, f"{side}_member", connectors.get(rowset.member, ""))
            setattr(node, f"{side}_index", connectors.get(rowset.index, ""))
        edges.append(state.add_edge(node, "_out", rows, None, self._whole(self.name)))
        own = [replace(u, edges=(e,)) for u, e in zip(tiled.uses, edges, strict=True)]
        program.tile(self.name, replace(tiled, uses=own))
        for reader in self.readers:
            self._read_from(reader, rows)
            program.touched.pop(reader.name, None)

    def _whole(self, name: str) -> Memlet:
        found: Memlet = Memlet.from_array(name, self.program.sdfg.arrays[name])
        return found

    def _node_of(self, name: str) -> nodes.AccessNode:
        """A node of a container that has its value."""
        found = [node for node in self.state.data_nodes() if node.data == name]
        made = [node for node in found if self.state.in_degree(node)]
        return (made or found or [self.state.add_read(name)])[0]

    def _read_from(self, reader: IterationSpace, rows: nodes.AccessNode) -> None:
        """Let a space read from the copy of the rows."""
        state, tiled = self.state, self.program.tiled[reader.name]
        found: list[Use] = []
        for use in tiled.uses:
            if isinstance(use, Read) and use.data == self.name:
                edges = []
                for edge in use.edges:
                    for leaf in state.memlet_tree(edge).root().traverse_children(include_self=True):
                        if leaf.edge.data.data == self.write.data:
                            leaf.edge.data.data = self.name
                    new = state.add_edge(rows, None, edge.dst, edge.dst_conn, edge.data)
                    state.remove_edge(edge)
                    edges.append(new)
                    if state.degree(edge.src) == 0:
                        state.remove_node(edge.src)
                use = replace(use, edges=tuple(edges))
            found.append(use)
        self.program.tile(reader.name, replace(tiled, uses=found))
