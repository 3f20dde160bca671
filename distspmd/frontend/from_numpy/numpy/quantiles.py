"""Medians, quantiles and percentiles: lines are put in order first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.lines import cpp, run_on_lines
from distspmd.frontend.from_numpy.arrays.shapes import expand_dims, reshape, size_of, transpose
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.reductions import axes_of, finished
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.numpy.sorting import sorted_lines

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
        value: Any,
        axis: Any = None,
        out: Any = None,
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
        lines = sorted_lines(run, lines, lines.ndim - 1)
        length = cpp(lines.shape[-1])
        code = (
            f"*_result0 = distspmd::lines::median<std::decay_t<decltype(*_result0)>>(_line0, "
            f"{length}, {str(skips).lower()});"
        )
        (found,) = run_on_lines(
            tracer, called.__name__, lines.shape[:-1], [lines], [], [(None, kind)], code
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
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: Any = None,
    ) -> Any:
        tracer = run.tracer
        if weights is not None:
            tracer.refuse(f"np.{called.__name__} with weights=")
        tensor, asked = tracer.tensor(value), tracer.tensor(q)
        _check_shares(run, f"np.{called.__name__}", tensor, asked, q, method, scale)
        kind = _type_of_result(run, called, tensor, asked, q, method, scale)
        axes = axes_of(run, tensor, axis)
        lines = merged(run, tensor, axes)
        lines = sorted_lines(run, lines, lines.ndim - 1)
        share = converted(tracer, asked, np.float64)
        if scale != 1:
            share = combine(tracer, np.divide, [share, scale])
        share = reshape(tracer, tracer.stored(share), [size_of(asked.shape)])
        many = share.shape[0]
        code = (
            f"distspmd::lines::quantiles(_line0, {cpp(lines.shape[-1])}, _whole0, {cpp(many)}, "
            f"_result0, distspmd::lines::Quantile::{method}, {str(skips).lower()});"
        )
        (found,) = run_on_lines(
            tracer, called.__name__, lines.shape[:-1], [lines], [share], [(many, kind)], code
        )
        last = found.ndim - 1
        result = transpose(tracer, found, [last, *range(last)])
        if asked.ndim == 0:
            result = reshape(tracer, result, result.shape[1:])
        if keepdims is True:
            result = expand_dims(tracer, result, [d + asked.ndim for d in axes])
        return finished(run, result, out)

    return call


def _check_shares(
    run: Context, name: str, tensor: Tensor, asked: Tensor, q: Any, method: str, scale: int
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
    run: Context, called: Any, tensor: Tensor, asked: Tensor, q: Any, method: str, scale: int
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
