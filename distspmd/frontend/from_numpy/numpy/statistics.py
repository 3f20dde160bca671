"""Statistics: means, variances, counts, and reductions that leave NaN out."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.arithmetic import apply_ufunc, choose, combine, converted
from distspmd.frontend.from_numpy.arrays.choosing import in_one_dimension
from distspmd.frontend.from_numpy.arrays.comparisons import HALF
from distspmd.frontend.from_numpy.arrays.lines import cpp, run_on_lines
from distspmd.frontend.from_numpy.arrays.shapes import expand_dims, reshape, size_of, transpose
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.numpy.creation import dtype_of
from distspmd.frontend.from_numpy.numpy.products import contract
from distspmd.frontend.from_numpy.numpy.reductions import axes_of, count_at_most, finished, reduce
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.numpy.sorting import in_order

# -- statistics -----------------------------------------------------------------------------------


def count_of(run: Context, tensor: Tensor, axis: object, where: object = True) -> Any:
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
    value: object,
    axis: object = None,
    dtype: object = None,
    out: object = None,
    keepdims: bool = False,
    where: object = True,
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
    run: Context, value: object, axis: object, ddof: object, keepdims: bool, dtype: object = None
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


def _spread(each: object, name: str, is_root: bool) -> None:
    """Register the variance, or its root."""

    @function(each, method=name)
    def handler(
        run: Context,
        value: object,
        axis: object = None,
        dtype: object = None,
        out: object = None,
        ddof: object = 0,
        keepdims: bool = False,
        *,
        correction: object = None,
        where: object = True,
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
    value: object,
    axis: object = None,
    weights: object = None,
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
def _count_nonzero(
    run: Context, value: object, axis: object = None, *, keepdims: bool = False
) -> Any:
    truths = converted(run.tracer, converted(run.tracer, value, bool), np.int64)
    found = reduce(run, "add", truths, axis, keepdims=keepdims)
    count_at_most(run, found, size_of(truths.shape))
    return found


@function(np.ptp)
def _ptp(
    run: Context, value: object, axis: object = None, out: object = None, keepdims: bool = False
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


def _as_rows(run: Context, value: object, rowvar: bool, kind: object) -> Tensor:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if tensor.ndim > 2:
        tracer.refuse("m has more than 2 dimensions")
    if tensor.ndim < 2:
        tensor = reshape(tracer, tracer.stored(tensor), [1, *(tensor.shape or (1,))])
    elif not rowvar and tracer.tensor(value).ndim != 1:
        tensor = transpose(tracer, tensor)
    return converted(tracer, tensor, kind)


@function(np.cov)
def _cov(
    run: Context,
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: object = None,
    fweights: object = None,
    aweights: object = None,
    *,
    dtype: Any = None,
) -> Tensor:
    tracer = run.tracer
    if fweights is not None or aweights is not None:
        given = [m, y, rowvar, bias, ddof, fweights, aweights, dtype]
        return run.call(rarer_forms.weighted_covariance, given, {})  # type: ignore[no-any-return]
    values = [m] if y is None else [m, y]
    kinds = [tracer.tensor(v).dtype for v in values]
    kind = np.dtype(dtype) if dtype is not None else np.result_type(*kinds, np.float64)
    rows = [_as_rows(run, v, rowvar, kind) for v in values]
    x: Tensor = rows[0] if y is None else run.call(np.concatenate, [rows], {"axis": 0})
    x = tracer.stored(x)
    centre = tracer.stored_anew(mean(run, x, 1, keepdims=True), "centre")
    centred = tracer.stored_anew(combine(tracer, np.subtract, [x, centre]), "centred")
    other = centred
    if kind.kind == "c":
        other = tracer.stored_anew(combine(tracer, np.conjugate, [centred]), "conjugates")
    products = contract(run, ["ak", "bk"], "ab", [centred, other])
    own = (0 if bias else 1) if ddof is None else ddof
    count = run.binary(ast.Sub(), x.shape[1], own)
    scale = combine(tracer, np.divide, [1, converted(tracer, count, np.float64)])
    found = combine(tracer, np.multiply, [products, scale])
    return run.call(np.squeeze, [found], {})  # type: ignore[no-any-return]


@function(np.corrcoef)
def _corrcoef(
    run: Context, x: object, y: object = None, rowvar: bool = True, *, dtype: object = None
) -> Tensor:
    tracer = run.tracer
    found: Tensor = tracer.stored_anew(_cov(run, x, y, rowvar, dtype=dtype), "covariances")
    if found.ndim == 0:
        return combine(tracer, np.divide, [found, found])
    spread = combine(tracer, np.sqrt, [run.call(np.real, [run.call(np.diag, [found], {})], {})])
    spread = tracer.stored_anew(spread, "deviations")
    for d in (1, 0):
        found = combine(tracer, np.divide, [found, expand_dims(tracer, spread, [d])])
    if found.dtype.kind != "c":
        return run.call(np.clip, [found, -1, 1], {})  # type: ignore[no-any-return]
    parts = [run.call(np.clip, [run.call(f, [found], {}), -1, 1], {}) for f in (np.real, np.imag)]
    imaginary = combine(tracer, np.multiply, [parts[1], np.complex64(1j)])
    return converted(tracer, combine(tracer, np.add, [parts[0], imaginary]), found.dtype)


# -- without NaN ----------------------------------------------------------------------------------


def _variance(name: str) -> Any:
    plain = getattr(np, name.removeprefix("nan"))

    def call(
        run: Context,
        a: object,
        axis: object = None,
        dtype: object = None,
        out: object = None,
        ddof: object = 0,
        keepdims: bool = False,
        *,
        correction: object = None,
    ) -> Any:
        tracer = run.tracer
        tensor = tracer.tensor(a)
        ddof = ddof if correction is None else correction
        keeps = keepdims is True
        if tensor.dtype.kind not in "fc":
            options = {"axis": axis, "dtype": dtype, "ddof": ddof, "keepdims": keeps}
            return finished(run, run.call(plain, [tensor], options), out)
        if dtype is not None:
            tensor = converted(tracer, tensor, dtype)
        tensor = tracer.stored(tensor)
        is_number = combine(tracer, np.logical_not, [combine(tracer, np.isnan, [tensor])])
        zero = tracer.tensor(tensor.dtype.type(0))
        filled = choose(tracer, is_number, tensor, zero)
        numbers = converted(tracer, is_number, np.int64)

        def mean_of_rows() -> Tensor:
            total = reduce(run, "add", filled, axis, keepdims=True)
            count = reduce(run, "add", numbers, axis, keepdims=True)
            found = converted(tracer, combine(tracer, np.divide, [total, count]), tensor.dtype)
            result: Tensor = tracer.stored_anew(found, "centre")
            return result

        centred = combine(tracer, np.subtract, [tensor, mean_of_rows()])
        size = combine(tracer, np.absolute, [choose(tracer, is_number, centred, zero)])
        total = reduce(run, "add", combine(tracer, np.multiply, [size, size]), axis, keepdims=keeps)
        count = tracer.stored_anew(reduce(run, "add", numbers, axis, keepdims=keeps))
        left = combine(tracer, np.subtract, [count, ddof])
        found = converted(tracer, combine(tracer, np.divide, [total, left]), total.dtype)
        enough = combine(tracer, np.greater, [left, 0])
        nan = tracer.tensor(found.dtype.type(np.nan))
        found = choose(tracer, enough, found, nan)
        if name == "nanstd":
            found = combine(tracer, np.sqrt, [found])
        return finished(run, found, out)

    return call


function(np.nanvar)(_variance("nanvar"))
function(np.nanstd)(_variance("nanstd"))


def _place(name: str, filler: float) -> Any:
    plain = getattr(np, name.removeprefix("nan"))

    def call(
        run: Context, a: object, axis: object = None, out: object = None, *, keepdims: bool = False
    ) -> Any:
        tracer = run.tracer
        tensor = tracer.tensor(a)
        if tensor.dtype.kind == "f":
            is_nan = combine(tracer, np.isnan, [tensor])
            tensor = choose(tracer, is_nan, tracer.tensor(tensor.dtype.type(filler)), tensor)
        return run.call(plain, [tensor], {"axis": axis, "out": out, "keepdims": keepdims is True})

    return call


function(np.nanargmax)(_place("nanargmax", -np.inf))
function(np.nanargmin)(_place("nanargmin", np.inf))


METHODS_OF_QUANTILES = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation"),
    *("interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased"),
    *("normal_unbiased", "lower", "higher", "midpoint", "nearest"),
)


def merged(run: Context, tensor: Tensor, axes: Sequence[int]) -> Tensor:
    """A tensor whose last dimension has the elements of some dimensions."""
    tracer = run.tracer
    kept = [d for d in range(tensor.ndim) if d not in axes]
    moved = transpose(tracer, tensor, [*kept, *axes])
    if len(axes) == 1:
        return moved
    shape = [moved.shape[d] for d in range(len(kept))]
    return reshape(tracer, moved, [*shape, size_of([tensor.shape[d] for d in axes])])


def _median(skips: bool) -> Any:
    called = np.nanmedian if skips else np.median

    def call(
        run: Context,
        value: object,
        axis: object = None,
        out: object = None,
        overwrite_input: bool = False,
        keepdims: bool = False,
    ) -> Any:
        tracer = run.tracer
        tensor = tracer.tensor(value)
        if tensor.dtype.kind == "c":
            tracer.refuse(f"np.{called.__name__} of complex numbers")
        axes = axes_of(run, tensor, axis)
        kind = np.asarray(called(np.ones(2, tensor.dtype))).dtype
        if not axes:
            return finished(run, converted(tracer, tensor, kind), out)
        lines = merged(run, tensor, axes)
        length = lines.shape[-1]
        is_known = isinstance(length, int) and not skips
        middle = [(length - 1) // 2, length // 2, length - 1] if is_known else None
        lines, more, line = in_order(run, lines, middle)
        code = (
            f"*_result0 = distspmd::lines::median<std::decay_t<decltype(*_result0)>>({line}, "
            f"{cpp(length)}, {str(skips).lower()});"
        )
        (found,) = run_on_lines(
            tracer, called.__name__, lines.shape[:-1], [lines], more, [(None, kind)], code
        )
        result: Tensor = expand_dims(tracer, found, axes) if keepdims is True else found
        return finished(run, result, out)

    return call


function(np.median)(_median(False))
function(np.nanmedian)(_median(True))


def _quantiles(called: Any, skips: bool, scale: int) -> Any:
    def call(
        run: Context,
        value: Any,
        q: Any,
        axis: Any = None,
        out: object = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: object = None,
    ) -> Any:
        tracer = run.tracer
        if weights is not None:
            tracer.refuse(f"np.{called.__name__} with weights=")
        tensor, asked = tracer.tensor(value), tracer.tensor(q)
        _check_shares(run, f"np.{called.__name__}", tensor, asked, q, method, scale)
        kind = _type_of_result(run, called, tensor, asked, q, method, scale)
        axes = axes_of(run, tensor, axis)
        lines = merged(run, tensor, axes)
        length = lines.shape[-1]
        is_known = isinstance(length, int) and not skips and not isinstance(q, Tensor)
        places = _around(length, np.ravel(q) / scale) if is_known else None
        lines, more, line = in_order(run, lines, places)
        share = converted(tracer, asked, np.float64)
        if scale != 1:
            share = combine(tracer, np.divide, [share, scale])
        share = reshape(tracer, tracer.stored(share), [size_of(asked.shape)])
        many = share.shape[0]
        code = (
            f"distspmd::lines::quantiles({line}, {cpp(length)}, _whole{len(more)}, {cpp(many)}, "
            f"_result0, distspmd::lines::Quantile::{method}, {str(skips).lower()});"
        )
        (found,) = run_on_lines(
            tracer, called.__name__, lines.shape[:-1], [lines], [*more, share], [(many, kind)], code
        )
        last = found.ndim - 1
        result = transpose(tracer, found, [last, *range(last)])
        if asked.ndim == 0:
            result = reshape(tracer, result, result.shape[1:])
        if keepdims is True:
            result = expand_dims(tracer, result, [d + asked.ndim for d in axes])
        return finished(run, result, out)

    return call


def _around(length: int, shares: Iterable[float]) -> list[int]:
    """Places of a line in order that its quantiles may be made of, by any method, and the last."""
    found = {length - 1}
    for share in shares:
        place = int(share * length)
        found |= {min(max(place + k, 0), length - 1) for k in range(-3, 4)}
    return sorted(found)


def _check_shares(
    run: Context, name: str, tensor: Tensor, asked: Tensor, q: object, method: str, scale: int
) -> None:
    refuse = run.tracer.refuse
    if method not in METHODS_OF_QUANTILES:
        refuse(f"{name}: there is no method {method!r}")
    if not isinstance(q, Tensor):
        known = np.asarray(q, dtype=float)
        if not np.all((known >= 0) & (known <= scale)):
            refuse(f"{name}: q has to be in the range [0, {scale}]")
    if tensor.dtype.kind == "c":
        refuse(f"{name} of complex numbers, which have no order")
    if asked.ndim > 1:
        refuse(f"{name}: q has to have one dimension at most")


def _type_of_result(
    run: Context, called: Any, tensor: Tensor, asked: Tensor, q: object, method: str, scale: int
) -> Any:
    sample: Any = np.full((1,) * asked.ndim, 0.5 * scale, np.result_type(asked.dtype, np.float32))
    if asked.weak is not None and asked.ndim == 0:
        sample = 0.5 * scale
    try:
        found = called(np.ones(3, tensor.dtype), sample, method=method)
    except (TypeError, ValueError) as problem:
        run.tracer.refuse(f"np.{called.__name__}: {problem}")
    return np.asarray(found).dtype


function(np.quantile)(_quantiles(np.quantile, False, 1))
function(np.percentile)(_quantiles(np.percentile, False, 100))
function(np.nanquantile)(_quantiles(np.nanquantile, True, 1))
function(np.nanpercentile)(_quantiles(np.nanpercentile, True, 100))
