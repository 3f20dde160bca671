"""Joins and parts: concatenation, splits, repetition, rolls."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.checks import end_if
from distspmd.frontend.from_numpy.arrays.lengths import check_lengths
from distspmd.frontend.from_numpy.arrays.shapes import (
    broadcast_to,
    expand_dims,
    normal_axis,
    reshape,
    size_of,
)
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View, make_view
from distspmd.frontend.from_numpy.arrays.values import axis as axis_symbol
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.orders import atleast_1d, atleast_2d
from distspmd.frontend.from_numpy.numpy.reductions import finished
from distspmd.frontend.from_numpy.numpy.registry import FUNCTIONS, function
from distspmd.frontend.from_numpy.numpy.unknown_lengths import length_of_run
from distspmd.frontend.tensor_ir.whole_numbers import (
    add,
    floor_divide,
    multiply,
    remainder,
    subtract,
)

# -- joins ----------------------------------------------------------------------------------------

_DO_NOT_MATCH = "all the input array dimensions except for the concatenation axis must match"


@function(np.concatenate, np.concat)
def concatenate(
    run: Context, arrays: Any, axis: object = 0, out: object = None, dtype: Any = None, **_: object
) -> Any:
    """``np.concatenate``: each array is written to its part of a container."""
    tracer = run.tracer
    tensors = [tracer.tensor(a) for a in run.unpacked(arrays, None)]
    if axis is None:
        tensors = [reshape(tracer, t, [-1]) for t in tensors]
        axis = 0
    if any(t.ndim == 0 for t in tensors):
        tracer.refuse("zero-dimensional arrays cannot be concatenated")
    if any(t.ndim != tensors[0].ndim for t in tensors):
        tracer.refuse(_DO_NOT_MATCH)
    d = normal_axis(tracer, axis, tensors[0].ndim)
    for tensor in tensors[1:]:
        for k, (n, first) in enumerate(zip(tensor.shape, tensors[0].shape, strict=True)):
            if k != d and n != first and isinstance(n, int) and isinstance(first, int):
                tracer.refuse(f"{_DO_NOT_MATCH}: {first} and {n} elements in dimension {k}")
            if k != d:
                check_lengths(tracer, first, n)
    kind = np.dtype(dtype) if dtype is not None else np.result_type(*(t.dtype for t in tensors))
    shape = list(tensors[0].shape)
    begins: list[Any] = []
    total: Any = 0
    for tensor in tensors:
        begins.append(total)
        total = add(total, tensor.shape[d])
    shape[d] = total
    whole = tracer.empty(tracer.target or "joined", shape, kind)
    container = whole.container
    for begin, tensor in zip(begins, tensors, strict=True):
        places = [
            add(begin, axis_symbol(k)) if k == d else axis_symbol(k) for k in range(len(shape))
        ]
        part = make_view(container, tensor.shape, places)
        tracer.write(part, tensor)
    return finished(run, whole, out)


@function(np.stack)
def _stack(run: Context, arrays: object, axis: object = 0, **options: object) -> Any:
    tensors = [run.tracer.tensor(a) for a in run.unpacked(arrays, None)]
    d = normal_axis(run.tracer, axis, tensors[0].ndim + 1)
    wide = [expand_dims(run.tracer, t, [d]) for t in tensors]
    return concatenate(run, wide, d, **options)


@function(np.vstack)
def _vstack(run: Context, arrays: object, **options: object) -> Any:
    tensors = [atleast_2d(run, a) for a in run.unpacked(arrays, None)]
    return concatenate(run, tensors, 0, **options)


@function(np.hstack)
def _hstack(run: Context, arrays: object, **options: object) -> Any:
    tensors = [atleast_1d(run, a) for a in run.unpacked(arrays, None)]
    return concatenate(run, tensors, 0 if tensors[0].ndim == 1 else 1, **options)


@function(np.column_stack)
def _column_stack(run: Context, arrays: object) -> Any:
    tensors = [run.tracer.tensor(a) for a in run.unpacked(arrays, None)]
    tensors = [expand_dims(run.tracer, t, [1]) if t.ndim == 1 else t for t in tensors]
    return concatenate(run, tensors, 1)


@function(np.dstack)
def _dstack(run: Context, arrays: object) -> Any:
    tensors = []
    for tensor in map(run.tracer.tensor, run.unpacked(arrays, None)):
        wide = tensor if tensor.ndim > 1 else reshape(run.tracer, tensor, [1, -1])
        tensors.append(wide if wide.ndim > 2 else expand_dims(run.tracer, wide, [2]))
    return concatenate(run, tensors, 2)


@function(np.append)
def _append(run: Context, value: object, values: object, axis: object = None) -> Any:
    tracer = run.tracer
    if axis is None:
        return concatenate(
            run, [reshape(tracer, tracer.tensor(v), [-1]) for v in (value, values)], 0
        )
    return concatenate(run, [value, values], axis)


@function(np.block)
def _block(run: Context, blocks: object) -> Any:
    tracer = run.tracer

    def depth_of(part: object) -> int:
        return 1 + max(map(depth_of, part)) if isinstance(part, list) and part else 0

    def leaves(part: object) -> list[Tensor]:
        if isinstance(part, list):
            return [leaf for inner in part for leaf in leaves(inner)]
        return [tracer.tensor(part)]

    depth = depth_of(blocks)
    rank = max(depth, *(leaf.ndim for leaf in leaves(blocks)))

    def joined(part: object, level: int) -> Tensor:
        if isinstance(part, list):
            found: Tensor = concatenate(run, [joined(p, level - 1) for p in part], -level)
            return found
        tensor = tracer.tensor(part)
        return expand_dims(tracer, tensor, list(range(rank - tensor.ndim)))

    return joined(blocks, depth)


@function(np.split, np.array_split)
def _split(run: Context, value: object, sections: object, axis: object = 0) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    d = normal_axis(tracer, axis, tensor.ndim)
    length = tensor.shape[d]
    if isinstance(sections, int):
        if not isinstance(length, int):
            size = floor_divide(length, sections)
            ends = [multiply(size, n) for n in range(1, sections)]
        else:
            extra, size = length % sections, length // sections
            sizes = [size + (n < extra) for n in range(sections)]
            ends = [sum(sizes[:n]) for n in range(1, sections)]
    else:
        ends = [tracer.as_whole(e) for e in run.unpacked(sections, None)]
    bounds = [0, *ends, length]
    lead = (slice(None),) * d
    return [indexing.read(tracer, tensor, (*lead, slice(a, b))) for a, b in pairwise(bounds)]


function(np.vsplit)(lambda run, value, sections: _split(run, value, sections, 0))
function(np.hsplit)(
    lambda run, value, sections: _split(
        run, value, sections, min(run.tracer.tensor(value).ndim, 2) - 1
    )
)


@function(np.roll)
def _roll(run: Context, value: object, shift: object, axis: object = None) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if axis is None:
        flat = _roll(run, reshape(tracer, tensor, [-1]), shift, 0)
        return reshape(tracer, flat, tensor.shape)
    axes = list(axis) if isinstance(axis, tuple | list) else [axis]
    several = isinstance(shift, tuple | list) or bool(getattr(shift, "ndim", 0))
    shifts = list(run.unpacked(shift, None)) if several else [shift] * len(axes)
    if len(shifts) == 1:
        shifts *= len(axes)
    elif len(axes) == 1:
        axes *= len(shifts)
    for d, by in zip(axes, shifts, strict=True):
        tensor = _rolled(run, tensor, tracer.as_whole(by), normal_axis(tracer, d, tensor.ndim))
    return tensor


def _rolled(run: Context, tensor: Tensor, by: Any, d: int) -> Tensor:
    tracer = run.tracer
    length = tensor.shape[d]
    if isinstance(by, int) and isinstance(length, int):
        by = by % length if length else 0
        if by == 0:
            return Tensor(tensor.shape, tensor.dtype, tensor.element)
    settled = tracer.settled(tensor)

    def element(index: tuple[Any, ...]) -> Any:
        place = remainder(subtract(index[d], by), length)
        return settled.element((*index[:d], place, *index[d + 1 :]))

    name = f"roll_{tensor.container.name}" if isinstance(tensor, View) else "rolled"
    rolled = Tensor(settled.shape, settled.dtype, element)
    found: Tensor = tracer.stored_anew(rolled, tracer.target or name)
    return found


@function(np.tile)
def _tile(run: Context, value: object, reps: object) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    counts = [tracer.as_whole(r) for r in (reps if isinstance(reps, tuple | list) else (reps,))]
    rank = max(len(counts), tensor.ndim)
    counts = [1] * (rank - len(counts)) + counts
    tensor = reshape(tracer, tensor, [1] * (rank - tensor.ndim) + list(tensor.shape))
    wide = expand_dims(tracer, tensor, [2 * d for d in range(rank)])
    shape = [x for c, n in zip(counts, tensor.shape, strict=True) for x in (c, n)]
    whole = tracer.stored_anew(broadcast_to(tracer, wide, shape))
    return reshape(
        tracer, whole, [multiply(c, n) for c, n in zip(counts, tensor.shape, strict=True)]
    )


def _places_of_repeats(run: Context, repeats: Tensor, length: object) -> Tensor:
    """Where each element of a result comes from that has elements as often as the run decides."""
    tracer = run.tracer
    counts = tracer.stored(broadcast_to(tracer, converted(tracer, repeats, INT64), [length]))
    negative = run.call(np.any, [combine(tracer, np.less, [counts, 0])], {})
    end_if(run, negative, "ValueError", "repeats may not contain negative values.")
    ends = tracer.stored(run.call(np.cumsum, [counts], {}))
    instead = (
        "write x[np.searchsorted(np.cumsum(counts), np.arange(n), side='right')] with a length n "
        "that is known"
    )
    n = length_of_run(run, run.call(np.sum, [counts], {}), "np.repeat(x, counts)", instead)
    found = run.call(np.searchsorted, [ends, run.call(np.arange, [n], {})], {"side": "right"})
    places = combine(tracer, np.minimum, [found, subtract(length, 1)])
    places.is_index = True
    return places


@function(np.repeat, method="repeat")
def _repeat(run: Context, value: object, repeats: object, axis: object = None) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if axis is None:
        tensor, axis = reshape(tracer, tensor, [-1]), 0
    d = normal_axis(tracer, axis, tensor.ndim)
    if isinstance(repeats, list | tuple | np.ndarray):
        counts = [int(r) for r in repeats]
        places = np.repeat(np.arange(len(counts)), counts)
        return indexing.read(tracer, tensor, (*(slice(None),) * d, places))
    if isinstance(repeats, Tensor) and repeats.ndim:
        decided = _places_of_repeats(run, repeats, tensor.shape[d])
        return indexing.read(tracer, tensor, (*(slice(None),) * d, decided))
    count = tracer.as_whole(repeats, "the number of repeats")
    wide = expand_dims(tracer, tensor, [d + 1])
    shape = list(wide.shape)
    shape[d + 1] = count
    whole = tracer.stored_anew(broadcast_to(tracer, wide, shape))
    out = list(tensor.shape)
    out[d] = multiply(out[d], count)
    return reshape(tracer, whole, out)


@function(np.take, method="take")
def _take(
    run: Context,
    value: object,
    indices: object,
    axis: object = None,
    *,
    mode: str = "raise",
    **_: object,
) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if axis is None:
        tensor, axis = tracer.unmerged(reshape(tracer, tensor, [-1])), 0
    d = normal_axis(tracer, axis, tensor.ndim)
    if mode == "clip":
        indices = run.call(np.clip, [indices, 0, subtract(tensor.shape[d], 1)], {})
    elif mode == "wrap":
        indices = run.call(np.remainder, [indices, tensor.shape[d]], {})
    elif mode != "raise":
        tracer.refuse(f"the mode {mode!r} of take; NumPy has raise, wrap and clip")
    return indexing.read(tracer, tensor, (*(slice(None),) * d, indices))


@function(np.meshgrid)
def _meshgrid(
    run: Context, *values: object, indexing: str = "xy", sparse: bool = False, **_: object
) -> Any:
    tracer = run.tracer
    tensors = [tracer.tensor(v) for v in values]
    rank = len(tensors)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[0], order[1] = 1, 0
    shape: list[Any] = [1] * rank
    for d, tensor in zip(order, tensors, strict=True):
        shape[d] = size_of(tensor.shape)
    found = []
    for d, tensor in zip(order, tensors, strict=True):
        wide = reshape(tracer, tensor, [-1 if k == d else 1 for k in range(rank)])
        found.append(wide if sparse else tracer.stored_anew(broadcast_to(tracer, wide, shape)))
    return found


# -- np.r_ and np.c_ ------------------------------------------------------------------------------


def _pieces(run: Context, items: object) -> list[Tensor]:
    """What stands in the brackets, as arrays."""
    found = []
    for item in items if isinstance(items, tuple) else (items,):
        if isinstance(item, str):
            run.tracer.refuse(f"the directive {item!r} in np.r_ or np.c_; use np.concatenate")
        if not isinstance(item, slice):
            found.append(atleast_1d(run, item))
        elif isinstance(item.step, complex):
            ends = (item.start or 0, item.stop, int(abs(item.step)))
            found.append(run.call(np.linspace, ends, {}))
        else:
            step = 1 if item.step is None else item.step
            found.append(run.call(np.arange, (item.start or 0, item.stop, step), {}))
    return found


def _rows(run: Context, base: object, items: object) -> Any:
    return concatenate(run, _pieces(run, items), 0)


def _columns(run: Context, base: object, items: object) -> Any:
    wide = [expand_dims(run.tracer, t, [1]) if t.ndim == 1 else t for t in _pieces(run, items)]
    return concatenate(run, wide, 1)


FUNCTIONS[("subscript", type(np.r_))] = _rows
FUNCTIONS[("subscript", type(np.c_))] = _columns
