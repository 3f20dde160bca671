"""The C++ runtime, loaded by every rank.

An :class:`Engine` holds the plans of one rank, made ready once on a communicator. It executes them
on NumPy tiles, and generated programs receive its ``context`` to execute them themselves.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import ArgumentError, CacheError, CompilationError, ToolchainError
from distspmd.layouts import intervals
from distspmd.plans.encoding import Function, Storage, words
from distspmd.plans.exchange import Exchange
from distspmd.plans.machine import Machine
from distspmd.plans.plan import Plan
from distspmd.plans.request_encoding import Fetch
from distspmd.plans.rewrites.chunk import MOST_ELEMENTS, chunk
from distspmd.plans.rewrites.split_reductions import split_reductions
from distspmd.plans.row_exchange import RowExchange
from distspmd.runtime.engine.collective_resource import Closing
from distspmd.runtime.shared_memory.windows import Lying, SharedNode, can_copy_in_out, can_copy_once
from distspmd.runtime.watch.agreement import Agreement
from distspmd.runtime.watch.rank_state import Movements

Tile = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the calls of a plan took on a rank, and what it received from other ranks."""

    seconds: float
    calls: int
    received_bytes: int
    """Bytes that came from other ranks, as the runtime counted them where it carried them."""
    asked_bytes: int = 0
    """Of a fetch: bytes of requests that came from other ranks."""
    least_bytes: int = 0
    """The fewest that the rank must receive in so many calls, whatever the plan."""


class Engine(Closing):
    """Plans of one rank, ready to run. All ranks of the communicator make it together.

    Args:
        comm: an mpi4py communicator; duplicated.
        plans: a name for messages, the plan, and this rank's storage of its source and target tile
            (C-contiguous tiles where left out).
        fetches: what programs ask for at run time.
        exchanges: of rows that data choose.
        talks: library calls in which ranks talk.
        functions: of each reduction that is not one of the runtime the addresses of three
            functions (codegen/user_reductions.py).

    Raises:
        CompilationError: the runtime did not compile; raised on all ranks.
        PlanError: a reduction of a dtype that the runtime cannot reduce.
    """

    def __init__(
        self,
        comm: Any,
        plans: Sequence[tuple[str, Plan] | tuple[str, Plan, Sequence[Storage]]],
        fetches: Sequence[Fetch] = (),
        functions: Mapping[Function, tuple[int, int, int]] | None = None,
        exchanges: Sequence[RowExchange] = (),
        talks: Sequence[Exchange] = (),
    ) -> None:
        from mpi4py.MPI import _handleof

        self.rank: int = comm.Get_rank()
        self.plans = tuple(_with_storages(entry, self.rank) for entry in plans)
        self._agreement = Agreement.of(comm)
        self._library = _load(shared_library(self._agreement))
        _meet_at_the_end(self._agreement, self._library)
        own = functions or {}
        table = words(self.plans, self.rank, tuple(own))
        addresses = [address for three in own.values() for address in three]
        self.context: int = self._library.distspmd_create(
            _handleof(comm),
            _pointer_to(table),
            len(table),
            (ctypes.c_void_p * len(addresses))(*addresses),
            len(own),
        )
        for fetch in fetches:
            asked = fetch.words(self.rank)
            self._library.distspmd_add_fetch(self.context, _pointer_to(asked), len(asked))
        for exchange in exchanges:
            rows = exchange.words(self.rank)
            self._library.distspmd_add_exchange(self.context, _pointer_to(rows), len(rows))
        for talk in talks:
            self._library.distspmd_add_talk(self.context, talk.title.encode(), talk.ranks)
        found = [fetch.name for fetch in fetches]
        found += [*(each.title for each in exchanges), *(each.title for each in talks)]
        movements = Movements([name for name, *_ in plans], found)
        self._library.distspmd_use_movements(self.context, _pointer_to(movements.numbers))
        self._movements = movements
        self._agreement.rank_state.movements.append(movements)
        self.single_copies = 0
        """Number of steps that copy out of memory that the ranks share."""
        self.copies_in_out = 0
        """Number of steps that go through the mailboxes of the node."""
        self._scratch: Tile | None = None  # where it lies in a window

    def __call__(self, number: int, source: Tile | None, target: Tile | None) -> None:
        """Run a plan on this rank's tiles (``None`` where it holds none).

        Raises:
            ArgumentError: a tile of another dtype, shape or strides than the plan's.
        """
        self.run(number, self.pointers(number, (source, target)))

    def pointers(self, number: int, tiles: Sequence[Tile | None]) -> tuple[int | None, ...]:
        """Where the storages of a plan's source and target tile begin.

        Raises:
            ArgumentError: a tile of another dtype, shape or strides than the plan's.
        """
        name, plan, storages = self.plans[number]
        return tuple(
            _pointer(tile, plan, name, side, storages[side], self.rank)
            for side, tile in enumerate(tiles)
        )

    def run(self, number: int, pointers: Sequence[int | None]) -> None:
        """Run a plan on tiles whose ``pointers`` are known."""
        self._library.distspmd_execute(self.context, number, *pointers)

    @property
    def end(self) -> Any:
        """A function of C that ends all ranks: it takes the context, and a message."""
        return self._library.distspmd_end

    @property
    def meeting(self) -> tuple[Any, Any]:
        """Functions of C by which the ranks meet for a plan, and count its call."""
        return self._library.distspmd_meet, self._library.distspmd_count

    @property
    def mpi_knows_cuda(self) -> bool:
        """Whether MPI says that it takes addresses of CUDA's devices, as Open MPI can say."""
        try:
            return bool(self._library["MPIX_Query_cuda_support"]())
        except AttributeError:
            return False

    @property
    def by_mpi(self) -> tuple[Any, Any, Any]:
        """Functions of C by which MPI carries buffers: post one, is it done, finish all."""
        library = self._library
        return library.distspmd_post, library.distspmd_is_done, library.distspmd_finish

    def share(
        self,
        node: SharedNode,
        tiles: Sequence[Sequence[Tile | None]],
        machine: Machine,
    ) -> None:
        """Let steps copy once from the memory of other ranks, where that holds their sources.

        Others go by copy-in/copy-out, if their ranks are on one node. All ranks call it together.
        From then on the plans run only on tiles that lie where these do.

        Args:
            node: the windows of the communicator.
            tiles: source and target of each plan; None where the rank has none that stays.
            machine: from how many bytes on which transport wins.
        """
        mailbox = node.mailbox()
        if mailbox is None:
            return
        numbers = mailbox.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
        self._library.distspmd_use_mailbox(self.context, numbers, len(mailbox))
        if any(plan.scratch for _, plan, _ in self.plans):
            nbytes: int = self._library.distspmd_scratch_bytes(self.context)
            self._scratch = node.allocate((nbytes,), np.dtype(np.uint8))
            self._library.distspmd_use_scratch(self.context, self._scratch.ctypes.data)
        everywhere = node.comm.allgather(
            [self._lying(node, number, pair) for number, pair in enumerate(tiles)]
        )
        for number, (_, plan, _) in enumerate(self.plans):
            lying = [held[number] for held in everywhere]
            for at, step in enumerate(plan.steps):
                if can_copy_once(plan, step, lying, node.of, machine.single_copy_bytes):
                    self._use_single_copy(node, number, at, lying)
                    self.single_copies += 1
                elif can_copy_in_out(
                    plan, step, lying, node.of, int(mailbox[1]), machine.run_bytes
                ):
                    self._use_copy_in_copy_out(node, number, at)
                    self.copies_in_out += 1

    def _lying(self, node: SharedNode, number: int, pair: Sequence[Tile | None]) -> Lying:
        """Where the buffers of a plan lie on this rank."""
        name, plan, storages = self.plans[number]
        places: list[tuple[int, int] | None] = []
        for side, tile in enumerate(pair):
            place = node.place(tile)
            if place is not None and tile is not None:
                pointer = _pointer(tile, plan, name, side, storages[side], self.rank)
                assert pointer is not None
                place = (place[0], place[1] + pointer - tile.ctypes.data)
            places.append(place)
        at = node.place(self._scratch)
        for buffer in range(2, len(plan.buffers)):
            offset = self._library.distspmd_scratch_place(self.context, number, buffer)
            places.append(at and (at[0], at[1] + offset))
        held = [Storage.of(layout.box(self.rank)) for layout in plan.scratch]
        source, target = pair
        aliased = source is not None and target is not None and np.may_share_memory(source, target)
        return Lying(tuple(places), (*storages, *held), aliased)

    def _use_single_copy(
        self, node: SharedNode, number: int, at: int, lying: Sequence[Lying]
    ) -> None:
        """Let a step of a plan copy once."""
        step = self.plans[number][1].steps[at]
        group = next((group for group in step.groups if self.rank in group), ())
        table: list[int] = []
        for rank in group:
            place, storage = lying[rank].places[step.source], lying[rank].storages[step.source]
            address = 0 if place is None else node.windows[place[0]].addresses[rank] + place[1]
            table += [node.numbers[rank], address, *storage.origin, *storage.strides]
        if len(group) > 1:
            numbers = np.array(table, dtype=np.int64)
            self._library.distspmd_use_single_copy(self.context, number, at, _pointer_to(numbers))

    def _use_copy_in_copy_out(self, node: SharedNode, number: int, at: int) -> None:
        """Let a step of a plan go by copy-in/copy-out."""
        step = self.plans[number][1].steps[at]
        group = next((group for group in step.groups if self.rank in group), ())
        if len(group) > 1:
            numbers = np.array([node.numbers[rank] for rank in group], dtype=np.int64)
            self._library.distspmd_use_copy_in_copy_out(
                self.context, number, at, numbers.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
            )

    def statistics(self, number: int) -> Statistics:
        """What the calls of a plan took so far."""
        seconds, calls, received = ctypes.c_double(), ctypes.c_int64(), ctypes.c_int64()
        self._library.distspmd_statistics(
            self.context, number, ctypes.byref(seconds), ctypes.byref(calls), ctypes.byref(received)
        )
        least = self.plans[number][1].bound.received(self.rank)
        return Statistics(
            seconds.value, calls.value, received.value, least_bytes=calls.value * least
        )

    def fetch_statistics(self, number: int) -> Statistics:
        """What the calls of a fetch took so far; it receives no element that is not needed."""
        seconds, counted = ctypes.c_double(), [ctypes.c_int64() for _ in range(3)]
        self._library.distspmd_fetch_statistics(
            self.context, number, ctypes.byref(seconds), *map(ctypes.byref, counted)
        )
        calls, received, asked = (count.value for count in counted)
        return Statistics(seconds.value, calls, received, asked, least_bytes=received)

    def exchange(
        self,
        number: int,
        source: Tile,
        target: Tile,
        arrays: Sequence[NDArray[np.int64] | None],
    ) -> None:
        """Run an exchange of rows between C-contiguous arrays.

        Args:
            number: of the exchange.
            source: the rows that this rank has, from the first of its tile.
            target: all rows, of which those that it needs are filled and others zero.
            arrays: member and index of what ranks have, and of what they need.
        """
        lengths = [max(0 if a is None else a.size for a in arrays[n : n + 2]) for n in (0, 2)]
        pointers = (ctypes.c_void_p * 4)(*(None if a is None else a.ctypes.data for a in arrays))
        self._library.distspmd_exchange(
            self.context,
            number,
            source.ctypes.data,
            target.ctypes.data,
            pointers,
            (ctypes.c_int64 * 2)(*lengths),
        )

    def exchange_statistics(self, number: int) -> Statistics:
        """What the calls of an exchange of rows took so far."""
        seconds, calls, received = ctypes.c_double(), ctypes.c_int64(), ctypes.c_int64()
        self._library.distspmd_exchange_statistics(
            self.context, number, ctypes.byref(seconds), ctypes.byref(calls), ctypes.byref(received)
        )
        return Statistics(seconds.value, calls.value, received.value, least_bytes=received.value)

    def talk_statistics(self, number: int) -> Statistics:
        """What ranks told each other in a library call so far, but for counts and samples."""
        seconds, calls, received = ctypes.c_double(), ctypes.c_int64(), ctypes.c_int64()
        self._library.distspmd_talk_statistics(
            self.context, number, ctypes.byref(seconds), ctypes.byref(calls), ctypes.byref(received)
        )
        return Statistics(seconds.value, calls.value, received.value, least_bytes=received.value)

    def reset_statistics(self) -> None:
        """Count from zero again."""
        self._library.distspmd_reset_statistics(self.context)

    def close(self) -> None:
        """Free the communicators and buffers; all ranks call it together."""
        if self.context:
            self._agreement.rank_state.movements.remove(self._movements)
            context, self.context = self.context, 0
            self._library.distspmd_destroy(context)
            self._scratch = None


def runnable(plan: Plan) -> Plan:
    """The plan as it runs: in calls that MPI can count, none of which combines elements twice."""
    return chunk(split_reductions(plan), MOST_ELEMENTS)


Named = tuple[str, Plan, Sequence[Storage]]


def _pointer_to(numbers: NDArray[np.int64]) -> Any:
    return numbers.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))


def _with_storages(
    entry: tuple[str, Plan] | tuple[str, Plan, Sequence[Storage]], rank: int
) -> Named:
    if len(entry) == 3:
        return entry
    name, plan = entry
    return name, plan, [Storage.of(layout.box(rank)) for layout in plan.buffers[:2]]


def _pointer(
    tile: Tile | None, plan: Plan, name: str, side: int, storage: Storage, rank: int
) -> int | None:
    """Where the storage of a tile begins, after the checks that C++ cannot make."""
    layout = plan.buffers[side]
    box = layout.box(rank)
    if intervals.is_empty(box):
        return None
    what = f"{name}: the {('source', 'target')[side]} tile of rank {rank}"
    dtype = plan.redistribution.dtype
    if tile is None:
        raise ArgumentError(f"{what} is missing; {layout} gives it [{intervals.box_text(box)}].")
    shape = storage.shape or intervals.shape(box)
    if tile.dtype != dtype or tile.shape != shape:
        raise ArgumentError(
            f"{what} is {tile.dtype}{list(tile.shape)}; {layout} gives it {dtype}{list(shape)}."
        )
    if storage.shape:
        return tile.ctypes.data - storage.first * dtype.itemsize
    wanted = [stride * dtype.itemsize for stride in storage.strides]
    for extent, stride, want in zip(tile.shape, tile.strides, wanted, strict=True):
        if extent > 1 and stride != want:
            raise ArgumentError(f"{what} has the strides {tile.strides}, but the plan {wanted}.")
    inside = sum(
        (lo - at) * stride for (lo, _), at, stride in zip(box, storage.origin, wanted, strict=True)
    )
    return tile.ctypes.data - inside


def _meet_at_the_end(agreement: Agreement, library: ctypes.CDLL) -> None:
    """Let the ranks meet when they end, so that none waits for one that has ended."""
    from mpi4py.MPI import _handleof

    if agreement.ranks == 1 or agreement.meets_at_the_end:
        return
    handle = _handleof(agreement.comm)
    library.distspmd_add_farewell(handle)
    agreement.at_close(lambda: library.distspmd_remove_farewell(handle))
    agreement.meets_at_the_end = True


def shared_library(agreement: Agreement) -> Path:
    """The compiled runtime; rank 0 compiles it, and ranks that do not see its cache do so too.

    Raises:
        CompilationError: on all ranks, with what the compiler said.
        ToolchainError: on all ranks; there is no compiler or no MPI.
        CacheError: on all ranks; there is no folder for it.
    """
    path, error = _attempt() if agreement.rank == 0 else (None, None)
    agreement.wait(error)
    path, error = agreement.bcast(path), None
    if not path.exists():
        path, error = _attempt()
    agreement.check(error)
    assert path is not None
    return path


def _attempt() -> tuple[Path | None, Exception | None]:
    from distspmd.runtime.engine.compile_runtime import (
        build_runtime,  # ranks that only load need it not
    )

    try:
        path = build_runtime()
    except (CacheError, CompilationError, ToolchainError, OSError) as error:
        return None, error
    try:
        _load(path)
    except OSError as error:
        return None, CacheError(
            f"the runtime cannot be loaded: {error}. Set DISTSPMD_CACHE to a folder of a file "
            "system from which programs may run (mounted without noexec)."
        )
    return path, None


_NUMBER, _NUMBERS, _ADDRESS = ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p
_SECONDS = ctypes.POINTER(ctypes.c_double)

ABI: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "create": (_ADDRESS, (_NUMBER, _NUMBERS, _NUMBER, ctypes.POINTER(_ADDRESS), _NUMBER)),
    "destroy": (None, (_ADDRESS,)),
    "execute": (None, (_ADDRESS, _NUMBER, _ADDRESS, _ADDRESS)),
    "add_fetch": (None, (_ADDRESS, _NUMBERS, _NUMBER)),
    "add_exchange": (None, (_ADDRESS, _NUMBERS, _NUMBER)),
    "exchange": (
        None,
        (_ADDRESS, _NUMBER, _ADDRESS, _ADDRESS, ctypes.POINTER(_ADDRESS), _NUMBERS),
    ),
    "add_talk": (None, (_ADDRESS, ctypes.c_char_p, _NUMBER)),
    "talk_statistics": (None, (_ADDRESS, _NUMBER, _SECONDS, _NUMBERS, _NUMBERS)),
    "exchange_statistics": (None, (_ADDRESS, _NUMBER, _SECONDS, _NUMBERS, _NUMBERS)),
    "scratch_bytes": (_NUMBER, (_ADDRESS,)),
    "scratch_place": (_NUMBER, (_ADDRESS, _NUMBER, _NUMBER)),
    "use_scratch": (None, (_ADDRESS, _ADDRESS)),
    "use_mailbox": (None, (_ADDRESS, _NUMBERS, _NUMBER)),
    "use_copy_in_copy_out": (None, (_ADDRESS, _NUMBER, _NUMBER, _NUMBERS)),
    "use_single_copy": (None, (_ADDRESS, _NUMBER, _NUMBER, _NUMBERS)),
    "meet": (None, (_ADDRESS, _NUMBER, _ADDRESS, _NUMBER, _ADDRESS)),
    "post": (_NUMBER, (_ADDRESS, _NUMBER, _NUMBER, _NUMBER, _ADDRESS, _NUMBER)),
    "is_done": (_NUMBER, (_ADDRESS, _NUMBER, _NUMBER, _NUMBER)),
    "finish": (None, (_ADDRESS, _NUMBER)),
    "count": (None, (_ADDRESS, _NUMBER, _NUMBER)),
    "use_movements": (None, (_ADDRESS, _NUMBERS)),
    "add_farewell": (None, (_NUMBER,)),
    "remove_farewell": (None, (_NUMBER,)),
    "statistics": (None, (_ADDRESS, _NUMBER, _SECONDS, _NUMBERS, _NUMBERS)),
    "fetch_statistics": (None, (_ADDRESS, _NUMBER, _SECONDS, _NUMBERS, _NUMBERS, _NUMBERS)),
    "reset_statistics": (None, (_ADDRESS,)),
    "end": (None, (_ADDRESS, ctypes.c_char_p)),
}
"""Result and arguments of each function of ``api/runtime.hpp``, by its name without ``distspmd_``.

The first argument is the context, but of ``create`` and of farewells the handle of a communicator.
"""


@cache
def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in ABI.items():
        function = library[f"distspmd_{name}"]
        function.restype, function.argtypes = result, arguments
        setattr(library, f"distspmd_{name}", function)
    return library
