"""Shapes and orders of elements: attributes, reshapes, transpositions, and methods of one array."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.choosing import as_arrays
from distspmd.frontend.from_numpy.arrays.complex_parts import apply_imag, apply_real
from distspmd.frontend.from_numpy.arrays.elements import in_table, is_one
from distspmd.frontend.from_numpy.arrays.kinds import has_data, of_numpy
from distspmd.frontend.from_numpy.arrays.shapes import (
    broadcast_to,
    expand_dims,
    flip,
    is_contiguous,
    normal_axis,
    reshape,
    size_of,
    squeeze,
    transpose,
)
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.numpy.creation import dtype_of, shape_of
from distspmd.frontend.from_numpy.numpy.registry import METHODS, attribute, function
from distspmd.frontend.from_numpy.reader.mutation import before_change


@attribute("shape")
def _shape(run: Context, base: Tensor) -> Any:
    if base.mask is not None:
        count = run.tracer.as_whole(run.call(len, [base], {}))
        return (count, *base.shape[base.mask.ndim :])
    return tuple(base.shape)


@attribute("ndim")
def _ndim(run: Context, base: Tensor) -> Any:
    return base.ndim if base.mask is None else base.ndim - base.mask.ndim + 1


@attribute("size")
def _size(run: Context, base: Tensor) -> Any:
    return size_of(_shape(run, base))


@attribute("dtype")
def _dtype(run: Context, base: Tensor) -> Any:
    return base.dtype


@attribute("itemsize")
def _itemsize(run: Context, base: Tensor) -> Any:
    return base.dtype.itemsize


@attribute("T")
def _t(run: Context, base: Tensor) -> Any:
    return transpose(run.tracer, as_arrays(run.tracer, base))


@attribute("mT")
def _mt(run: Context, base: Tensor) -> Any:
    return swapaxes(run, as_arrays(run.tracer, base), -1, -2)


@attribute("flat")
def _flat(run: Context, base: Tensor) -> Any:
    return reshape(run.tracer, as_arrays(run.tracer, base), [-1])


@attribute("real")
def _real_part(run: Context, base: Tensor) -> Any:
    return apply_real(base)


@attribute("imag")
def _imag_part(run: Context, base: Tensor) -> Any:
    return apply_imag(base)


@function(np.real)
def _real(run: Context, value: object) -> Any:
    return apply_real(run.tracer.tensor(value))


@function(np.imag)
def _imag(run: Context, value: object) -> Any:
    return apply_imag(run.tracer.tensor(value))


@function(np.angle)
def _angle(run: Context, value: object, deg: bool = False) -> Any:
    tensor = run.tracer.tensor(value)
    found = combine(run.tracer, np.arctan2, [apply_imag(tensor), apply_real(tensor)])
    return of_numpy(combine(run.tracer, np.degrees, [found]) if deg else found)


@function(np.shape)
def _np_shape(run: Context, value: object) -> Any:
    return tuple(run.tracer.tensor(value).shape)


@function(np.ndim)
def _np_ndim(run: Context, value: object) -> Any:
    return run.tracer.tensor(value).ndim


@function(np.iscomplexobj)
def _iscomplexobj(run: Context, value: object) -> bool:
    return bool(run.tracer.tensor(value).dtype.kind == "c")


@function(np.result_type)
def _result_type(run: Context, *values: Any) -> Any:
    tensors = [v if isinstance(v, Tensor) else None for v in values]
    kinds = [
        v if t is None else t.weak(0) if t.weak else t.dtype
        for v, t in zip(values, tensors, strict=True)
    ]
    return np.result_type(*kinds)


@function(np.isrealobj)
def _isrealobj(run: Context, value: object) -> bool:
    return not _iscomplexobj(run, value)


@function(np.isscalar)
def _isscalar(run: Context, value: Any) -> bool:
    is_tensor = isinstance(value, Tensor)
    return value.python_class is not np.ndarray if is_tensor else np.isscalar(value)


@function(np.size)
def _np_size(run: Context, value: object, axis: object = None) -> Any:
    tensor = run.tracer.tensor(value)
    if axis is None:
        return size_of(tensor.shape)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    return size_of([tensor.shape[normal_axis(run.tracer, d, tensor.ndim)] for d in axes])


def _given(shape: Sequence[Any]) -> Any:
    return shape[0] if len(shape) == 1 else tuple(shape)


@function(np.reshape)
def _reshape(
    run: Context, value: object, shape: object = None, order: object = "C", **options: object
) -> Any:
    shape = options.get("newshape", shape)
    tensor = run.tracer.tensor(value)
    if order == "F":
        flipped = transpose(run.tracer, tensor)
        found = reshape(run.tracer, flipped, shape_of(run, shape)[::-1])
        return transpose(run.tracer, found)
    if order != "C":
        run.tracer.refuse(f"order={order!r} asks how an array lies in memory; write 'C' or 'F'")
    return reshape(run.tracer, tensor, shape_of(run, shape))


def _method_reshape(
    run: Context, base: object, *shape: object, order: object = "C", **_: object
) -> Any:
    return _reshape(run, base, _given(shape), order)


METHODS["reshape"] = _method_reshape


@function(np.ravel, method="ravel")
def _ravel(run: Context, value: object, order: object = "C") -> Any:
    return _reshape(run, value, -1, order)


def _flatten(run: Context, base: object, order: object = "C") -> Any:
    found = _reshape(run, base, -1, order)
    return run.tracer.stored_anew(run.tracer.unmerged(found))


METHODS["flatten"] = _flatten


@function(np.transpose, np.permute_dims)
def _transpose(run: Context, value: Any, axes: Any = None) -> Any:
    return transpose(run.tracer, run.call(np.asarray, [value], {}), axes)


def _method_transpose(run: Context, base: Any, *axes: Any) -> Any:
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
def swapaxes(run: Context, value: object, axis1: object, axis2: object) -> Any:
    """``np.swapaxes``."""
    tensor = run.tracer.tensor(value)
    one, other = (normal_axis(run.tracer, a, tensor.ndim) for a in (axis1, axis2))
    order = list(range(tensor.ndim))
    order[one], order[other] = order[other], order[one]
    return transpose(run.tracer, tensor, order)


@function(np.moveaxis)
def _moveaxis(run: Context, value: Any, source: Any, destination: Any) -> Any:
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
def _rollaxis(run: Context, value: Any, axis: Any, start: Any = 0) -> Any:
    tensor = run.tracer.tensor(value)
    own = normal_axis(run.tracer, axis, tensor.ndim)
    start = start if start >= 0 else start + tensor.ndim
    return _moveaxis(run, tensor, own, start - 1 if own < start else start)


@function(np.expand_dims)
def _expand(run: Context, value: object, axis: Any) -> Any:
    axes = [axis] if isinstance(axis, int) else list(axis)
    return expand_dims(run.tracer, run.tracer.tensor(value), axes)


@function(np.squeeze, method="squeeze")
def _squeeze(run: Context, value: object, axis: Any = None) -> Any:
    axes = None if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return squeeze(run.tracer, run.call(np.asarray, [value], {}), axes)


@function(np.flip)
def _flip(run: Context, value: Any, axis: Any = None) -> Any:
    tensor = run.tracer.tensor(value)
    given = range(tensor.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    return flip(run.tracer, tensor, [normal_axis(run.tracer, a, tensor.ndim) for a in given])


@function(np.fliplr)
def _fliplr(run: Context, value: object) -> Any:
    return _flip(run, value, 1)


@function(np.flipud)
def _flipud(run: Context, value: object) -> Any:
    return _flip(run, value, 0)


@function(np.rot90)
def _rot90(run: Context, value: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    a, b = axes
    turned = k % 4
    if turned == 0:
        return value
    if turned == 2:
        return _flip(run, value, (a, b))
    swapped = swapaxes(run, value, a, b)
    return _flip(run, swapped, a) if turned == 1 else _flip(run, swapped, b)


@function(np.broadcast_to)
def _broadcast_to(run: Context, value: object, shape: object, **_: object) -> Any:
    tensor = run.tracer.tensor(value)
    return broadcast_to(run.tracer, tensor, shape_of(run, shape))


@function(np.broadcast_shapes)
def _broadcast_shapes(run: Context, *shapes: object) -> Any:
    return run.tracer.broadcast_shape([shape_of(run, shape) for shape in shapes])


@function(np.broadcast_arrays)
def _broadcast_arrays(run: Context, *values: object, **_: object) -> Any:
    tensors = [run.tracer.tensor(v) for v in values]
    shape = run.tracer.broadcast_shape([t.shape for t in tensors])
    return [broadcast_to(run.tracer, t, shape) for t in tensors]


@function(np.atleast_1d)
def atleast_1d(run: Context, *values: object) -> Any:
    """``np.atleast_1d``."""
    found = [
        reshape(run.tracer, t, [1]) if t.ndim == 0 else t for t in map(run.tracer.tensor, values)
    ]
    return found[0] if len(found) == 1 else found


@function(np.atleast_2d)
def atleast_2d(run: Context, *values: object) -> Any:
    """``np.atleast_2d``."""
    found = [
        t if t.ndim > 1 else reshape(run.tracer, t, [1, size_of(t.shape)])
        for t in map(run.tracer.tensor, values)
    ]
    return found[0] if len(found) == 1 else found


def _in_order(by_rows: bool) -> Any:
    """An array that lies in order already stays what it is; others are copied."""

    def handler(run: Context, value: object, dtype: object = None, **_: object) -> Any:
        tracer = run.tracer
        tensor = tracer.tensor(value)
        kind = dtype_of(run, dtype, tensor.dtype)
        rows = tensor if by_rows else transpose(tracer, tensor)
        if kind == tensor.dtype and isinstance(rows, View) and rows.ndim and is_contiguous(rows):
            return tensor
        found = converted(tracer, tensor, kind)
        return tracer.stored_anew(Tensor(found.shape, found.dtype, found.element))

    return handler


function(np.ascontiguousarray)(_in_order(by_rows=True))
function(np.asfortranarray)(_in_order(by_rows=False))


def _astype(
    run: Context,
    base: Any,
    dtype: Any,
    order: str = "K",
    casting: Any = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Any:
    kind = dtype_of(run, dtype)
    if not np.can_cast(base.dtype, kind, casting):
        run.tracer.refuse(
            f"Cannot cast array data from {base.dtype} to {kind} according to the rule {casting!r}"
        )
    if not copy and kind == base.dtype:
        return base
    return converted(run.tracer, base, kind)


METHODS["astype"] = _astype


def _conjugate(run: Context, base: Any) -> Any:
    """The array itself where it is real, as in NumPy."""
    return combine(run.tracer, np.conjugate, [base]) if base.dtype.kind == "c" else base


METHODS["conj"] = METHODS["conjugate"] = _conjugate


def _fill(run: Context, base: Any, value: Any) -> None:
    run.tracer.assign(base, run.tracer.tensor(value))


def _item(run: Context, base: Any, *index: Any) -> Any:
    if index:
        return indexing.read(run.tracer, base, _given(index))
    if not all(is_one(n) for n in base.shape):
        run.tracer.refuse("can only convert an array of size 1 to a Python scalar")
    if base.dtype.kind in "iu":
        known = in_table(run.tracer, base.element((0,) * base.ndim))
        if known is not None:
            return known
    weak = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[base.dtype.kind]
    wide = {bool: bool, int: np.int64, float: np.float64, complex: np.complex128}[weak]
    found = converted(run.tracer, base, wide)
    return Tensor((), found.dtype, lambda _: found.element((0,) * base.ndim), weak)


def _tolist(run: Context, base: Any) -> Any:
    if base.ndim == 0:
        return _item(run, base)
    if not isinstance(base.shape[0], int):
        if base.ndim > 1:
            raise CannotRoll(f"a list of {base.shape[0]} lists, which is not known before the run")
        return run.call(rarer_forms.numbers_of_python, [base], {})
    return [_tolist(run, indexing.read(run.tracer, base, n)) for n in range(base.shape[0])]


METHODS["fill"] = _fill
METHODS["item"] = _item
METHODS["tolist"] = _tolist


def _as_function(name: str) -> Any:
    def call(run: Context, a: object, *given: object, **named: object) -> Any:
        if not isinstance(a, list | tuple) or has_data((a, given, named)) or "key" in named:
            run.tracer.refuse(
                f"bisect.{name} of what is not known is not covered: use np.searchsorted"
            )
        if name.startswith("insort") and isinstance(a, list):
            before_change(run, a)
        return getattr(bisect, name)(a, *given, **named)

    return call


for _name in ("bisect_left", "bisect_right", "insort_left", "insort_right"):
    function(getattr(bisect, _name))(_as_function(_name))
