"""Parts that are put in, taken apart and looked at through windows, and where triangles are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import images
from distspmd.frontend.from_numpy.arrays.shapes import normal_axis, size_of
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.arrays.values import axis as axis_symbol
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import attribute, function
from distspmd.frontend.from_numpy.numpy.written_out import written_out
from distspmd.frontend.tensor_ir.whole_numbers import Whole, add, multiply, subtract

# -- parts that are put in ------------------------------------------------------------------------


@written_out(np.insert)
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    if axis is None:
        arr = np.ravel(arr)
        axis = 0
    lines = np.moveaxis(arr, axis, 0)
    n = lines.shape[0]
    new = np.asarray(values).astype(arr.dtype)
    if not isinstance(obj, slice) and np.ndim(obj) == 0:
        place = obj + n if obj < 0 else obj
        while np.ndim(new) < lines.ndim:
            new = new[np.newaxis]
        count = new.shape[0]
        wide = np.broadcast_to(new, (count, *lines.shape[1:]))
        return np.moveaxis(np.concatenate((lines[:place], wide, lines[place:])), 0, axis)
    where = np.arange(n)[obj] if isinstance(obj, slice) else np.ravel(obj)
    if where.dtype == np.bool_:
        where = np.flatnonzero(where)
    where = np.where(where < 0, where + n, where)
    count = where.shape[0]
    shape = list(arr.shape)
    shape[axis] = count
    wide = np.moveaxis(np.broadcast_to(new, tuple(shape)), axis, 0)
    order = np.argsort(where, kind="stable")
    found = np.zeros((n + count, *lines.shape[1:]), arr.dtype)
    found[where[order] + np.arange(count)] = wide[order]
    before = np.searchsorted(where[order], np.arange(n), side="right")
    found[np.arange(n) + before] = lines
    return np.moveaxis(found, 0, axis)


@written_out(np.put, method="put")
def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    places = np.ravel(ind)
    count = places.shape[0]
    values = np.ravel(v)[np.arange(count) % np.size(v)].astype(a.dtype)
    if mode == "wrap":
        places = places % a.size
    if mode == "clip":
        places = np.clip(places, 0, a.size - 1)
    if mode == "raise":
        places = np.where(places < 0, places + a.size, places)
    a[np.unravel_index(places, a.shape)] = values


# -- parts that are taken apart -------------------------------------------------------------------


@written_out(np.unstack)
def _unstack(x: Any, *, axis: int = 0) -> Any:
    parts = np.moveaxis(x, axis, 0)
    return tuple([parts[k] for k in range(parts.shape[0])])


@written_out(np.packbits)
def _packbits(a: Any, axis: Any = None, bitorder: str = "big") -> Any:
    if axis is None:
        a = np.ravel(a)
        axis = 0
    lines = np.moveaxis(a != 0, axis, -1)
    n = lines.shape[-1]
    missing = -n % 8
    if missing > 0:
        none = np.zeros((*lines.shape[:-1], missing), dtype=bool)
        lines = np.concatenate((lines, none), axis=-1)
    bits = lines.reshape((*lines.shape[:-1], (n + missing) // 8, 8))
    weights = 2 ** np.arange(8)
    if bitorder == "big":
        weights = weights[::-1]
    return np.moveaxis((bits * weights).sum(axis=-1).astype(np.uint8), -1, axis)


def _unique(name: str, *options: str) -> None:
    """Add one of the functions that the standard of arrays has in place of ``np.unique``."""
    called = getattr(np, name)

    @function(called)
    def handler(run: Context, x: object) -> Any:
        given = {f"return_{option}": True for option in options}
        found = list(run.call(np.unique, [x], given))
        if "inverse" in options:
            place = 1 + options.index("inverse")
            shape = run.tracer.tensor(x).shape
            found[place] = run.call(np.reshape, [found[place], tuple(shape)], {})
        result: Any = type(called(np.zeros(1)))
        return result(*found)


_unique("unique_all", "index", "inverse", "counts")
_unique("unique_counts", "counts")
_unique("unique_inverse", "inverse")


# -- places of parts ------------------------------------------------------------------------------


@written_out(np.tril_indices)
def _tril_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    return np.nonzero(np.tri(n, n if m is None else m, k, dtype=bool))


@written_out(np.triu_indices)
def _triu_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    return np.nonzero(~np.tri(n, n if m is None else m, k - 1, dtype=bool))


@written_out(np.mask_indices)
def _mask_indices(n: Any, mask_func: Any, k: Any = 0) -> Any:
    return np.nonzero(mask_func(np.ones((n, n), int), k))


@written_out(np.diag_indices)
def _diag_indices(n: Any, ndim: int = 2) -> Any:
    return (np.arange(n),) * ndim


# -- windows --------------------------------------------------------------------------------------


@function(np.lib.stride_tricks.sliding_window_view)
def _sliding_windows(
    run: Context,
    x: object,
    window_shape: object,
    axis: object = None,
    writeable: bool = False,
    **_: object,
) -> Tensor:
    tracer = run.tracer
    if writeable:
        tracer.refuse("windows that are written to; an element stands in several of them")
    tensor = tracer.tensor(x)
    extents = window_shape if isinstance(window_shape, tuple | list) else (window_shape,)
    extents = [tracer.as_whole(n, "the extent of a window") for n in extents]
    given = range(tensor.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [normal_axis(tracer, d, tensor.ndim) for d in given]
    if len(axes) != len(extents):
        tracer.refuse("windows with another number of extents than of axes")
    shape = list(tensor.shape)
    places: list[Whole] = [axis_symbol(d) for d in range(tensor.ndim)]
    for k, (d, n) in enumerate(zip(axes, extents, strict=True)):
        shape[d] = add(subtract(shape[d], n), 1)
        if isinstance(shape[d], int) and shape[d] <= 0:
            tracer.refuse("ValueError: window shape cannot be larger than input array shape")
        places[d] = add(places[d], axis_symbol(tensor.ndim + k))
    return images.moved(tracer.stored(tensor), [*shape, *extents], places)


@attribute("nbytes")
def _nbytes(run: Context, base: Tensor) -> Whole:
    return multiply(size_of(base.shape), base.dtype.itemsize)


@attribute("strides")
def _strides(run: Context, base: Tensor) -> tuple[int, ...]:
    """Those of an array that lies in memory as NumPy makes it, and of views of it."""
    extents, places = base.shape, [axis_symbol(d) for d in range(base.ndim)]
    if isinstance(base, View):
        extents, places = base.container.shape, list(base.place)
    if not all(isinstance(n, int) for n in extents):
        run.tracer.refuse("the strides of an array whose shape is not known")
    offset: Any = sympy.Integer(0)
    for d, place in enumerate(places):
        offset += place * size_of(extents[d + 1 :]) * base.dtype.itemsize
    found = [sympy.expand(offset).coeff(axis_symbol(d)) for d in range(base.ndim)]
    if not all(step.is_Integer for step in found):
        run.tracer.refuse("the strides of an array whose elements lie at places of no one step")
    return tuple(map(int, found))


@function(np.lib.stride_tricks.as_strided)
def _as_strided(
    run: Context,
    x: object,
    shape: object = None,
    strides: object = None,
    writeable: bool = False,
    **_: object,
) -> Tensor:
    """Windows and repetitions: each step is so many steps along one dimension, or none."""
    tracer = run.tracer
    tensor = tracer.stored(tracer.tensor(x))
    own = _strides(run, tensor)
    shape = tensor.shape if shape is None else shape
    extents = [tracer.as_whole(n) for n in (shape if isinstance(shape, tuple | list) else (shape,))]
    steps = own if strides is None else strides if isinstance(strides, tuple | list) else (strides,)
    if len(steps) != len(extents) or not all(isinstance(n, int) for n in (*steps, *extents)):
        tracer.refuse("as_strided of steps, or of a shape, that are not known")
    places: list[Whole] = [0] * tensor.ndim
    last = [0] * tensor.ndim
    for k, (n, step) in enumerate(zip(extents, steps, strict=True)):
        d = _dimension_of(own, step)
        if step and (d is None or step < 0):
            tracer.refuse("as_strided by steps that go along no dimension; use reshape and slices")
        if d is not None and step:
            factor = step // own[d]
            places[d] = add(places[d], multiply(factor, axis_symbol(k)))
            last[d] += factor * max(int(n) - 1, 0)
    for d, end in enumerate(last):
        if end >= int(tensor.shape[d]):
            tracer.refuse(
                f"as_strided goes to the element {end} of the dimension {d}, which has "
                f"{tensor.shape[d]}: other dimensions follow in memory, but not in a program"
            )
    return images.moved(tensor, extents, places)


def _dimension_of(own: Sequence[int], step: int) -> int | None:
    """The outermost dimension of which a step is so many."""
    return next((d for d, size in enumerate(own) if size and step and step % size == 0), None)
