"""NumPy's functions on arrays that stay on the ranks: of elements, and reductions of all of them.

Each rank applies NumPy's own function to its tile. What needs more than tiles is refused with what
to write: a program, or the array in this process.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distspmd.driver.handle import Handle
from distspmd.errors import ArgumentError
from distspmd.layouts import intervals
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh

if TYPE_CHECKING:
    from distspmd.driver.serve import Server

_BROUGHT_HERE = {
    np.array_equal,
    np.allclose,
    np.array_repr,
    np.array_str,
    np.array2string,
    np.save,
    np.savetxt,
}
"""Functions that are asked for what is here: they get arrays of this process."""
_REDUCED = {
    np.sum: np.add,
    np.prod: np.multiply,
    np.min: np.minimum,
    np.max: np.maximum,
    np.all: np.logical_and,
    np.any: np.logical_or,
}


def apply_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Apply a function of elements to tiles; the result lies as the first array on the ranks does.

    Raises:
        ArgumentError: it is more than a function of elements, or shapes do not fit.
    """
    out = named.get("out", (None,))[0]
    if method != "__call__" or ufunc.signature or ufunc.nout != 1 or named.keys() - {"out"}:
        raise _refusal(f"np.{ufunc.__name__}" + (f".{method}" if method != "__call__" else ""))
    if out is not None and not isinstance(out, Handle):
        raise ArgumentError(
            f"np.{ufunc.__name__}: out= is an array of this process, but an operand lies on the "
            f"ranks. Write out[...] = np.{ufunc.__name__}(...).numpy()."
        )
    first = next(each for each in (*inputs, out) if isinstance(each, Handle))
    shape = np.broadcast_shapes(*map(_shape, inputs))
    if shape != first.shape:
        raise ArgumentError(
            f"np.{ufunc.__name__}: the result has the shape {list(shape)}, but the array on the "
            f"ranks {list(first.shape)}. Write it in a function that @distspmd.program decorates."
        )
    ranks = first.ranks
    operands: list[Any] = []
    kept = []
    with ranks.lock:
        for each in inputs:
            if isinstance(each, Handle) or np.ndim(each):
                lies = _as_first(each, first)
                kept.append(lies)
                operands.append(lies.number)
            else:
                operands.append((each,))
        number = ranks.new_number()
        dtype = ranks.together(apply_on_tiles, ufunc, operands, number, first.number)
        made = Handle(ranks, number, shape, dtype, first.layout)
    if out is None:
        return made
    if (out.shape, out.dtype) != (shape, dtype):
        raise ArgumentError(
            f"np.{ufunc.__name__}: the result is {dtype}{list(shape)}, and does not fit into "
            f"{out.dtype}{list(out.shape)}."
        )
    out.take(made)
    return out


def _shape(value: Any) -> tuple[int, ...]:
    return value.shape if isinstance(value, Handle) else np.shape(value)


def _as_first(value: Any, first: Handle) -> Handle:
    """An operand in the layout of the first one."""
    if not isinstance(value, Handle):
        whole = np.ascontiguousarray(np.broadcast_to(value, first.shape))
        return first.ranks.place(whole, first.layout)
    if value.layout == first.layout:
        return value
    from distspmd.driver.redistribution import redistribute

    found: Handle = redistribute(
        first.ranks, value, value.layout, first.layout, None, (None, None, None, None)
    )
    return found


def apply_function(function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Apply one of NumPy's functions.

    Raises:
        ArgumentError: it needs more than tiles.
    """
    if function in (np.shape, np.ndim, np.size) and not named and len(args) == 1:
        return getattr(args[0], function.__name__)
    if function in _BROUGHT_HERE:
        here = [each.numpy() if isinstance(each, Handle) else each for each in args]
        return function(*here, **named)
    ufunc = np.add if function is np.mean else _REDUCED.get(function)
    if ufunc is None or named or len(args) != 1:
        raise _refusal(f"np.{function.__name__}")
    handle: Handle = args[0]
    apart = _once_each(handle)
    total = handle.ranks.together(reduce_tiles, ufunc, apart.number, handle.dtype)
    if function is np.mean:
        return total / max(1, handle.size)
    return total


def _refusal(what: str) -> ArgumentError:
    return ArgumentError(
        f"{what} of an array that stays on the ranks needs more than each rank's tile. Write it in "
        "a function that @distspmd.program decorates, which takes the array where it lies. Or "
        "bring the array here, with np.asarray(handle)."
    )


def _once_each(handle: Handle) -> Handle:
    """The array in a layout in which no rank has what another one has."""
    boxes = handle.layout.boxes
    if sum(map(intervals.volume, boxes)) == math.prod(handle.layout.extents):
        return handle
    extents, ranks = handle.layout.extents, handle.ranks.Get_size()
    step = -(-extents[0] // ranks)
    ends = [min(extents[0], n * step) for n in range(ranks + 1)]
    rest = intervals.whole(extents[1:])
    rows = [(rows, *rest) for rows in itertools.pairwise(ends)]
    layout = Layout.of_boxes(Mesh.of({"rows": ranks}), extents, rows)
    from distspmd.driver.redistribution import redistribute

    found: Handle = redistribute(
        handle.ranks, handle, handle.layout, layout, None, (None, None, None, None)
    )
    return found


# -- on the ranks -------------------------------------------------------------------------------


def apply_on_tiles(
    server: Server, ufunc: Any, operands: Sequence[Any], number: int, like: int
) -> np.dtype[Any]:
    """Apply a function of elements to the tiles of this rank; the type of the result."""
    tiles = [each[0] if isinstance(each, tuple) else server.tiles.get(each) for each in operands]
    found: np.dtype[Any] | None = None
    if all(tile is not None for tile in tiles) and like in server.tiles:
        made = np.asarray(ufunc(*tiles))
        server.tiles[number], found = made, made.dtype
    return next(dtype for dtype in server.comm.allgather(found) if dtype is not None)


def reduce_tiles(server: Server, ufunc: Any, number: int, dtype: np.dtype[Any]) -> Any:
    """The reduction of all elements."""
    tile = server.tiles.get(number)
    own = ufunc.reduce(tile, axis=None) if tile is not None and tile.size else None
    parts = [part for part in server.comm.allgather(own) if part is not None]
    return ufunc.reduce(np.array(parts)) if parts else ufunc.reduce(np.zeros(0, dtype))
