"""The containers of a lowered program: which array of the program each holds, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dace import SDFGState

from distspmd.checking.lowered_accesses import Evaluator
from distspmd.checking.validity import Validity
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.layouts.layout import Layout
from distspmd.lowering import CONTEXT, Lowering, PlannedMemlet
from distspmd.nodes.distributed_memlet import DistributedMemlet
from distspmd.nodes.fetched_memlet import FetchedMemlet
from distspmd.nodes.row_exchange import ExchangedRows


class Stores:
    """Containers, by what the record says of homes and redistributions.

    Attributes:
        arrays: array of the program of which a container holds elements; a container that several
            share has none.
        partial: array of which a container holds operands.
        operands: the layout of these operands.
        adding: those of them that are added to a value which is there.
        apart: containers that are not looked at: rows that data choose, handles, unknown sizes.
        tiles: layout of the tiles in a container.
    """

    def __init__(self, lowering: Lowering, on_ranks: Evaluator) -> None:
        self.lowering, self.sdfg, self.on_ranks = lowering, lowering.sdfg, on_ranks
        self.ranks = on_ranks.ranks
        self.partial: dict[str, str] = {}
        self.operands: dict[str, Layout] = {}
        self.adding: set[str] = set()
        self.apart: set[str] = {CONTEXT}
        self.tiles: dict[str, Layout] = {}
        self.arrays: dict[str, str] = {}
        self._name()

    def _name(self) -> None:
        """Which array each container holds elements or operands of, as the record says."""
        held: dict[str, set[str]] = {home.store: {home.data} for home in self.lowering.homes}
        self.tiles = {home.store: home.layout for home in self.lowering.homes}
        for memlet in (*self.lowering.memlets, *self.lowering.fetches):
            move = memlet.solution.plan.redistribution
            (origin, goal), tiles = memlet.stores, (memlet.source_tiles, memlet.target_tiles)
            for store, layout in zip((origin, goal), tiles, strict=True):
                held.setdefault(store, set()).add(memlet.data)
                if layout is not None:
                    self.tiles[store] = layout
            if move.source.partial is not None:
                self.partial[origin], self.operands[origin] = memlet.data, move.source
                if move.accumulate:
                    self.adding.add(origin)
        for state in self.sdfg.states():
            for node in state.nodes():
                if isinstance(node, ExchangedRows):
                    self.apart |= {e.data.data for e in state.all_edges(node) if e.data.data}
        self.arrays = {store: min(names) for store, names in held.items() if len(names) == 1}

    def memlets(self, node: DistributedMemlet | FetchedMemlet) -> tuple[PlannedMemlet, ...]:
        """What a node carries out: one plan, or one of several by what a loop says."""
        if isinstance(node, FetchedMemlet):
            return (self.lowering.fetches[node.index],)
        return self.lowering.memlets[node.index : node.index + node.plans]

    def array(self, store: str, validity: Validity) -> str:
        """The array of which a store holds elements; operands are an array of their own."""
        if store in self.partial:
            return f"operands of {self.partial[store]} in {store}"
        return validity.array.get(store) or self.arrays.get(store, store)

    def at_caller(self) -> Iterator[tuple[str, str, list[Box]]]:
        """Arguments and results: the container, its array, and what the caller holds by ranks."""
        for name, container in self.sdfg.arrays.items():
            if container.transient or name in self.apart:
                continue
            extents = self.extents(name)
            if extents is None:
                self.apart.add(name)
                continue
            yield name, self.arrays.get(name, name), self._held_by_caller(name, extents)

    def begin(self) -> Validity:
        """What ranks hold when the program starts: the caller's arguments, where it holds them."""
        found = Validity(self.ranks)
        for name, array, boxes in self.at_caller():
            if name.startswith("__return"):
                continue  # a result, which holds nothing yet
            extents = self.extents(name)
            assert extents is not None
            found.written[array] = (intervals.whole(extents),)
            found.arrive(name, array, boxes)
        return found

    def extents(self, name: str) -> tuple[int, ...] | None:
        """Extents of an array of the caller's; None where they are not known."""
        if name in self.lowering.argument_layouts:
            return self.lowering.argument_layouts[name].extents
        found = [self.on_ranks.numbers(extent) for extent in self.sdfg.arrays[name].shape]
        return None if any(f is None for f in found) else tuple(int(f[0]) for f in found)  # type: ignore[index]

    def _held_by_caller(self, name: str, extents: Sequence[int]) -> list[Box]:
        layout = self.lowering.argument_layouts.get(name)
        if layout is not None:
            return [self.box(layout, rank) for rank in range(self.ranks)]
        nothing = intervals.empty(len(extents))
        return [intervals.whole(extents), *[nothing] * (self.ranks - 1)]

    def boxes(self, layout: Layout) -> list[Box]:
        """The boxes of a layout on all ranks."""
        return [self.box(layout, rank) for rank in range(self.ranks)]

    @staticmethod
    def box(layout: Layout, rank: int) -> Box:
        """The box of a rank, which may be beyond the mesh."""
        return layout.box(rank) if rank < layout.ranks else intervals.empty(len(layout.extents))


def stores_of(
    state: SDFGState, node: DistributedMemlet | FetchedMemlet
) -> tuple[str | None, str | None]:
    """The containers that a node moves from and to."""
    origin = next((e.data.data for e in state.in_edges(node) if e.dst_conn == "_in"), None)
    goal = next((e.data.data for e in state.out_edges(node) if e.src_conn == "_out"), None)
    return origin, goal
