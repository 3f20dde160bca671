"""Memory that the ranks of a node share, and which steps of a plan may copy directly out of it.

All ranks of a communicator make a window together, with one segment for each rank. A rank that sees
the segments of the others copies out of them directly, where a message would copy twice or involve
the kernel.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.plans.encoding import Storage
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.plan import Plan, Step
from distspmd.runtime.shared_memory.segments import free_bytes

Tile = NDArray[Any]

_ALIGNMENT = 64


class Window:
    """One segment for each rank; ``addresses`` are those in this process, 0 on another node."""

    def __init__(self, node: Any, peers: Sequence[int], nbytes: int) -> None:
        from mpi4py import MPI

        self.nbytes = nbytes
        rounded = -(-max(nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
        self._window = MPI.Win.Allocate_shared(rounded + _ALIGNMENT, 1, comm=node)
        found = [self._window.Shared_query(at)[0].address if at >= 0 else 0 for at in peers]
        self.addresses = [-(-address // _ALIGNMENT) * _ALIGNMENT for address in found]
        self._memory = self._window.Shared_query(node.rank)[0]
        self._lent: weakref.ref[Tile] | None = None

    @property
    def free(self) -> bool:
        """Whether no array of it is left."""
        return self._lent is None or self._lent() is None

    def close(self) -> None:
        """Free it; all ranks of the node call it together."""
        self._window.Free()

    def array(self, rank: int, shape: Sequence[int], dtype: np.dtype[Any]) -> Tile:
        """An array of zeros in the segment of this rank, which is lent until the array is gone."""
        begin = self.addresses[rank] - self._memory.address
        count = int(np.prod(shape, dtype=np.int64))
        memory: Any = self._memory  # mypy knows no buffers but Python's own
        whole: Tile = np.frombuffer(memory, np.uint8, count * dtype.itemsize, begin)
        whole.fill(0)
        self._lent = weakref.ref(whole)  # it is the base of all views of it
        return whole.view(dtype).reshape(shape)


class SharedNode:
    """The windows of a communicator.

    Args:
        comm: an mpi4py communicator.
        node: of its ranks those that share memory with this one; found where left out.
    """

    def __init__(self, comm: Any, node: Any = None) -> None:
        from mpi4py import MPI

        self.comm, self.rank = comm, comm.Get_rank()
        self.node = node or comm.Split_type(MPI.COMM_TYPE_SHARED, self.rank)
        self.of: list[int] = comm.allgather(self.node.bcast(self.rank))
        """A number of the node of each rank."""
        mine = [rank for rank, of in enumerate(self.of) if of == self.of[self.rank]]
        self.numbers = [mine.index(rank) if rank in mine else -1 for rank in range(len(self.of))]
        """A number of each rank on this node, -1 on another."""
        self.windows: list[Window] = []
        self._pools: Tile | None = None

    def window(self, nbytes: int) -> Window | None:
        """A window that is free and large enough on all ranks, else a new one if there is room."""
        from mpi4py import MPI

        fits = np.array([w.free and w.nbytes >= nbytes for w in self.windows] or [False], np.int32)
        self.comm.Allreduce(MPI.IN_PLACE, fits, op=MPI.MIN)
        if fits.any():
            return self.windows[int(fits.argmax())]
        wanted = self.node.allreduce(nbytes + 2 * _ALIGNMENT)
        if not self.comm.allreduce(wanted < free_bytes(), op=MPI.LAND):
            return None
        self.windows.append(Window(self.node, self.numbers, nbytes))
        return self.windows[-1]

    def allocate(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Tile:
        """Zeros that the other ranks of the node see, or for the rank alone if there is no room."""
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        window = self.window(nbytes)
        return window.array(self.rank, shape, dtype) if window else np.zeros(shape, dtype)

    def allocate_all(self, wanted: Sequence[tuple[Sequence[int], np.dtype[Any]]]) -> list[Tile]:
        """Arrays that the other ranks of the node see, one after the other in one window."""
        sizes = [int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for shape, dtype in wanted]
        ends = np.cumsum([-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes]).tolist()
        memory = self.allocate((ends[-1] if ends else 0,), np.dtype(np.uint8))
        starts = [0, *ends]
        return [
            memory[start : start + size].view(dtype).reshape(shape)
            for start, size, (shape, dtype) in zip(starts, sizes, wanted, strict=False)
        ]

    def mailbox(self) -> NDArray[np.int64] | None:
        """The copy-in/copy-out pools of this node, for ``shm/mailbox.hpp``; None without room."""
        from mpi4py import MPI

        ranks: int = self.comm.allreduce(self.node.size, op=MPI.MAX)
        slots = max(HEURISTICS.least_slots, ranks)
        least, most = HEURISTICS.least_packet_bytes, HEURISTICS.most_packet_bytes
        packet = min(most, max(least, HEURISTICS.pool_bytes // slots))
        if self._pools is None:
            self._pools = self.allocate((_segment_bytes(ranks, packet, slots),), np.dtype(np.uint8))
            self.comm.Barrier()  # all slots are free before the first packet
        place = self.place(self._pools)
        if place is None:
            return None
        window = self.windows[place[0]]
        segments = [
            window.addresses[rank] for rank, number in enumerate(self.numbers) if number >= 0
        ]
        nbytes = _segment_bytes(len(segments), packet, slots)
        head = [self.numbers[self.rank], packet, slots, nbytes]
        return np.array([*head, *segments], dtype=np.int64)

    def place(self, tile: Tile | None) -> tuple[int, int] | None:
        """The window and the offset at which a tile begins, if it lies in one."""
        if tile is None or tile.size == 0 or not self.windows:
            return None
        address: int = tile.ctypes.data
        for number, window in enumerate(self.windows):
            offset = address - window.addresses[self.rank]
            if 0 <= offset < window.nbytes:
                return number, offset
        return None

    def close(self) -> None:
        """Give back the windows of which no array is left on any rank; all ranks call it together.

        The others stay until the program ends: somebody may still read them.
        """
        from mpi4py import MPI

        if MPI.Is_finalized():
            return
        self._pools = None
        free = np.array([window.free for window in self.windows], np.int32)
        self.node.Allreduce(MPI.IN_PLACE, free, op=MPI.MIN)
        for window, unused in zip(self.windows, free, strict=True):
            if unused:
                window.close()
        self.windows.clear()
        self.node.Free()


def _segment_bytes(ranks: int, packet: int, slots: int) -> int:
    """Bytes of a rank's segment: its packets, counters, envelopes, and records of the slots."""
    return slots * (packet + 8 * (1 + 2 * ranks)) + ranks * (3 * _ALIGNMENT + 8 * slots)


@dataclass(frozen=True, slots=True)
class Lying:
    """Where the buffers of a plan lie on a rank, for the other ranks.

    Attributes:
        places: window and offset of the pointer that the plan gets, by buffer; None: in none.
        storages: of each buffer.
        aliased: whether source and target are one memory.
    """

    places: tuple[tuple[int, int] | None, ...]
    storages: tuple[Storage, ...]
    aliased: bool

    def contiguous(self, buffer: int, box: Box) -> bool:
        """Whether a box is one run of elements of a buffer."""
        run = 1
        strides = self.storages[buffer].strides
        for (lo, hi), stride in zip(reversed(box), reversed(strides), strict=True):
            if hi - lo != 1 and stride != run:
                return False
            run *= hi - lo
        return True


def _may_be_shared(step: Step) -> bool:
    """Whether each rank can do its part alone; of a combined box it would read all operands."""
    return step.kind.spec.moves and not step.kind.spec.is_combined


def can_copy_once(
    plan: Plan, step: Step, lying: Sequence[Lying], of: Sequence[int], least: int
) -> bool:
    """Whether a step may copy once: its groups are each on one node, with all sources in windows.

    It is the same on all ranks, and ``least`` is the number of bytes from which it pays.
    """
    if not _may_be_shared(step) or (step.source == step.target and not _apart(step)):
        return False
    if int(step.traffic.delivered.max(initial=0)) * plan.itemsize < least:
        return False
    layout = plan.buffers[step.source]
    for group in step.groups:
        for rank in group:
            held = not intervals.is_empty(layout.box(rank))
            if of[rank] != of[group[0]] or lying[rank].aliased:
                return False
            if held and lying[rank].places[step.source] is None:
                return False
    return True


def _apart(step: Step) -> bool:
    """Whether no rank writes what another reads, in a step within one buffer."""
    sent: dict[int, set[Box]] = {}
    received: dict[int, set[Box]] = {}
    for m in step.messages:
        if m.sender == m.receiver:
            return False
        sent.setdefault(m.sender, set()).add(m.box)
        received.setdefault(m.receiver, set()).add(m.box)
    return all(
        intervals.is_empty(intervals.intersect(ours, theirs))
        for rank, boxes in sent.items()
        for ours in boxes
        for theirs in received.get(rank, ())
    )


def can_copy_in_out(
    plan: Plan, step: Step, lying: Sequence[Lying], of: Sequence[int], packet: int, least: int
) -> bool:
    """Whether a step goes by packets of so many bytes; the same on all ranks.

    Its groups are each on one node. Of a sum all operands that a rank receives are of one box.
    Runs of memory go between two ranks as messages, in one copy, from ``least`` bytes on.
    """
    if not _may_be_shared(step) or not step.messages or plan.itemsize > packet:
        return False
    if any(of[rank] != of[group[0]] for group in step.groups for rank in group):
        return False
    if step.reduction:
        return _operands_agree(step)
    if step.kind.spec.to_all and max(map(len, step.groups)) > 2:
        return True
    few = int(step.traffic.delivered.max(initial=0)) * plan.itemsize < least
    return few or any(
        not (
            lying[m.sender].contiguous(step.source, m.box)
            and lying[m.receiver].contiguous(step.target, m.box)
        )
        for m in step.messages
    )


def _operands_agree(step: Step) -> bool:
    boxes: dict[int, Box] = {}
    return all(boxes.setdefault(m.receiver, m.box) == m.box for m in step.messages)
