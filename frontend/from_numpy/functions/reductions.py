"""Reductions: sums, extremes, their places, and statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy
from dace.libraries.standard import Reduce

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.from_numpy.arithmetic import (
    apply_ufunc,
    choose,
    combine,
    converted,
)
from distspmd.frontend.from_numpy.functions.creation import dtype_of
from distspmd.frontend.from_numpy.functions.registry import function, ufunc_method
from distspmd.frontend.from_numpy.shapes import expand_dims, normal_axis, reshape, size_of
from distspmd.frontend.from_numpy.tracer import truth_of
from distspmd.frontend.from_numpy.values import (
    INT64,
    Tensor,
    View,
    index_expression,
    number,
    view_of,
    whole_expression,
)
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


def axes_of(run: Any, tensor: Tensor, axis: Any) -> list[int]:
    """The axes that are reduced."""
    if axis is None:
        return list(range(tensor.ndim))
    given = axis if isinstance(axis, tuple | list) else (axis,)
    found = [normal_axis(run.tracer, a, tensor.ndim) for a in given]
    if len(set(found)) < len(found):
        run.tracer.refuse("duplicate value in 'axis'")
    return sorted(found)


def reduce(
    run: Any,
    name: str,
    value: Any,
    axis: Any = None,
    *,
    keepdims: bool = False,
    where: Any = True,
    initial: Any = None,
    dtype: Any = None,
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
    if tensor.mask is not None:
        if axis not in (None, 0, -1):
            tracer.refuse("a reduction along an axis of the elements that a mask chooses")
        neutral = _neutral(tracer, name, tensor.dtype, initial)
        whole = Tensor(tensor.shape, tensor.dtype, tensor.element)
        tensor = choose(tracer, tensor.mask, whole, tracer.tensor(neutral), tensor.dtype)
        axis = None
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
    return found


def _neutral(tracer: Any, name: str, dtype: Any, initial: Any) -> Any:
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


def _reduced(run: Any, name: str, tensor: Tensor, axes: Sequence[int]) -> Tensor:
    tracer = run.tracer
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
        return tracer.contract(
            [pairs[d] for d in kept], [pairs[d] for d in axes], expression, _CONTRACTED[name]
        )
    if name not in _LAMBDAS:
        tracer.refuse(f"np.{name}.reduce is not covered")
    stored = _whole(tracer, tensor)
    result = tracer.container(tracer.target or name, [tensor.shape[d] for d in kept], tensor.dtype)
    code, identity = _LAMBDAS[name]
    reduced = list(axes) if kept else None
    tracer.add(
        Library(
            lambda: Reduce("reduce", wcr=code, axes=reduced, identity=identity),
            {"_in": stored.container},
            {"_out": result},
        )
    )
    return view_of(result)


def _whole(tracer: Any, tensor: Tensor) -> View:
    if isinstance(tensor, View) and tensor.is_whole:
        return tensor
    return tracer.stored_anew(tensor, "operand")


def _truths(run: Any, name: str, tensor: Tensor, axes: Sequence[int]) -> Tensor:
    """Whether any or all elements are true, by the extreme of numbers."""
    byte = np.dtype(np.int64)
    ones = Tensor(tensor.shape, byte, lambda i: cast(truth_of(tensor.element(i)), byte))
    found = _reduced(run, "maximum" if name == "logical_or" else "minimum", ones, axes)
    empty = [tensor.shape[d] for d in axes]
    del empty
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


def finished(run: Any, found: Any, out: Any) -> Any:
    """A result, written to ``out`` where that is given."""
    if out is None:
        return found
    run.tracer.assign(out, found)
    return out


def _summing(name: str) -> Any:
    def call(
        run: Any,
        value: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        tensor = run.tracer.tensor(value)
        kind = wide(tensor.dtype) if dtype is None else dtype_of(run, dtype)
        found = reduce(
            run, name, tensor, axis, keepdims=keepdims, where=where, initial=initial, dtype=kind
        )
        return finished(run, found, out)

    return call


function(np.sum, method="sum")(_summing("add"))
function(np.prod, method="prod")(_summing("multiply"))


def _extreme(name: str) -> Any:
    def call(
        run: Any,
        value: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        found = reduce(run, name, value, axis, keepdims=keepdims, where=where, initial=initial)
        return finished(run, found, out)

    return call


function(np.max, np.amax, method="max")(_extreme("maximum"))
function(np.min, np.amin, method="min")(_extreme("minimum"))


def _truth(name: str) -> Any:
    def call(
        run: Any,
        value: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: bool = False,
        where: Any = True,
    ) -> Any:
        tensor = converted(run.tracer, value, bool)
        found = reduce(run, name, tensor, axis, keepdims=keepdims, where=where)
        return finished(run, found, out)

    return call


function(np.any, method="any")(_truth("logical_or"))
function(np.all, method="all")(_truth("logical_and"))


@ufunc_method("reduce")
def _ufunc_reduce(
    run: Any,
    ufunc: np.ufunc,
    value: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    tensor = run.tracer.tensor(value)
    name = ufunc.__name__
    kind = dtype and dtype_of(run, dtype)
    if kind is None and name in ("add", "multiply"):
        kind = wide(tensor.dtype)
    if name.startswith("logical"):
        kind = np.dtype(bool)
    found = reduce(
        run, name, tensor, axis, keepdims=keepdims, where=where, initial=initial, dtype=kind
    )
    return finished(run, found, out)


@ufunc_method("outer")
def _ufunc_outer(run: Any, ufunc: np.ufunc, a: Any, b: Any, **keywords: Any) -> Any:
    tracer = run.tracer
    one, other = tracer.tensor(a), tracer.tensor(b)
    wide_one = expand_dims(tracer, one, [one.ndim + d for d in range(other.ndim)])
    return apply_ufunc(tracer, ufunc, [wide_one, other], **keywords)


@ufunc_method("at")
def _ufunc_at(run: Any, ufunc: np.ufunc, base: Any, items: Any, value: Any = None) -> None:
    from distspmd.frontend.from_numpy import indexing

    tracer = run.tracer
    if ufunc in (np.subtract,):
        value, ufunc = combine(tracer, np.negative, [value]), np.add
    if ufunc not in (np.add, np.multiply, np.maximum, np.minimum, np.bitwise_or, np.bitwise_and):
        tracer.refuse(f"np.{ufunc.__name__}.at is not covered")
    indexing.accumulate(tracer, base, items, value, ufunc.__name__)


# -- places of extremes ---------------------------------------------------------------------------


def _place(name: str) -> Any:
    def call(
        run: Any, value: Any, axis: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        tracer = run.tracer
        tensor = tracer.tensor(value)
        if tensor.mask is not None:
            tracer.refuse("the place of an extreme among the elements that a mask chooses")
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
        found.is_index = True  # type: ignore[attr-defined]
        return finished(run, found, out)

    return call


function(np.argmax, method="argmax")(_place("maximum"))
function(np.argmin, method="argmin")(_place("minimum"))


# -- statistics -----------------------------------------------------------------------------------


def count_of(run: Any, tensor: Tensor, axis: Any, where: Any = True) -> Any:
    """How many elements are reduced: a whole number, or a tensor where a mask chooses."""
    if tensor.mask is not None:
        return reduce(run, "add", converted(run.tracer, tensor.mask, np.int64), None)
    if where is not True:
        truth = converted(
            run.tracer, run.tracer.broadcast(run.tracer.tensor(where), tensor.shape), np.int64
        )
        return reduce(run, "add", truth, axis)
    return size_of([tensor.shape[d] for d in axes_of(run, tensor, axis)])


@function(np.mean, method="mean")
def mean(
    run: Any,
    value: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    where: Any = True,
) -> Any:
    """``np.mean``."""
    tracer = run.tracer
    tensor = tracer.tensor(value)
    kind = dtype_of(run, dtype, np.float64 if tensor.dtype.kind in "biu" else tensor.dtype)
    total = reduce(run, "add", tensor, axis, keepdims=keepdims, dtype=kind, where=where)
    count = count_of(run, tensor, axis, where)
    if isinstance(count, Tensor) and keepdims:
        count = expand_dims(tracer, count, axes_of(run, tensor, axis))
    found = combine(tracer, np.divide, [total, count])
    return finished(run, converted(tracer, found, kind), out)


def variance(
    run: Any, value: Any, axis: Any, ddof: Any, keepdims: bool, dtype: Any = None
) -> Tensor:
    """The variance, by the mean first."""
    tracer = run.tracer
    tensor = tracer.tensor(value)
    kind = dtype_of(run, dtype, np.float64 if tensor.dtype.kind in "biu" else tensor.dtype)
    tensor = converted(tracer, tensor, kind)
    if tensor.mask is not None:
        centre = tracer.stored_anew(mean(run, tensor))
        centred = combine(tracer, np.subtract, [tensor, centre])
    else:
        centre = tracer.stored_anew(mean(run, tensor, axis, keepdims=True))
        centred = combine(tracer, np.subtract, [tensor, centre])
    if kind.kind == "c":
        real = apply_ufunc(tracer, np.absolute, [centred])
        square = combine(tracer, np.multiply, [real, real])
    else:
        square = combine(tracer, np.multiply, [centred, centred])
    total = reduce(run, "add", square, axis, keepdims=keepdims)
    count = count_of(run, tensor, axis)
    if isinstance(count, Tensor):
        left = combine(tracer, np.subtract, [count, ddof])
    else:
        import ast

        left = run.binary(ast.Sub(), count, ddof)
    return converted(tracer, combine(tracer, np.divide, [total, left]), total.dtype)


@function(np.var, method="var")
def _var(
    run: Any,
    value: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    correction: Any = None,
) -> Any:
    ddof = ddof if correction is None else correction
    return finished(run, variance(run, value, axis, ddof, keepdims, dtype), out)


@function(np.std, method="std")
def _std(
    run: Any,
    value: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    correction: Any = None,
) -> Any:
    ddof = ddof if correction is None else correction
    found = combine(run.tracer, np.sqrt, [variance(run, value, axis, ddof, keepdims, dtype)])
    return finished(run, found, out)


@function(np.average)
def _average(
    run: Any,
    value: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    tracer = run.tracer
    if weights is None:
        found = mean(run, value, axis, keepdims=keepdims)
        return (found, count_of(run, tracer.tensor(value), axis)) if returned else found
    tensor, weight = tracer.tensor(value), tracer.tensor(weights)
    if weight.ndim != tensor.ndim:
        (d,) = axes_of(run, tensor, axis)
        weight = reshape(tracer, weight, [n if i == d else 1 for i, n in enumerate(tensor.shape)])
    kind = np.result_type(
        tensor.dtype, weight.dtype, *([np.float64] if tensor.dtype.kind in "biu" else [])
    )
    product = converted(tracer, combine(tracer, np.multiply, [tensor, weight]), kind)
    total = reduce(run, "add", product, axis, keepdims=keepdims)
    whole = tracer.broadcast(weight, tensor.shape)
    scale = reduce(run, "add", converted(tracer, whole, kind), axis, keepdims=keepdims)
    found = combine(tracer, np.divide, [total, scale])
    return (found, scale) if returned else found


@function(np.count_nonzero)
def _count_nonzero(run: Any, value: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    truths = converted(run.tracer, converted(run.tracer, value, bool), np.int64)
    return reduce(run, "add", truths, axis, keepdims=keepdims)


@function(np.ptp)
def _ptp(run: Any, value: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    high = reduce(run, "maximum", value, axis, keepdims=keepdims)
    low = reduce(run, "minimum", value, axis, keepdims=keepdims)
    return finished(run, combine(run.tracer, np.subtract, [high, low]), out)


def _without_nan(name: str, neutral: float) -> Any:
    def call(run: Any, value: Any, axis: Any = None, **options: Any) -> Any:
        tracer = run.tracer
        tensor = tracer.tensor(value)
        if tensor.dtype.kind not in "fc":
            return run.call(getattr(np, name.removeprefix("nan")), [tensor, axis], options)
        is_number = combine(tracer, np.logical_not, [combine(tracer, np.isnan, [tensor])])
        filled = choose(tracer, is_number, tensor, tracer.tensor(tensor.dtype.type(neutral)))
        if name in ("nanmax", "nanmin"):
            found = reduce(
                run, "maximum" if name == "nanmax" else "minimum", filled, axis, **options
            )
            there = reduce(run, "logical_or", is_number, axis, **options)
            return choose(tracer, there, found, tracer.tensor(tensor.dtype.type(np.nan)))
        if name in ("nansum", "nanprod"):
            return reduce(run, "add" if name == "nansum" else "multiply", filled, axis, **options)
        count = reduce(run, "add", converted(tracer, is_number, np.int64), axis, **options)
        total = reduce(run, "add", filled, axis, **options)
        return converted(tracer, combine(tracer, np.divide, [total, count]), tensor.dtype)

    return call


for _name, _neutral_value in (
    ("nansum", 0.0),
    ("nanprod", 1.0),
    ("nanmax", -np.inf),
    ("nanmin", np.inf),
    ("nanmean", 0.0),
):
    function(getattr(np, _name))(_without_nan(_name, _neutral_value))

__all__ = ["sympy"]
