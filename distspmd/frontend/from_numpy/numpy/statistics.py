"""Statistics: means, variances, counts, and reductions that leave NaN out."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.arithmetic import apply_ufunc, choose, combine, converted
from distspmd.frontend.from_numpy.arrays.choosing import in_one_dimension
from distspmd.frontend.from_numpy.arrays.half_numbers import HALF
from distspmd.frontend.from_numpy.arrays.shapes import expand_dims, reshape, size_of
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.numpy.creation import dtype_of
from distspmd.frontend.from_numpy.numpy.reductions import axes_of, count_at_most, finished, reduce
from distspmd.frontend.from_numpy.numpy.registry import function

# -- statistics -----------------------------------------------------------------------------------


def count_of(run: Context, tensor: Tensor, axis: Any, where: Any = True) -> Any:
    """How many elements are reduced: a whole number, or a tensor where a mask chooses."""
    tensor = in_one_dimension(run.tracer, tensor)
    if tensor.mask is not None:
        axes = axes_of(run, tensor, axis)
        by_rows = tensor.mask.ndim < tensor.ndim
        if by_rows and 0 not in axes:
            return size_of([tensor.shape[d] for d in axes])
        chosen = reduce(run, "add", converted(run.tracer, tensor.mask, np.int64), None)
        rest = size_of([tensor.shape[d] for d in axes[1:]]) if by_rows else 1
        return combine(run.tracer, np.multiply, [chosen, rest])
    if where is not True:
        truth = converted(
            run.tracer, run.tracer.broadcast(run.tracer.tensor(where), tensor.shape), np.int64
        )
        return reduce(run, "add", truth, axis)
    return size_of([tensor.shape[d] for d in axes_of(run, tensor, axis)])


@function(np.mean, method="mean")
def mean(
    run: Context,
    value: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    where: Any = True,
) -> Any:
    """``np.mean``."""
    tracer = run.tracer
    tensor = in_one_dimension(tracer, tracer.tensor(value))
    kind = dtype_of(run, dtype, np.float64 if tensor.dtype.kind in "biu" else tensor.dtype)
    added = np.dtype(np.float32) if tensor.dtype == kind == HALF else kind
    total = reduce(run, "add", tensor, axis, keepdims=keepdims, dtype=added, where=where)
    count = count_of(run, tensor, axis, where)
    if isinstance(count, Tensor) and count.ndim and keepdims:
        count = expand_dims(tracer, count, axes_of(run, tensor, axis))
    found = combine(tracer, np.divide, [total, count])
    return finished(run, converted(tracer, found, kind), out)


def variance(
    run: Context, value: Any, axis: Any, ddof: Any, keepdims: bool, dtype: Any = None
) -> Tensor:
    """The variance, by the mean first."""
    tracer = run.tracer
    tensor = in_one_dimension(tracer, tracer.tensor(value))
    kind = dtype_of(run, dtype, np.float64 if tensor.dtype.kind in "biu" else tensor.dtype)
    tensor = converted(tracer, tensor, kind)
    if tensor.mask is not None and tensor.mask.ndim == tensor.ndim:
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


def _spread(each: Any, name: str, is_root: bool) -> None:
    """Register the variance, or its root."""

    @function(each, method=name)
    def handler(
        run: Context,
        value: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: bool = False,
        *,
        correction: Any = None,
        where: Any = True,
    ) -> Any:
        ddof = ddof if correction is None else correction
        if where is not True:
            given = [value, axis, dtype, ddof, keepdims, where, is_root]
            return finished(run, run.call(rarer_forms.spread_where, given, {}), out)
        found = variance(run, value, axis, ddof, keepdims, dtype)
        return finished(run, combine(run.tracer, np.sqrt, [found]) if is_root else found, out)


_spread(np.var, "var", is_root=False)
_spread(np.std, "std", is_root=True)


@function(np.average)
def _average(
    run: Context,
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
        if isinstance(axis, tuple | list) and len(axis) > 1:
            given = [value, axis, weights, returned, keepdims]
            return run.call(rarer_forms.average_along, given, {})
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
def _count_nonzero(run: Context, value: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    truths = converted(run.tracer, converted(run.tracer, value, bool), np.int64)
    found = reduce(run, "add", truths, axis, keepdims=keepdims)
    count_at_most(run, found, size_of(truths.shape))
    return found


@function(np.ptp)
def _ptp(
    run: Context, value: Any, axis: Any = None, out: Any = None, keepdims: bool = False
) -> Any:
    high = reduce(run, "maximum", value, axis, keepdims=keepdims)
    low = reduce(run, "minimum", value, axis, keepdims=keepdims)
    return finished(run, combine(run.tracer, np.subtract, [high, low]), out)


def _without_nan(name: str, neutral: float) -> Any:
    def call(run: Context, value: Any, axis: Any = None, **options: Any) -> Any:
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
