"""What the engine takes of the arrays of NumPy: as they are, as a copy, or not at all.

The engine knows strides that are positive multiples of an element. NumPy has also broadcast arrays,
of which one element stands for many, reversed ones, and such at any address.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.layouts.types import find_dtype

Tile = NDArray[Any]


@dataclass(frozen=True)
class Unusable:
    """Stands for a tile that cannot be used.

    Attributes:
        why: what is wrong with it.
    """

    why: str


def is_plain(tile: Any) -> bool:
    """Whether it is an array whose elements are all that it has."""
    return isinstance(tile, np.ndarray) and not isinstance(tile, np.ma.MaskedArray)


def type_of(dtype: Any, tiles: Sequence[Any], rank: int) -> tuple[np.dtype[Any], str]:
    """The type of an array, by what a rank says or passes; or what is wrong with it."""
    unusable = next((tile for tile in tiles if isinstance(tile, Unusable)), None)
    if unusable is not None:
        return np.dtype("V1"), f"a tile of rank {rank} cannot be used: {unusable.why}."
    given = [tile.dtype for tile in tiles if isinstance(tile, np.ndarray)]
    if dtype is None and not given:
        missing = f"rank {rank} has no tile that tells the type of the array; pass dtype=."
        return np.dtype("V1"), missing
    try:
        return (given[0] if dtype is None else find_dtype(dtype)), ""
    except (TypeError, ValueError) as error:
        return np.dtype("V1"), f"dtype={dtype!r} is no type of NumPy: {error}."


def fault_of_type(dtype: np.dtype[Any], reduced: bool) -> str:
    """Why elements of a type cannot be moved, or reduced; empty where they can."""
    if dtype.hasobject:
        return f"an array of {dtype} holds objects of one process; it cannot be moved."
    if dtype.itemsize == 0:
        return f"an array of {dtype} has elements without a byte; nothing can be moved."
    if reduced and not dtype.isnative:
        return (
            f"values of {dtype} cannot be reduced, for their bytes are in another order than "
            "this machine's. Pass tile.astype(tile.dtype.newbyteorder('='))."
        )
    return ""


def aligned(tile: Tile | None) -> Tile | None:
    """The tile, or a copy of one that does not go ahead from element to element of C++."""
    if tile is None or tile.size == 0:
        return tile
    steps = [s for s, n in zip(tile.strides, tile.shape, strict=True) if n > 1]
    if tile.flags.aligned and all(s > 0 and s % tile.itemsize == 0 for s in steps):
        return tile
    return tile.copy()


def address(array: Tile) -> int:
    """Where the first element of an array lies in memory, found faster than by ``ctypes.data``."""
    if array.flags.carray:  # contiguous, aligned and writeable, as ctypes wants a buffer
        try:
            return ctypes.addressof(_over(array))
        except ValueError:  # elements that Python has no name for, such as dates
            pass
    return int(array.ctypes.data)


_over: Callable[[Any], ctypes.Array[ctypes.c_char]] = (ctypes.c_char * 0).from_buffer


def span(tile: Tile | None) -> int:
    """Bytes from the first element to behind the last of an array that is :func:`aligned`."""
    if tile is None or tile.size == 0:
        return 0
    steps = zip(tile.strides, tile.shape, strict=True)
    return int(sum(s * (n - 1) for s, n in steps if n > 1)) + tile.itemsize


def overlaps_itself(tile: Tile) -> bool:
    """Whether two elements of an array may lie in one place."""
    if tile.size == 0:
        return False
    end = tile.itemsize
    steps = [(s, n) for s, n in zip(tile.strides, tile.shape, strict=True) if n > 1]
    for stride, extent in sorted(steps):
        if stride < end:
            return True
        end += stride * (extent - 1)
    return False


def element_strides(tile: Tile) -> tuple[int, ...]:
    """Strides in elements of an array that is :func:`aligned`, all of them positive.

    That of a dimension of one element may be any number in NumPy, and is here as if contiguous.
    """
    found: list[int] = []
    after = 1  # the stride of a contiguous array
    for extent, stride in zip(reversed(tile.shape), reversed(tile.strides), strict=True):
        found.append(stride // tile.itemsize if extent > 1 else after)
        after = max(1, found[-1] * extent)
    return tuple(reversed(found))
