"""Functions that arrange elements: shapes, orders, joins, parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, apply
from distspmd.frontend.from_numpy import indexing
from distspmd.frontend.from_numpy.arithmetic import (
    apply_imag,
    apply_real,
    choose,
    combine,
    converted,
)
from distspmd.frontend.from_numpy.functions.creation import dtype_of, shape_of
from distspmd.frontend.from_numpy.functions.reductions import finished
from distspmd.frontend.from_numpy.functions.registry import METHODS, attribute, function
from distspmd.frontend.from_numpy.shapes import (
    broadcast_to,
    expand_dims,
    flip,
    normal_axis,
    reshape,
    size_of,
    squeeze,
    transpose,
)
from distspmd.frontend.from_numpy.tracer import is_one
from distspmd.frontend.from_numpy.values import (
    INT64,
    Tensor,
    View,
    index_expression,
    make_view,
    number,
    view_of,
)
from distspmd.frontend.from_numpy.values import (
    axis as axis_symbol,
)
from distspmd.frontend.tensor_ir.statements import Index
from distspmd.frontend.tensor_ir.whole_numbers import (
    add,
    floor_divide,
    multiply,
    subtract,
)


@attribute("shape")
def _shape(run: Any, base: Tensor) -> Any:
    return tuple(base.shape)


@attribute("ndim")
def _ndim(run: Any, base: Tensor) -> Any:
    return base.ndim


@attribute("size")
def _size(run: Any, base: Tensor) -> Any:
    if base.mask is not None:
        return run.call(len, [base], {})
    return size_of(base.shape)


@attribute("dtype")
def _dtype(run: Any, base: Tensor) -> Any:
    return base.dtype


@attribute("itemsize")
def _itemsize(run: Any, base: Tensor) -> Any:
    return base.dtype.itemsize


@attribute("T")
def _t(run: Any, base: Tensor) -> Any:
    return transpose(run.tracer, base)


@attribute("mT")
def _mt(run: Any, base: Tensor) -> Any:
    return _swapaxes(run, base, -1, -2)


@attribute("flat")
def _flat(run: Any, base: Tensor) -> Any:
    return reshape(run.tracer, base, [-1])


@attribute("real")
def _real_part(run: Any, base: Tensor) -> Any:
    return apply_real(base)


@attribute("imag")
def _imag_part(run: Any, base: Tensor) -> Any:
    return apply_imag(base)


@function(np.real)
def _real(run: Any, value: Any) -> Any:
    return apply_real(run.tracer.tensor(value))


@function(np.imag)
def _imag(run: Any, value: Any) -> Any:
    return apply_imag(run.tracer.tensor(value))


@function(np.angle)
def _angle(run: Any, value: Any, deg: bool = False) -> Any:
    tensor = run.tracer.tensor(value)
    found = combine(run.tracer, np.arctan2, [apply_imag(tensor), apply_real(tensor)])
    return combine(run.tracer, np.degrees, [found]) if deg else found


@function(np.shape)
def _np_shape(run: Any, value: Any) -> Any:
    return tuple(run.tracer.tensor(value).shape)


@function(np.ndim)
def _np_ndim(run: Any, value: Any) -> Any:
    return run.tracer.tensor(value).ndim


@function(np.size)
def _np_size(run: Any, value: Any, axis: Any = None) -> Any:
    tensor = run.tracer.tensor(value)
    return size_of(tensor.shape) if axis is None else tensor.shape[axis]


def _given(shape: Sequence[Any]) -> Any:
    return shape[0] if len(shape) == 1 else tuple(shape)


@function(np.reshape)
def _reshape(run: Any, value: Any, shape: Any = None, order: Any = "C", **options: Any) -> Any:
    shape = options.get("newshape", shape)
    tensor = run.tracer.tensor(value)
    if order == "F":
        flipped = transpose(run.tracer, tensor)
        found = reshape(run.tracer, flipped, shape_of(run, shape)[::-1])
        return transpose(run.tracer, found)
    return reshape(run.tracer, tensor, shape_of(run, shape))


def _method_reshape(run: Any, base: Any, *shape: Any, order: Any = "C", **_: Any) -> Any:
    return _reshape(run, base, _given(shape), order)


METHODS["reshape"] = _method_reshape


@function(np.ravel, method="ravel")
def _ravel(run: Any, value: Any, order: Any = "C") -> Any:
    return _reshape(run, value, -1, order)


def _flatten(run: Any, base: Any, order: Any = "C") -> Any:
    found = _reshape(run, base, -1, order)
    return run.tracer.stored_anew(run.tracer.unmerged(found))


METHODS["flatten"] = _flatten


@function(np.transpose, np.permute_dims)
def _transpose(run: Any, value: Any, axes: Any = None) -> Any:
    return transpose(run.tracer, run.tracer.tensor(value), axes)


def _method_transpose(run: Any, base: Any, *axes: Any) -> Any:
    return transpose(
        run.tracer,
        base,
        None
        if not axes or axes == (None,)
        else _given(axes)
        if len(axes) == 1 and not isinstance(axes[0], int)
        else axes,
    )


METHODS["transpose"] = _method_transpose


@function(np.swapaxes, method="swapaxes")
def _swapaxes(run: Any, value: Any, axis1: Any, axis2: Any) -> Any:
    tensor = run.tracer.tensor(value)
    one, other = (normal_axis(run.tracer, a, tensor.ndim) for a in (axis1, axis2))
    order = list(range(tensor.ndim))
    order[one], order[other] = order[other], order[one]
    return transpose(run.tracer, tensor, order)


@function(np.moveaxis)
def _moveaxis(run: Any, value: Any, source: Any, destination: Any) -> Any:
    tensor = run.tracer.tensor(value)
    own = [source] if isinstance(source, int) else list(source)
    its = [destination] if isinstance(destination, int) else list(destination)
    own = [normal_axis(run.tracer, a, tensor.ndim) for a in own]
    its = [normal_axis(run.tracer, a, tensor.ndim) for a in its]
    order = [d for d in range(tensor.ndim) if d not in own]
    for place, d in sorted(zip(its, own, strict=True)):
        order.insert(place, d)
    return transpose(run.tracer, tensor, order)


@function(np.rollaxis)
def _rollaxis(run: Any, value: Any, axis: Any, start: Any = 0) -> Any:
    tensor = run.tracer.tensor(value)
    own = normal_axis(run.tracer, axis, tensor.ndim)
    start = start if start >= 0 else start + tensor.ndim
    return _moveaxis(run, tensor, own, start - 1 if own < start else start)


@function(np.expand_dims)
def _expand(run: Any, value: Any, axis: Any) -> Any:
    axes = [axis] if isinstance(axis, int) else list(axis)
    return expand_dims(run.tracer, run.tracer.tensor(value), axes)


@function(np.squeeze, method="squeeze")
def _squeeze(run: Any, value: Any, axis: Any = None) -> Any:
    axes = None if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return squeeze(run.tracer, run.tracer.tensor(value), axes)


@function(np.flip)
def _flip(run: Any, value: Any, axis: Any = None) -> Any:
    tensor = run.tracer.tensor(value)
    given = range(tensor.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    return flip(run.tracer, tensor, [normal_axis(run.tracer, a, tensor.ndim) for a in given])


@function(np.fliplr)
def _fliplr(run: Any, value: Any) -> Any:
    return _flip(run, value, 1)


@function(np.flipud)
def _flipud(run: Any, value: Any) -> Any:
    return _flip(run, value, 0)


@function(np.rot90)
def _rot90(run: Any, value: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    a, b = axes
    turned = k % 4
    if turned == 0:
        return value
    if turned == 2:
        return _flip(run, value, (a, b))
    swapped = _swapaxes(run, value, a, b)
    return _flip(run, swapped, a) if turned == 1 else _flip(run, swapped, b)


@function(np.broadcast_to)
def _broadcast_to(run: Any, value: Any, shape: Any, **_: Any) -> Any:
    tensor = run.tracer.tensor(value)
    found = broadcast_to(run.tracer, tensor, shape_of(run, shape))
    return Tensor(found.shape, found.dtype, found.element)


@function(np.broadcast_arrays)
def _broadcast_arrays(run: Any, *values: Any, **_: Any) -> Any:
    tensors = [run.tracer.tensor(v) for v in values]
    shape = run.tracer.broadcast_shape([t.shape for t in tensors])
    return [broadcast_to(run.tracer, t, shape) for t in tensors]


@function(np.atleast_1d)
def _atleast_1d(run: Any, *values: Any) -> Any:
    found = [
        reshape(run.tracer, t, [1]) if t.ndim == 0 else t for t in map(run.tracer.tensor, values)
    ]
    return found[0] if len(found) == 1 else found


@function(np.atleast_2d)
def _atleast_2d(run: Any, *values: Any) -> Any:
    found = [
        t if t.ndim > 1 else reshape(run.tracer, t, [1, size_of(t.shape)])
        for t in map(run.tracer.tensor, values)
    ]
    return found[0] if len(found) == 1 else found


def _astype(run: Any, base: Any, dtype: Any, **_: Any) -> Any:
    return converted(run.tracer, base, dtype_of(run, dtype))


METHODS["astype"] = _astype
METHODS["conj"] = METHODS["conjugate"] = lambda run, base: combine(run.tracer, np.conjugate, [base])


def _fill(run: Any, base: Any, value: Any) -> None:
    run.tracer.assign(base, run.tracer.tensor(value))


def _item(run: Any, base: Any, *index: Any) -> Any:
    if index:
        return indexing.read(run.tracer, base, _given(index))
    if not all(is_one(n) for n in base.shape):
        run.tracer.refuse("can only convert an array of size 1 to a Python scalar")
    weak = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[base.dtype.kind]
    wide = {bool: bool, int: np.int64, float: np.float64, complex: np.complex128}[weak]
    found = converted(run.tracer, base, wide)
    return Tensor((), found.dtype, lambda _: found.element((0,) * base.ndim), weak)


def _tolist(run: Any, base: Any) -> Any:
    if base.ndim == 0:
        return _item(run, base)
    return [_tolist(run, indexing.read(run.tracer, base, n)) for n in range(base.shape[0])]


METHODS["fill"] = _fill
METHODS["item"] = _item
METHODS["tolist"] = _tolist


# -- choices --------------------------------------------------------------------------------------


@function(np.where)
def _where(run: Any, condition: Any, *values: Any) -> Any:
    if not values:
        run.tracer.refuse(
            "np.where of a condition alone gives as many indices as there are true elements; use "
            "np.where(condition, a, b), or the condition as a mask"
        )
    one, other = (run.tracer.tensor(v) for v in values)
    return choose(run.tracer, run.tracer.tensor(condition), one, other)


@function(np.select)
def _select(run: Any, conditions: Any, values: Any, default: Any = 0) -> Any:
    tracer = run.tracer
    found = tracer.tensor(default)
    kind = np.result_type(
        *(t.dtype if t.weak is None else t.weak(0) for t in map(tracer.tensor, [*values, default]))
    )
    for condition, value in reversed(list(zip(conditions, values, strict=True))):
        found = choose(tracer, tracer.tensor(condition), tracer.tensor(value), found, kind)
    return found


@function(np.clip)
def _clip(
    run: Any, value: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **options: Any
) -> Any:
    low, high = options.get("min", a_min), options.get("max", a_max)
    found = value
    if low is not None:
        found = combine(run.tracer, np.maximum, [found, low])
    if high is not None:
        found = combine(run.tracer, np.minimum, [found, high])
    return finished(run, run.tracer.tensor(found), out)


def _method_clip(
    run: Any,
    base: Any,
    min: Any = None,
    max: Any = None,
    out: Any = None,
) -> Any:
    return _clip(run, base, min, max, out)


METHODS["clip"] = _method_clip


@function(np.round, np.around, method="round")
def _round(run: Any, value: Any, decimals: Any = 0, out: Any = None) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if tensor.dtype.kind in "biu":
        return finished(run, tensor, out)
    if decimals == 0:
        return finished(run, combine(tracer, np.rint, [tensor]), out)
    factor = tensor.dtype.type(10.0 ** abs(decimals))
    scale, back = (np.multiply, np.divide) if decimals > 0 else (np.divide, np.multiply)
    scaled = combine(tracer, np.rint, [combine(tracer, scale, [tensor, factor])])
    return finished(run, combine(tracer, back, [scaled, factor]), out)


@function(np.nan_to_num)
def _nan_to_num(
    run: Any, value: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if tensor.dtype.kind != "f":
        return tensor
    info = np.finfo(tensor.dtype)
    kind = tensor.dtype.type
    high = kind(info.max if posinf is None else posinf)
    low = kind(info.min if neginf is None else neginf)
    found = choose(tracer, combine(tracer, np.isnan, [tensor]), tracer.tensor(kind(nan)), tensor)
    found = choose(tracer, combine(tracer, np.equal, [tensor, np.inf]), tracer.tensor(high), found)
    return choose(tracer, combine(tracer, np.equal, [tensor, -np.inf]), tracer.tensor(low), found)


@function(np.isclose)
def _isclose(
    run: Any, a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Any:
    tracer = run.tracer
    gap = combine(tracer, np.absolute, [combine(tracer, np.subtract, [a, b])])
    size = combine(tracer, np.absolute, [b])
    limit = combine(tracer, np.add, [atol, combine(tracer, np.multiply, [rtol, size])])
    near = combine(tracer, np.less_equal, [gap, limit])
    finite = combine(tracer, np.isfinite, [b])
    found = combine(
        tracer,
        np.logical_or,
        [combine(tracer, np.logical_and, [near, finite]), combine(tracer, np.equal, [a, b])],
    )
    if equal_nan:
        both = combine(
            tracer,
            np.logical_and,
            [combine(tracer, np.isnan, [a]), combine(tracer, np.isnan, [b])],
        )
        found = combine(tracer, np.logical_or, [found, both])
    return found


@function(np.allclose)
def _allclose(run: Any, a: Any, b: Any, *rest: Any, **options: Any) -> Any:
    return run.call(np.all, [_isclose(run, a, b, *rest, **options)], {})


@function(np.array_equal)
def _array_equal(run: Any, a: Any, b: Any, **_: Any) -> Any:
    one, other = run.tracer.tensor(a), run.tracer.tensor(b)
    if one.ndim != other.ndim:
        return False
    return run.call(np.all, [combine(run.tracer, np.equal, [one, other])], {})


# -- joins ----------------------------------------------------------------------------------------


@function(np.concatenate, np.concat)
def concatenate(
    run: Any, arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None, **_: Any
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
        tracer.refuse("all the input array dimensions except for the concatenation axis must match")
    d = normal_axis(tracer, axis, tensors[0].ndim)
    kind = np.dtype(dtype) if dtype is not None else np.result_type(*(t.dtype for t in tensors))
    shape = list(tensors[0].shape)
    begins: list[Any] = []
    total: Any = 0
    for tensor in tensors:
        begins.append(total)
        total = add(total, tensor.shape[d])
    shape[d] = total
    container = tracer.container(tracer.target or "joined", shape, kind)
    for begin, tensor in zip(begins, tensors, strict=True):
        places = [
            add(begin, axis_symbol(k)) if k == d else axis_symbol(k) for k in range(len(shape))
        ]
        part = make_view(container, tensor.shape, places)
        tracer.write(part, tensor)
    return finished(run, view_of(container), out)


@function(np.stack)
def _stack(run: Any, arrays: Any, axis: Any = 0, **options: Any) -> Any:
    tensors = [run.tracer.tensor(a) for a in run.unpacked(arrays, None)]
    d = normal_axis(run.tracer, axis, tensors[0].ndim + 1)
    wide = [expand_dims(run.tracer, t, [d]) for t in tensors]
    return concatenate(run, wide, d, **options)


@function(np.vstack)
def _vstack(run: Any, arrays: Any, **options: Any) -> Any:
    tensors = [_atleast_2d(run, a) for a in run.unpacked(arrays, None)]
    return concatenate(run, tensors, 0, **options)


@function(np.hstack)
def _hstack(run: Any, arrays: Any, **options: Any) -> Any:
    tensors = [_atleast_1d(run, a) for a in run.unpacked(arrays, None)]
    return concatenate(run, tensors, 0 if tensors[0].ndim == 1 else 1, **options)


@function(np.column_stack)
def _column_stack(run: Any, arrays: Any) -> Any:
    tensors = [run.tracer.tensor(a) for a in run.unpacked(arrays, None)]
    tensors = [expand_dims(run.tracer, t, [1]) if t.ndim == 1 else t for t in tensors]
    return concatenate(run, tensors, 1)


@function(np.dstack)
def _dstack(run: Any, arrays: Any) -> Any:
    tensors = []
    for tensor in map(run.tracer.tensor, run.unpacked(arrays, None)):
        wide = tensor if tensor.ndim > 1 else reshape(run.tracer, tensor, [1, -1])
        tensors.append(wide if wide.ndim > 2 else expand_dims(run.tracer, wide, [2]))
    return concatenate(run, tensors, 2)


@function(np.append)
def _append(run: Any, value: Any, values: Any, axis: Any = None) -> Any:
    tracer = run.tracer
    if axis is None:
        return concatenate(
            run, [reshape(tracer, tracer.tensor(v), [-1]) for v in (value, values)], 0
        )
    return concatenate(run, [value, values], axis)


@function(np.block)
def _block(run: Any, blocks: Any) -> Any:
    if not isinstance(blocks, list):
        return run.tracer.tensor(blocks)
    if not any(isinstance(b, list) for b in blocks):
        tensors = [_atleast_2d(run, b) for b in blocks]
        return concatenate(run, tensors, -1)
    return concatenate(run, [_block(run, b) for b in blocks], -2)


@function(np.split, np.array_split)
def _split(run: Any, value: Any, sections: Any, axis: Any = 0) -> Any:
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
    return [
        indexing.read(tracer, tensor, (*lead, slice(a, b)))
        for a, b in zip(bounds[:-1], bounds[1:], strict=True)
    ]


function(np.vsplit)(lambda run, value, sections: _split(run, value, sections, 0))
function(np.hsplit)(lambda run, value, sections: _split(run, value, sections, 1))


@function(np.roll)
def _roll(run: Any, value: Any, shift: Any, axis: Any = None) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if axis is None:
        flat = _roll(run, reshape(tracer, tensor, [-1]), shift, 0)
        return reshape(tracer, flat, tensor.shape)
    axes = list(axis) if isinstance(axis, tuple | list) else [axis]
    shifts = list(shift) if isinstance(shift, tuple | list) else [shift] * len(axes)
    for d, by in zip(axes, shifts, strict=True):
        tensor = _rolled(run, tensor, tracer.as_whole(by), normal_axis(tracer, d, tensor.ndim))
    return tensor


def _rolled(run: Any, tensor: Tensor, by: Any, d: int) -> Tensor:
    from distspmd.frontend.tensor_ir.whole_numbers import remainder

    tracer = run.tracer
    length = tensor.shape[d]
    if isinstance(by, int) and isinstance(length, int):
        by = by % length if length else 0
        if by == 0:
            return Tensor(tensor.shape, tensor.dtype, tensor.element)
    elif isinstance(by, int):
        by = by if by > 0 else add(length, by)
    else:
        by = remainder(by, length)
    lead = (slice(None),) * d
    tensor = tracer.settled(tensor)
    cut = subtract(length, by)
    end = indexing.read(tracer, tensor, (*lead, slice(cut, None)))
    begin = indexing.read(tracer, tensor, (*lead, slice(None, cut)))
    return concatenate(run, [end, begin], d)


@function(np.tile)
def _tile(run: Any, value: Any, reps: Any) -> Any:
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


@function(np.repeat, method="repeat")
def _repeat(run: Any, value: Any, repeats: Any, axis: Any = None) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if axis is None:
        tensor, axis = reshape(tracer, tensor, [-1]), 0
    d = normal_axis(tracer, axis, tensor.ndim)
    if isinstance(repeats, list | tuple | np.ndarray):
        counts = [int(r) for r in repeats]
        places = np.repeat(np.arange(len(counts)), counts)
        return indexing.read(tracer, tensor, (*(slice(None),) * d, places))
    count = tracer.as_whole(repeats, "the number of repeats")
    wide = expand_dims(tracer, tensor, [d + 1])
    shape = list(wide.shape)
    shape[d + 1] = count
    whole = tracer.stored_anew(broadcast_to(tracer, wide, shape))
    out = list(tensor.shape)
    out[d] = multiply(out[d], count)
    return reshape(tracer, whole, out)


@function(np.take, method="take")
def _take(run: Any, value: Any, indices: Any, axis: Any = None, **_: Any) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if axis is None:
        tensor, axis = tracer.unmerged(reshape(tracer, tensor, [-1])), 0
    d = normal_axis(tracer, axis, tensor.ndim)
    return indexing.read(tracer, tensor, (*(slice(None),) * d, indices))


@function(np.meshgrid)
def _meshgrid(run: Any, *values: Any, indexing: str = "xy", sparse: bool = False, **_: Any) -> Any:
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


# -- triangles and diagonals ----------------------------------------------------------------------


def _triangle(lower: bool) -> Any:
    def call(run: Any, value: Any, k: Any = 0) -> Any:
        tracer = run.tracer
        tensor = tracer.settled(tracer.tensor(value))
        k = tracer.as_whole(k)

        def element(index: tuple[Index, ...]) -> Expression:
            row, column = index_expression(index[-2]), index_expression(index[-1])
            edge = apply("add", row, index_expression(k))
            name = "less_equal" if lower else "greater_equal"
            inside = apply(name, column, edge)
            return apply("where", inside, tensor.element(index), number(0, tensor.dtype))

        return Tensor(tensor.shape, tensor.dtype, element)

    return call


function(np.tril)(_triangle(True))
function(np.triu)(_triangle(False))


@function(np.tri)
def _tri(run: Any, n: Any, m: Any = None, k: Any = 0, dtype: Any = np.float64, **rest: Any) -> Any:
    m = rest.get("M", m)
    ones = run.call(np.ones, [(n, n if m is None else m)], {"dtype": dtype})
    return _triangle(True)(run, ones, k)


@function(np.diagonal, method="diagonal")
def _diagonal(run: Any, value: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    one, other = (normal_axis(tracer, a, tensor.ndim) for a in (axis1, axis2))
    offset = tracer.as_whole(offset)
    if not isinstance(offset, int):
        tracer.refuse("the offset of a diagonal has to be known before the run")
    rows, columns = tensor.shape[one], tensor.shape[other]
    length = _shorter(add(rows, min(offset, 0)), subtract(columns, max(offset, 0)))
    kept = [d for d in range(tensor.ndim) if d not in (one, other)]
    shape = [*(tensor.shape[d] for d in kept), length]
    places: list[Any] = [0] * tensor.ndim
    for place, d in enumerate(kept):
        places[d] = axis_symbol(place)
    places[one] = add(axis_symbol(len(kept)), max(-offset, 0))
    places[other] = add(axis_symbol(len(kept)), max(offset, 0))
    return indexing.moved(tensor, shape, places)


def _shorter(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return max(0, min(a, b))
    gap = subtract(a, b)
    if isinstance(gap, int):
        return a if gap <= 0 else b
    return sympy.Min(sympy.sympify(a), sympy.sympify(b))


@function(np.diag)
def _diag(run: Any, value: Any, k: Any = 0) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if tensor.ndim == 2:
        return _diagonal(run, tensor, k)
    return _diagflat(run, tensor, k)


@function(np.diagflat)
def _diagflat(run: Any, value: Any, k: Any = 0) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    tensor = tensor if tensor.ndim == 1 else reshape(tracer, tensor, [-1])
    n = add(tensor.shape[0], abs(k))
    zeros = run.call(np.zeros, [(n, n)], {"dtype": tensor.dtype})
    tracer.assign(_diagonal(run, zeros, k), tensor)
    return zeros


@function(np.fill_diagonal)
def _fill_diagonal(run: Any, base: Any, value: Any, wrap: bool = False) -> None:
    run.tracer.assign(_diagonal(run, base), run.tracer.tensor(value))


# -- differences and padding ----------------------------------------------------------------------


@function(np.diff)
def _diff(run: Any, value: Any, n: Any = 1, axis: Any = -1, **options: Any) -> Any:
    tracer = run.tracer
    found = tracer.tensor(value)
    d = normal_axis(tracer, axis, found.ndim)
    for name, place in (("prepend", 0), ("append", 1)):
        if options.get(name) is not None:
            extra = tracer.tensor(options[name])
            if extra.ndim == 0:
                shape = [1 if k == d else m for k, m in enumerate(found.shape)]
                extra = broadcast_to(tracer, extra, shape)
            found = concatenate(run, [extra, found] if place == 0 else [found, extra], d)
    lead = (slice(None),) * d
    for _ in range(n):
        found = tracer.settled(found)
        upper = indexing.read(tracer, found, (*lead, slice(1, None)))
        lower = indexing.read(tracer, found, (*lead, slice(None, -1)))
        ufunc = np.not_equal if found.dtype.kind == "b" else np.subtract
        found = combine(tracer, ufunc, [upper, lower])
    return found


@function(np.ediff1d)
def _ediff1d(run: Any, value: Any, **_: Any) -> Any:
    return _diff(run, reshape(run.tracer, run.tracer.tensor(value), [-1]))


@function(np.gradient)
def _gradient(run: Any, value: Any, *spacing: Any, axis: Any = None, edge_order: int = 1) -> Any:
    tracer = run.tracer
    tensor = tracer.stored(tracer.tensor(value))
    axes = (
        list(range(tensor.ndim))
        if axis is None
        else [
            normal_axis(tracer, a, tensor.ndim)
            for a in (axis if isinstance(axis, tuple | list) else [axis])
        ]
    )
    steps = list(spacing) or [1.0]
    if len(steps) == 1:
        steps = steps * len(axes)
    if edge_order != 1 or any(tracer.tensor(s).ndim for s in steps):
        tracer.refuse("np.gradient with other spacings than numbers, or edge_order=2")
    kind = np.dtype(np.float64) if tensor.dtype.kind in "biu" else tensor.dtype
    found = [
        _gradient_along(run, converted(tracer, tensor, kind), d, step)
        for d, step in zip(axes, steps, strict=True)
    ]
    return found[0] if len(found) == 1 else tuple(found)


def _gradient_along(run: Any, tensor: Tensor, d: int, step: Any) -> Tensor:
    tracer = run.tracer
    container = tracer.container(tracer.target or "gradient", tensor.shape, tensor.dtype)
    target = view_of(container)
    lead = (slice(None),) * d

    def part(base: Tensor, *ends: Any) -> Tensor:
        return indexing.read(tracer, base, (*lead, slice(*ends)))

    for where, up, down, width in (
        ((1, -1), (2, None), (None, -2), 2.0),
        ((None, 1), (1, 2), (None, 1), 1.0),
        ((-1, None), (-1, None), (-2, -1), 1.0),
    ):
        gap = combine(tracer, np.subtract, [part(tensor, *up), part(tensor, *down)])
        scale = combine(tracer, np.multiply, [width, step])
        slope = combine(tracer, np.divide, [gap, scale])
        tracer.write(part(target, *where), tracer.broadcast(slope, slope.shape))  # type: ignore[arg-type]
    return target


@function(np.pad)
def _pad(run: Any, value: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    tracer = run.tracer
    tensor = tracer.stored(tracer.tensor(value))
    widths = _pairs(run, pad_width, tensor.ndim)
    values = _pairs(run, options.get("constant_values", 0), tensor.ndim, plain=True)
    if mode not in ("constant", "edge", "wrap", "reflect", "symmetric"):
        tracer.refuse(f"np.pad with the mode {mode!r}")
    for d, ((low, high), fills) in enumerate(zip(widths, values, strict=True)):
        parts = [
            *_padding(run, tensor, d, low, mode, fills[0], before=True),
            tensor,
            *_padding(run, tensor, d, high, mode, fills[1], before=False),
        ]
        if len(parts) > 1:
            tensor = concatenate(run, parts, d, dtype=tensor.dtype)
    return tensor


def _pairs(run: Any, given: Any, rank: int, plain: bool = False) -> list[tuple[Any, Any]]:
    def whole(v: Any) -> Any:
        return v if plain else run.tracer.as_whole(v, "a width of padding")

    if not isinstance(given, tuple | list):
        return [(whole(given), whole(given))] * rank
    if all(not isinstance(g, tuple | list) for g in given):
        if len(given) == 1:
            return [(whole(given[0]), whole(given[0]))] * rank
        return [(whole(given[0]), whole(given[1]))] * rank
    rows = [tuple(map(whole, g if len(g) == 2 else (g[0], g[0]))) for g in given]
    return rows * rank if len(rows) == 1 else rows  # type: ignore[return-value]


def _padding(
    run: Any, tensor: Tensor, d: int, width: Any, mode: str, fill: Any, *, before: bool
) -> list[Tensor]:
    tracer = run.tracer
    if width == 0:
        return []
    lead = (slice(None),) * d
    length = tensor.shape[d]
    shape = [width if k == d else n for k, n in enumerate(tensor.shape)]
    if mode == "constant":
        return [broadcast_to(tracer, converted(tracer, fill, tensor.dtype), shape)]
    if mode == "edge":
        end = slice(0, 1) if before else slice(subtract(length, 1), length)
        return [broadcast_to(tracer, indexing.read(tracer, tensor, (*lead, end)), shape)]
    if (
        isinstance(length, int)
        and isinstance(width, int)
        and width > (length - 1 if mode == "reflect" else length)
    ):
        places = np.pad(np.arange(length), (width, 0) if before else (0, width), mode=mode)
        own = places[:width] if before else places[length:]
        return [indexing.read(tracer, tensor, (*lead, own))]
    if mode == "wrap":
        part = slice(subtract(length, width), length) if before else slice(0, width)
        return [indexing.read(tracer, tensor, (*lead, part))]
    skip = 1 if mode == "reflect" else 0
    if before:
        part = slice(skip, add(width, skip))
    else:
        part = slice(subtract(subtract(length, width), skip), subtract(length, skip))
    found = indexing.read(tracer, tensor, (*lead, part))
    return [flip(tracer, found, [d])]


__all__ = ["INT64", "View"]
