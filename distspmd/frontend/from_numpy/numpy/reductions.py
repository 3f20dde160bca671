"""Reductions: sums, extremes, their places, and statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from dace.libraries.standard import Reduce

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import apply_ufunc, choose, combine, converted
from distspmd.frontend.from_numpy.arrays.choosing import chosen, in_one_dimension
from distspmd.frontend.from_numpy.arrays.comparisons import HALF
from distspmd.frontend.from_numpy.arrays.elements import truth_of
from distspmd.frontend.from_numpy.arrays.lengths import neutral_outside
from distspmd.frontend.from_numpy.arrays.shapes import expand_dims, normal_axis, size_of
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    Tensor,
    View,
    index_expression,
    make_view,
    number,
    whole_expression,
)
from distspmd.frontend.from_numpy.arrays.values import axis as axis_symbol
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.numpy.creation import dtype_of
from distspmd.frontend.from_numpy.numpy.registry import function, ufunc_method
from distspmd.frontend.tensor_ir.statements import Library
from distspmd.frontend.tensor_ir.whole_numbers import symbol

_LAMBDAS = {
    "multiply": ("lambda a, b: a * b", 1),
    "bitwise_and": ("lambda a, b: a & b", -1),
    "bitwise_or": ("lambda a, b: a | b", 0),
    "bitwise_xor": ("lambda a, b: a ^ b", 0),
    "logical_and": ("lambda a, b: a and b", True),
    "logical_or": ("lambda a, b: a or b", False),
}
_CONTRACTED = {"add": "sum", "maximum": "max", "minimum": "min"}


def axes_of(run: Context, tensor: Tensor, axis: object) -> list[int]:
    """The axes that are reduced."""
    if axis is None:
        return list(range(tensor.ndim))
    given = axis if isinstance(axis, tuple | list) else (axis,)
    found = [normal_axis(run.tracer, a, tensor.ndim) for a in given]
    if len(set(found)) < len(found):
        run.tracer.refuse("duplicate value in 'axis'")
    return sorted(found)


def reduce(
    run: Context,
    name: str,
    value: object,
    axis: object = None,
    *,
    keepdims: bool = False,
    where: object = True,
    initial: object = None,
    dtype: object = None,
) -> Tensor:
    """Reduce by an operation of NumPy, in the type of the elements or in one that is given."""
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if dtype is not None:
        tensor = converted(tracer, tensor, dtype)
    if where is not True:
        condition = tracer.tensor(where)
        neutral = _neutral(tracer, name, tensor.dtype, initial)
        tensor = choose(tracer, condition, tensor, tracer.tensor(neutral), tensor.dtype)
    rows = None
    tensor = in_one_dimension(tracer, tensor)
    if tensor.mask is not None:
        tensor, axis, rows = _unmasked(run, name, tensor, axis, initial)
    axes = axes_of(run, tensor, axis)
    if (
        any(tensor.shape[d] == 0 for d in axes)
        and initial is None
        and name
        in (
            "maximum",
            "minimum",
        )
    ):
        tracer.refuse(f"zero-size array to reduction operation {name} which has no identity")
    if not axes:
        found = Tensor(tensor.shape, tensor.dtype, tensor.element)
    else:
        found = _reduced(run, name, tensor, axes)
    if initial is not None:
        found = combine(tracer, getattr(np, name), [found, tracer.tensor(initial)])
        found = converted(tracer, found, tensor.dtype)
    if keepdims:
        found = expand_dims(tracer, found, axes) if axes else found
    found.weak = None
    found.mask = rows
    return found


def _unmasked(
    run: Context, name: str, tensor: Tensor, axis: object, initial: object
) -> tuple[Tensor, Any, Tensor | None]:
    """A tensor that is neutral where a mask leaves out, the axes, and the mask if it stays."""
    tracer, mask = run.tracer, tensor.mask
    assert mask is not None
    whole = Tensor(tensor.shape, tensor.dtype, tensor.element)
    by_rows = mask.ndim < tensor.ndim
    if by_rows and 0 not in axes_of(run, tensor, axis):
        return whole, axis, mask
    if not by_rows and axis not in (None, 0, -1):
        return chosen(tracer, tensor), axis, None
    if by_rows:
        mask = expand_dims(tracer, mask, list(range(1, tensor.ndim)))
    neutral = _neutral(tracer, name, tensor.dtype, initial)
    found = choose(tracer, mask, whole, tracer.tensor(neutral), tensor.dtype)
    return found, axis if by_rows else None, None


def _neutral(tracer: Tracer, name: str, dtype: Any, initial: object) -> Any:
    if name in ("maximum", "minimum"):
        if initial is not None:
            return initial
        if dtype.kind == "f":
            return dtype.type(-np.inf if name == "maximum" else np.inf)
        if dtype.kind == "b":
            return np.bool_(name == "minimum")
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            return dtype.type(info.min if name == "maximum" else info.max)
        tracer.refuse("an extreme of complex numbers that a mask chooses")
    neutral = {"add": 0, "multiply": 1, "logical_and": True, "logical_or": False}.get(name)
    if neutral is None:
        tracer.refuse(f"{name}.reduce with where=")
    return dtype.type(neutral)


def _reduced(run: Context, name: str, tensor: Tensor, axes: Sequence[int]) -> Tensor:
    tracer = run.tracer
    if tensor.dtype == HALF:
        found = _reduced(run, name, converted(tracer, tensor, np.float32), axes)
        return found if found.dtype.kind == "b" else converted(tracer, found, HALF)
    kept = [d for d in range(tensor.ndim) if d not in axes]
    if name in ("maximum", "minimum") and tensor.dtype.kind == "b":
        name = "logical_or" if name == "maximum" else "logical_and"
    if name in ("logical_or", "logical_and"):
        return _truths(run, name, tensor, axes)
    if name == "add" and tensor.dtype.kind == "b":
        return _truths(run, "logical_or", tensor, axes)
    if name in _CONTRACTED and not (tensor.dtype.kind == "c" and name != "add"):
        index = tuple(symbol(f"__r{d}") for d in range(tensor.ndim))
        pairs = [(index[d], tensor.shape[d]) for d in range(tensor.ndim)]
        expression = tensor.element(index)
        known: Tensor = tracer.contract(
            [pairs[d] for d in kept], [pairs[d] for d in axes], expression, _CONTRACTED[name]
        )
        return known
    if name not in _LAMBDAS:
        tracer.refuse(f"np.{name}.reduce is not covered")
    code, identity = _LAMBDAS[name]
    shape = tuple(tensor.shape[d] for d in kept)
    if any(tensor.shape[d] == 0 for d in axes):
        neutral = number(identity, tensor.dtype)
        nothing = Tensor(shape, tensor.dtype, lambda _: neutral)
        result_of_nothing: Tensor = tracer.stored_anew(nothing, tracer.target or name)
        return result_of_nothing
    room = [tracer.capacity(n) for n in tensor.shape]
    if tracer.is_decided_by_data(*tensor.shape):
        neutral = number(identity, tensor.dtype)
        tensor = neutral_outside(tensor, room, lambda _: neutral, tracer.known.bounds)
    stored = _whole(tracer, tensor)
    result = tracer.container(tracer.target or name, [room[d] for d in kept], tensor.dtype)
    reduced = list(axes) if kept else None
    tracer.add(
        Library(
            lambda: Reduce("reduce", wcr=code, axes=reduced, identity=identity),
            {"_in": stored.container},
            {"_out": result},
        )
    )
    return make_view(result, shape, [axis_symbol(d) for d in range(len(shape))])


def _whole(tracer: Tracer, tensor: Tensor) -> View:
    if isinstance(tensor, View) and tensor.is_whole:
        return tensor
    known: View = tracer.stored_anew(tensor, "operand")
    return known


def _truths(run: Context, name: str, tensor: Tensor, axes: Sequence[int]) -> Tensor:
    """Whether any or all elements are true, by the extreme of numbers."""
    byte = np.dtype(np.int64)
    ones = Tensor(tensor.shape, byte, lambda i: cast(truth_of(tensor.element(i)), byte))
    found = _reduced(run, "maximum" if name == "logical_or" else "minimum", ones, axes)
    return Tensor(
        found.shape,
        np.dtype(bool),
        lambda i: apply("greater", found.element(i), number(0, byte)),
    )


def wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which NumPy adds elements of a type up."""
    if dtype.kind in "bi" and dtype.itemsize < 8:
        return np.dtype(np.int64)
    if dtype.kind == "u" and dtype.itemsize < 8:
        return np.dtype(np.uint64)
    return dtype


def finished(run: Context, found: Any, out: Any) -> Any:
    """A result, written to ``out`` where that is given."""
    if out is None:
        return found
    run.tracer.assign(out, found)
    return out


def _summing(name: str) -> Any:
    def call(
        run: Context,
        value: object,
        axis: object = None,
        dtype: object = None,
        out: object = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = True,
    ) -> Any:
        tensor = run.tracer.tensor(value)
        kind = wide(tensor.dtype) if dtype is None else dtype_of(run, dtype)
        found = reduce(
            run, name, tensor, axis, keepdims=keepdims, where=where, initial=initial, dtype=kind
        )
        if name == "add" and tensor.dtype.kind == "b" and initial is None:
            count_at_most(run, found, size_of(tensor.shape))
        return finished(run, found, out)

    return call


def count_at_most(run: Context, found: Tensor, most: object) -> None:
    """Say that a number that counts elements is none above their number."""
    if isinstance(found, View) and found.is_whole and not found.ndim:
        run.tracer.known.most[found.container] = most


function(np.sum, method="sum")(_summing("add"))
function(np.prod, method="prod")(_summing("multiply"))


def _extreme(name: str) -> Any:
    def call(
        run: Context,
        value: object,
        axis: object = None,
        out: object = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = True,
    ) -> Any:
        found = reduce(run, name, value, axis, keepdims=keepdims, where=where, initial=initial)
        return finished(run, found, out)

    return call


function(np.max, np.amax, method="max")(_extreme("maximum"))
function(np.min, np.amin, method="min")(_extreme("minimum"))


def _truth(name: str) -> Any:
    def call(
        run: Context,
        value: object,
        axis: object = None,
        out: object = None,
        keepdims: bool = False,
        where: object = True,
    ) -> Any:
        tensor = converted(run.tracer, value, bool)
        found = reduce(run, name, tensor, axis, keepdims=keepdims, where=where)
        return finished(run, found, out)

    return call


function(np.any, method="any")(_truth("logical_or"))
function(np.all, method="all")(_truth("logical_and"))


@ufunc_method("reduce")
def _ufunc_reduce(
    run: Context,
    ufunc: np.ufunc,
    value: object,
    axis: object = 0,
    dtype: object = None,
    out: object = None,
    keepdims: bool = False,
    initial: object = None,
    where: object = True,
) -> Any:
    tensor = run.tracer.tensor(value)
    name = ufunc.__name__
    kind = dtype and dtype_of(run, dtype)
    if kind is None and name in ("add", "multiply"):
        kind = wide(tensor.dtype)
    if name.startswith("logical"):
        kind = np.dtype(bool)
    if name not in _LAMBDAS and name not in _CONTRACTED and where is True and _is_one(axis):
        given = [ufunc, tensor, axis, dtype, keepdims, initial]
        return finished(run, run.call(rarer_forms.reduced, given, {}), out)
    found = reduce(
        run, name, tensor, axis, keepdims=keepdims, where=where, initial=initial, dtype=kind
    )
    return finished(run, found, out)


def _is_one(axis: object) -> bool:
    return axis is None or isinstance(axis, int)


@ufunc_method("outer")
def _ufunc_outer(run: Context, ufunc: np.ufunc, a: object, b: object, **keywords: object) -> Any:
    tracer = run.tracer
    one, other = tracer.tensor(a), tracer.tensor(b)
    wide_one = expand_dims(tracer, one, [one.ndim + d for d in range(other.ndim)])
    return apply_ufunc(tracer, ufunc, [wide_one, other], **keywords)


@ufunc_method("at")
def _ufunc_at(run: Context, ufunc: np.ufunc, base: Any, items: object, value: Any = None) -> None:
    tracer = run.tracer
    if ufunc.nin == 1:
        run.call(rarer_forms.apply_at, [ufunc, base, items], {})
        return
    if ufunc in (np.subtract,):
        value, ufunc = combine(tracer, np.negative, [value]), np.add
    if ufunc not in (np.add, np.multiply, np.maximum, np.minimum, np.bitwise_or, np.bitwise_and):
        tracer.refuse(f"np.{ufunc.__name__}.at is not covered")
    given = tracer.tensor(value)
    one = Tensor((), given.dtype, lambda _: number(0, given.dtype), given.weak)
    kind = combine(
        tracer, ufunc, [Tensor((), base.dtype, lambda _: number(0, base.dtype)), one]
    ).dtype
    if kind != base.dtype:
        tracer.refuse(
            f"np.{ufunc.__name__}.at of elements of {base.dtype} with values that make them "
            f"{kind}; convert the array first: astype({kind})"
        )
    indexing.accumulate(tracer, base, items, value, ufunc.__name__)


def _place_of(name: str) -> Any:
    def call(
        run: Context, value: Any, axis: Any = None, out: object = None, keepdims: bool = False
    ) -> Any:
        tracer = run.tracer
        tensor = tracer.tensor(value)
        if tensor.dtype.kind == "c":
            given = [tracer.stored(tensor), axis, keepdims, name == "maximum"]
            return finished(run, run.call(rarer_forms.place_of_complex, given, {}), out)
        flat = axis is None
        if flat and tensor.ndim > 1:
            stored: Tensor = tracer.stored(tensor)
        else:
            stored = tensor
        if tensor.dtype.kind == "b":
            stored = converted(tracer, stored, np.int64)
        stored = tracer.stored(stored)
        axes = axes_of(run, stored, axis)
        best = reduce(run, name, stored, tuple(axes), keepdims=True)
        best = tracer.stored(best)
        shape = stored.shape
        total = whole_expression(size_of([shape[d] for d in axes]))

        def element(index: Any) -> Expression:
            place: Expression = number(0, INT64)
            for d in axes:
                place = apply(
                    "add",
                    apply("multiply", place, whole_expression(shape[d])),
                    index_expression(index[d]),
                )
            if len(axes) == 1:
                place = index_expression(index[axes[0]])
            there = tuple(0 if d in axes else i for d, i in enumerate(index))
            extreme = apply("is_extreme", stored.element(index), best.element(there))
            return apply("where", extreme, cast(place, INT64), total)

        places = Tensor(shape, INT64, element)
        found = reduce(run, "minimum", places, tuple(axes), keepdims=keepdims and not flat)
        if keepdims and flat:
            found = expand_dims(tracer, found, list(range(tensor.ndim)))
        found.is_index = True
        return finished(run, found, out)

    return call


function(np.argmax, method="argmax")(_place_of("maximum"))
function(np.argmin, method="argmin")(_place_of("minimum"))
