"""Memory that the driver and the first rank have in common, and arrays in it.

It consists of segments, which have the same numbers and sizes on both sides; a :class:`Place` is a
segment and an offset. Where both are on one host, a segment is one file without a name. Elsewhere
each side has memory of its own, and what is passed goes over the wire to the same place.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distspmd.runtime.engine.arrays import address

LEAST_SEGMENT = 2**28
"""Bytes of a segment at least; the system gives it memory page by page, as it is used."""
_ALIGNMENT = 64
_KEPT = 2**26
"""Bytes of a block from which on the system gets its memory back when it is free."""


class Place(NamedTuple):
    """Where an array lies."""

    segment: int
    offset: int


class Segment:
    """A part of the memory on one side."""

    def __init__(self, nbytes: int, file: int = -1) -> None:
        self.nbytes, self.file = nbytes, file
        self.map = mmap.mmap(file, nbytes)
        self.begin = int(np.frombuffer(self.map, np.uint8, 1).ctypes.data)

    def array(self, offset: int, shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
        """What lies there, as an array."""
        return np.ndarray(shape, dtype, self.map, offset)


class Memory:
    """The driver's side, which gives blocks out and takes them back.

    Args:
        shared: whether segments are files.
        told: is called with a new segment.
    """

    def __init__(self, shared: bool, told: Callable[[Segment], None]) -> None:
        self.segments: list[Segment] = []
        self._shared, self._told = shared, told
        self._end = 0
        self._free: dict[int, list[Place]] = {}
        self._lent: dict[int, tuple[Place, weakref.ref[Any]]] = {}
        """By the identity of an array of the caller, its place."""

    def allocate(self, nbytes: int) -> Place:
        """A block."""
        size = block_size(nbytes)
        free = self._free.get(size)
        if free:
            return free.pop()
        if not self.segments or self._end + size > self.segments[-1].nbytes:
            self._grow(size)
        place = Place(len(self.segments) - 1, self._end)
        self._end += size
        return place

    def free(self, place: Place, nbytes: int) -> None:
        """Take a block back."""
        size = block_size(nbytes)
        if size >= _KEPT and hasattr(mmap, "MADV_REMOVE") and self._shared:
            self.segments[place.segment].map.madvise(mmap.MADV_REMOVE, place.offset, size)
        self._free.setdefault(size, []).append(place)

    def array(self, place: Place, shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
        """What lies at a place."""
        return self.segments[place.segment].array(place.offset, shape, dtype)

    def lent(self, shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
        """A new array for the caller, whose block is free again when all views of it are gone."""
        count = 1
        for extent in shape:
            count *= extent
        nbytes = count * dtype.itemsize
        place = self.allocate(nbytes)
        found = self.array(place, shape, dtype)
        key = id(found)

        def gone(_: Any) -> None:
            del self._lent[key]
            self.free(place, nbytes)

        self._lent[key] = place, weakref.ref(found, gone)
        return found

    def find(self, array: NDArray[Any]) -> Place | None:
        """Where an array lies, if it is one of this memory."""
        known = self._lent.get(id(array))
        if known is not None:
            return known[0]
        at = address(array)
        for number, segment in enumerate(self.segments):
            offset = at - segment.begin
            if 0 <= offset < segment.nbytes:
                return Place(number, offset)
        return None

    def _grow(self, least: int) -> None:
        nbytes = max(LEAST_SEGMENT, -(-least // mmap.PAGESIZE) * mmap.PAGESIZE)
        file = -1
        if self._shared:
            file = os.memfd_create("distspmd")
            os.ftruncate(file, nbytes)
        made = Segment(nbytes, file)
        self.segments.append(made)
        self._end = 0
        self._told(made)


def block_size(nbytes: int) -> int:
    """Bytes of the block for so many: few sizes, so that blocks fit again; whole pages of many."""
    if nbytes <= mmap.PAGESIZE:
        return max(_ALIGNMENT, 1 << (nbytes - 1).bit_length()) if nbytes else _ALIGNMENT
    step = max(mmap.PAGESIZE, (1 << (nbytes - 1).bit_length()) // 16)
    return -(-nbytes // step) * step
