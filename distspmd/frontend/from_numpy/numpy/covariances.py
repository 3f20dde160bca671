"""Covariances, and statistics that leave NaN out."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.arithmetic import choose, combine, converted
from distspmd.frontend.from_numpy.arrays.shapes import expand_dims, reshape, transpose
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.numpy.products import contract
from distspmd.frontend.from_numpy.numpy.reductions import finished, reduce
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.numpy.statistics import mean


def _as_rows(run: Context, value: Any, rowvar: bool, kind: Any) -> Tensor:
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
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
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
    run: Context, x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None
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
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: bool = False,
        *,
        correction: Any = None,
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
        run: Context, a: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False
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
