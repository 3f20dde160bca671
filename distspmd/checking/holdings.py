"""What a space or a redistribution of a lowered program needs, and what ranks hold after it.

Each step asks :class:`~distspmd.checking.validity.Validity` whether what it reads is there, and
tells it what it writes. The first thing that is missing ends the proof.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace

import networkx as nx
from dace import SDFGState
from dace.sdfg import nodes

from distspmd.checking.lowered_accesses import Touched
from distspmd.checking.stores import Stores, stores_of
from distspmd.checking.validity import united, without
from distspmd.errors import PlanError
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.layouts.layout import Layout
from distspmd.lowering import PlannedMemlet
from distspmd.nodes.distributed_memlet import DistributedMemlet
from distspmd.nodes.fetched_memlet import FetchedMemlet
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution


class Holdings:
    """What ranks hold at a point of the program, and what steps do to that.

    Attributes:
        validity: what they hold; whoever walks through branches keeps and joins it.
        at: the state and the node that run, if one does.
    """

    def __init__(self, stores: Stores) -> None:
        self.stores, self.ranks = stores, stores.ranks
        self.validity = stores.begin()
        self.at: tuple[SDFGState, nodes.Node] | None = None
        self._blank: list[tuple[nodes.Node, str, str, Box]] = []
        self._sent: dict[int, list[tuple[int, Box]]] = {}

    def enter(self, state: SDFGState, node: nodes.Node) -> None:
        """A node of a state runs next."""
        if self.at is None or self.at[0] is not state:
            self._blank = []
        self.at = state, node

    def leave(self) -> None:
        """No node of a state runs."""
        self.at, self._blank = None, []

    def read(self, read: Touched, where: str, written: Sequence[Touched] = ()) -> None:
        """Something is read, but for what the reader itself has written before.

        Raises:
            PlanError: a rank reads outside of its tile, or something that is old.
        """
        if read.store in self.stores.apart:
            return
        read = self._within(read)
        self._prove_inside(read, where)
        array = self._array(read.store)
        for rank, box in enumerate(read.box):
            wanted = self._bounded(read, rank)
            if wanted is None:
                continue
            for part in intervals.subtract_all(wanted, [w.box[rank] for w in written]):
                if self.at is not None:
                    empty = without((part,), self.validity.written.get(array, ()))
                    self._blank += [(self.at[1], where, array, each) for each in empty]
                lacks = self.validity.lacking(read.store, rank, array, part)
                if lacks is not None:
                    raise PlanError(
                        f"{where} reads [{intervals.box_text(box)}] of {read.store!r} on rank "
                        f"{rank}, but [{intervals.box_text(lacks)}] is not there: it was written "
                        "on another rank, and nothing brings it before."
                    )

    def _within(self, touched: Touched) -> Touched:
        """What is touched of the array: conditions of a body leave out what lies beyond it."""
        tiles = self.stores.tiles.get(touched.store)
        if tiles is None or (self.at and isinstance(self.at[1], nodes.LibraryNode)):
            return touched
        whole = intervals.whole(tiles.extents)
        return replace(touched, box=tuple(intervals.intersect(b, whole) for b in touched.box))

    def _bounded(self, read: Touched, rank: int) -> Box | None:
        """What a read needs surely; where data decide an index, what the tile has."""
        if all(read.known):
            return read.box[rank]
        tiles = self.stores.tiles.get(read.store)
        if tiles is None:
            return None
        tile = self.stores.box(tiles, rank)
        return intervals.intersect(read.box[rank], tile)

    def write(self, write: Touched, where: str, fills: bool = False) -> None:
        """Something is written; a write that only fills a tile of operands adds no operand.

        Raises:
            PlanError: a rank writes outside of its tile, or changes something that is old.
        """
        if write.store in self.stores.apart:
            return
        write = write if write.exact else self._within(write)
        self._prove_inside(write, where)
        array = self._array(write.store)
        self._prove_order(self.stores.partial.get(write.store, array), write.box, where)
        if write.reduces or not write.exact:
            for rank, box in enumerate(write.box):
                lacks = self.validity.lacking(write.store, rank, array, box)
                if lacks is not None and all(write.known):
                    raise PlanError(
                        f"{where} changes some of [{intervals.box_text(box)}] of {write.store!r} "
                        f"on rank {rank}, but [{intervals.box_text(lacks)}] is not there."
                    )
        if write.store not in self.stores.partial:
            self.validity.write(write.store, array, write.box, write.exact)
        elif write.exact:
            self.validity.arrive(write.store, array, write.box)  # each rank has operands of its own
            for box in dict.fromkeys(write.box):
                if not intervals.is_empty(box):
                    held = self.validity.written.get(array, ())
                    self.validity.written[array] = united(held, box)
        if write.store in self.stores.partial and not fills:
            self.validity.wait(write.store, write.box)
            self._value_changes(write)

    def _value_changes(self, write: Touched) -> None:
        """Operands of an array were written: its value is old everywhere until they are added.

        Where they are added to a value that is kept, that is so until then of the sum alone.
        """
        adds = write.store in self.stores.adding
        array = _sum_of(write.store) if adds else self.stores.partial[write.store]
        self.validity.write("", array, write.box, False)
        for box in dict.fromkeys(write.box):
            if not intervals.is_empty(box):
                held = self.validity.written.get(array, ())
                self.validity.written[array] = (*without(held, [box]), box)

    def _prove_order(self, array: str, boxes: Sequence[Box], where: str) -> None:
        """What was read in this state before it was written is read before in any order."""
        for reader, reads, name, box in self._blank:
            if name != array or self.at is None or self.at[1] is reader:
                continue
            if all(intervals.is_empty(intervals.intersect(box, each)) for each in boxes):
                continue
            state, writer = self.at
            leaves = state.exit_node(reader) if isinstance(reader, nodes.MapEntry) else reader
            if not nx.has_path(state.nx, leaves, writer):
                raise PlanError(
                    f"{reads} reads [{intervals.box_text(box)}] of {array!r}, which {where} "
                    "writes, and nothing says which of them comes first."
                )

    def _prove_inside(self, touched: Touched, where: str) -> None:
        """What is touched lies in what the rank stores."""
        self._prove_fixed(touched, where)
        storage = self.stores.on_ranks.storage(touched.store)
        if storage is None:
            return
        for rank, (box, stored) in enumerate(zip(touched.box, storage.tolist(), strict=True)):
            whole: Box = tuple((lo, hi) for lo, hi in stored)
            if not intervals.contains(whole, box):
                raise PlanError(
                    f"{where} {'writes' if touched.is_write else 'reads'} "
                    f"[{intervals.box_text(box)}] of {touched.store!r} on rank {rank}, which "
                    f"stores [{intervals.box_text(whole)}]."
                )

    def _prove_fixed(self, touched: Touched, where: str) -> None:
        """What no iteration chooses is the same on all ranks, or all that the tile has."""
        tiles = self.stores.tiles.get(touched.store)
        busy = [rank for rank, box in enumerate(touched.box) if not intervals.is_empty(box)]
        for d in touched.fixed:
            if tiles is None or len({touched.box[rank][d] for rank in busy}) < 2:
                continue
            for rank in busy:
                tile, found = self.stores.box(tiles, rank)[d], touched.box[rank][d]
                if found != tile:
                    raise PlanError(
                        f"{where} touches {found[0]}:{found[1]} in dimension {d} of "
                        f"{touched.store!r} on rank {rank}, which has {tile[0]}:{tile[1]} of it."
                    )

    def move(self, state: SDFGState, node: DistributedMemlet | FetchedMemlet) -> None:
        """A redistribution is made; of one with several plans, the one that loops choose.

        Raises:
            PlanError: its plan does not fit the tiles, or takes something that is old.
        """
        (origin, goal), memlets = stores_of(state, node), self.stores.memlets(node)
        for memlet in memlets:
            starts = (
                len(memlets) > 1
            )  # of several plans, all but the last move the start of the array
            self._prove_stored(memlet, origin, memlet.source_tiles, "from", starts)
            self._prove_stored(memlet, goal, memlet.target_tiles, "to", starts)
        if origin is None or goal is None or {origin, goal} & self.stores.apart:
            return
        if any(memlet.stores != (origin, goal) for memlet in memlets):
            raise PlanError(f"{node} is not where the record has it: between {memlets[0].stores}.")
        memlet = memlets[self._chosen(node)]
        self._take(memlet, origin)
        self._bring(memlet, origin, goal)

    def _chosen(self, node: DistributedMemlet | FetchedMemlet) -> int:
        """Which of the plans of a node is run: by all ranks the same."""
        if isinstance(node, FetchedMemlet) or node.plans == 1:
            return 0
        numbers = self.stores.on_ranks.numbers(node.window)
        if numbers is None:
            return node.plans - 1  # the run decides it; the last is of all that any iteration wrote
        if len(set(numbers.tolist())) > 1 or not 0 <= numbers[0] < node.plans:
            raise PlanError(f"{node} has {node.plans} plans, and ranks choose {numbers.tolist()}.")
        return int(numbers[0])

    def _take(self, memlet: PlannedMemlet, origin: str) -> None:
        """What a plan takes is there, and it takes all operands that there are."""
        where, array = _words(memlet), self._array(origin)
        for rank, box in self._taken(memlet.solution.plan):
            lacks = self.validity.lacking(origin, rank, array, box, memlet.data)
            if lacks is not None:
                raise PlanError(
                    f"{where} takes [{intervals.box_text(box)}] of {origin!r} from rank {rank}, "
                    f"where [{intervals.box_text(lacks)}] is not what was written last."
                )
        if _move(memlet).source.partial is not None:
            self._prove_all_operands(_move(memlet).source, origin, where)

    def _bring(self, memlet: PlannedMemlet, origin: str, goal: str) -> None:
        """What a plan brings is there from now on; what no rank has of the source is not."""
        move, wanted = _move(memlet), self.stores.boxes(_move(memlet).target)
        array = self._array(goal) if goal in self.stores.partial else memlet.data
        if origin in self.stores.adding:
            self.validity.arrive(_sum_of(origin), _sum_of(origin), wanted)
        for rank, box in enumerate(wanted if move.accumulate else ()):
            lacks = self.validity.lacking(goal, rank, array, box)
            if lacks is not None:
                raise PlanError(
                    f"{_words(memlet)} adds to [{intervals.box_text(lacks)}] of {goal!r} on rank "
                    f"{rank}, which is not there."
                )
        if goal in self.stores.partial and move.source.partial is None:
            self._prove_all_values(memlet, wanted, goal)
        for part in move.source.holders():
            arriving = [intervals.intersect(part, box) for box in wanted]
            if move.accumulate:
                self.validity.write(goal, array, arriving, True)
            elif not all(map(intervals.is_empty, arriving)):
                self.validity.arrive(goal, array, arriving)
                if goal in self.stores.partial:
                    self.validity.wait(goal, arriving)

    def _prove_all_values(self, memlet: PlannedMemlet, wanted: Sequence[Box], goal: str) -> None:
        """A value that becomes one operand of many comes whole: others begin with nothing."""
        brought = [
            intervals.intersect(part, box)
            for part in _move(memlet).source.holders()
            for box in dict.fromkeys(wanted)
        ]
        left = without(self.validity.written.get(memlet.data, ()), brought)
        if left:
            raise PlanError(
                f"{_words(memlet)} leaves out [{intervals.box_text(left[0])}], to which {goal!r} "
                "holds operands."
            )

    def _taken(self, plan: Plan) -> list[tuple[int, Box]]:
        """What a plan takes out of the source, by rank: one of those that hold it may be enough."""
        if id(plan) not in self._sent:
            steps = [step for step in plan.steps if step.source == 0]
            found = {(m.sender, m.box) for step in steps for m in step.messages}
            self._sent[id(plan)] = sorted(found)
        return self._sent[id(plan)]

    def _prove_all_operands(self, source: Layout, store: str, where: str) -> None:
        """No rank has operands that wait and are not added."""
        waiting = self.validity.pending.pop(store, ((),) * self.ranks)
        added: dict[int, list[Box]] = {}
        for rank in range(source.ranks):
            added.setdefault(source.operand(rank), []).append(source.box(rank))
        for rank in range(source.ranks):
            left = without(waiting[rank], added[source.operand(rank)])
            if left:
                raise PlanError(
                    f"{where} leaves out [{intervals.box_text(left[0])}] of {store!r} on rank "
                    f"{rank}, which has operands there."
                )

    def _prove_stored(
        self,
        memlet: PlannedMemlet,
        store: str | None,
        tiles: Layout | None,
        word: str,
        starts: bool,
    ) -> None:
        """The plan works on the tiles that the program stores: their origin, and their strides."""
        if store is None or store in self.stores.apart:
            return
        move = _move(memlet)
        moved = move.source if word == "from" else move.target
        where = _words(memlet)
        stored = self.stores.extents(store) if tiles is None else tiles.extents
        of_start = stored is not None and all(map(operator.le, moved.extents, stored))
        if stored != moved.extents and not (starts and of_start):
            raise PlanError(
                f"{where} moves an array of {moved.extents} {word} {store!r}, which has tiles of "
                f"one of {stored}."
            )
        if tiles is None:
            return
        shape = tuple(int(n) for n in self.stores.sdfg.arrays[store].shape)
        if shape != tiles.storage_shape():
            raise PlanError(
                f"{where} moves {word} tiles of {tiles.storage_shape()}, but {store!r} stores "
                f"{shape}."
            )
        storage = self.stores.on_ranks.storage(store)
        assert storage is not None
        for rank in range(self.ranks):
            box, tile = self.stores.box(moved, rank), self.stores.box(tiles, rank)
            if intervals.is_empty(box):
                continue
            begins = tuple(int(lo) for lo in storage[rank, :, 0])
            if not intervals.contains(tile, box) or begins != tuple(lo for lo, _ in tile):
                raise PlanError(
                    f"{where} moves [{intervals.box_text(box)}] {word} rank {rank}, whose tile of "
                    f"{store!r} is [{intervals.box_text(tile)}] and begins at {begins}."
                )

    def prove_results(self) -> None:
        """At the end of the program, results and arguments are where the caller holds them."""
        for store in self.stores.adding:
            array = _sum_of(store)
            taken = [box for tiles in self.validity.valid.get(array, ()) for box in tiles]
            left = without(self.validity.written.get(array, ()), taken)
            if left:
                raise PlanError(
                    f"[{intervals.box_text(left[0])}] of {store!r} is never added to "
                    f"{self.stores.partial[store]!r}."
                )
        for name, array, boxes in self.stores.at_caller():
            kind = "result" if name.startswith("__return") else "argument"
            for rank, box in enumerate(boxes):
                lacks = self.validity.lacking(name, rank, array, box)
                if lacks is not None:
                    raise PlanError(
                        f"the {kind} {name!r} does not come back: rank {rank} has an old value of "
                        f"[{intervals.box_text(lacks)}] when the program ends."
                    )

    def _array(self, store: str) -> str:
        return self.stores.array(store, self.validity)


def _sum_of(store: str) -> str:
    """What stands for the sum that a store of operands is added into."""
    return f"the sum of {store}"


def _move(memlet: PlannedMemlet) -> Redistribution:
    return memlet.solution.plan.redistribution


def _words(memlet: PlannedMemlet) -> str:
    place = f"{memlet.source}: " if memlet.source else ""
    return f"{place}the redistribution of {memlet.data!r}"
