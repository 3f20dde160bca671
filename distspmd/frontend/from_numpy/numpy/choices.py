"""Functions that choose or compare element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.arithmetic import choose, combine, converted
from distspmd.frontend.from_numpy.arrays.choosing import true_indices
from distspmd.frontend.from_numpy.arrays.complex_parts import apply_imag, apply_real, from_parts
from distspmd.frontend.from_numpy.arrays.kinds import of_numpy
from distspmd.frontend.from_numpy.arrays.values import View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.numpy.reductions import finished
from distspmd.frontend.from_numpy.numpy.registry import METHODS, function
from distspmd.frontend.tensor_ir.whole_numbers import same

# -- choices --------------------------------------------------------------------------------------


@function(np.where)
def _where(run: Context, condition: object, *values: object) -> Any:
    if not values:
        return true_indices(run.tracer, run.tracer.tensor(condition))
    one, other = (run.tracer.tensor(v) for v in values)
    return of_numpy(choose(run.tracer, run.tracer.tensor(condition), one, other))


@function(np.select)
def _select(run: Context, conditions: Any, values: Any, default: Any = 0) -> Any:
    tracer = run.tracer
    found = tracer.tensor(default)
    kind = np.result_type(
        *(t.dtype if t.weak is None else t.weak(0) for t in map(tracer.tensor, [*values, default]))
    )
    for condition, value in reversed(list(zip(conditions, values, strict=True))):
        found = choose(tracer, tracer.tensor(condition), tracer.tensor(value), found, kind)
    return of_numpy(found)


@function(np.clip)
def _clip(
    run: Context,
    value: object,
    a_min: object = None,
    a_max: object = None,
    out: object = None,
    **options: object,
) -> Any:
    low, high = options.get("min", a_min), options.get("max", a_max)
    found = value
    if low is not None:
        found = combine(run.tracer, np.maximum, [found, low])
    if high is not None:
        found = combine(run.tracer, np.minimum, [found, high])
    return finished(run, of_numpy(run.tracer.tensor(found)), out)


def _method_clip(
    run: Context,
    base: object,
    min: object = None,
    max: object = None,
    out: object = None,
) -> Any:
    return _clip(run, base, min, max, out)


METHODS["clip"] = _method_clip


@function(np.round, np.around, method="round")
def _round(run: Context, value: Any, decimals: Any = 0, out: object = None) -> Any:
    tracer = run.tracer
    tensor = of_numpy(tracer.tensor(value))
    if tensor.dtype.kind == "b":
        tensor = converted(tracer, tensor, np.float16)
    if tensor.dtype.kind in "iu":
        if decimals >= 0:
            return finished(run, tensor, out)
        scale = 10.0**-decimals
        found = combine(tracer, np.rint, [combine(tracer, np.divide, [tensor, scale])])
        found = converted(tracer, combine(tracer, np.multiply, [found, scale]), tensor.dtype)
        return finished(run, found, out)
    if tensor.dtype.kind == "c":
        parts = [_round(run, part(tensor), decimals) for part in (apply_real, apply_imag)]
        return finished(run, from_parts(*parts), out)
    if decimals == 0:
        return finished(run, combine(tracer, np.rint, [tensor]), out)
    factor = tensor.dtype.type(10.0 ** abs(decimals))
    scale, back = (np.multiply, np.divide) if decimals > 0 else (np.divide, np.multiply)
    scaled = combine(tracer, np.rint, [combine(tracer, scale, [tensor, factor])])
    return finished(run, combine(tracer, back, [scaled, factor]), out)


@function(np.nan_to_num)
def _nan_to_num(
    run: Context,
    value: object,
    copy: bool = True,
    nan: object = 0.0,
    posinf: object = None,
    neginf: object = None,
) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if not copy:
        found = _nan_to_num(run, value, True, nan, posinf, neginf)
        if not isinstance(value, View):
            return found
        tracer.assign(value, found)
        return value
    if tensor.dtype.kind == "c":
        ends = (True, nan, posinf, neginf)
        return from_parts(*(_nan_to_num(run, p(tensor), *ends) for p in (apply_real, apply_imag)))
    if tensor.dtype.kind != "f":
        return tensor
    info = np.finfo(tensor.dtype)
    kind = tensor.dtype.type
    limits = nan, info.max if posinf is None else posinf, info.min if neginf is None else neginf
    instead, high, low = (
        tracer.broadcast(converted(tracer, v, kind), tensor.shape) for v in limits
    )
    found = choose(tracer, combine(tracer, np.isnan, [tensor]), instead, tensor)
    found = choose(tracer, combine(tracer, np.equal, [tensor, np.inf]), high, found)
    return choose(tracer, combine(tracer, np.equal, [tensor, -np.inf]), low, found)


@function(np.isclose)
def _isclose(
    run: Context,
    a: object,
    b: object,
    rtol: object = 1e-5,
    atol: object = 1e-8,
    equal_nan: bool = False,
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
    return of_numpy(found)


@function(np.allclose)
def _allclose(run: Context, a: object, b: object, *rest: object, **options: object) -> Any:
    return run.call(all, [_isclose(run, a, b, *rest, **options)], {})


@function(np.array_equal)
def _array_equal(run: Context, a: object, b: object, equal_nan: bool = False) -> Any:
    if a is None or b is None:
        return a is b
    if equal_nan:
        return run.call(rarer_forms.equal_with_nan, [a, b], {})
    one, other = run.tracer.tensor(a), run.tracer.tensor(b)
    if one.ndim != other.ndim or any(
        isinstance(n, int) and isinstance(m, int) and n != m
        for n, m in zip(one.shape, other.shape, strict=True)
    ):
        return False
    if not all(same(n, m) for n, m in zip(one.shape, other.shape, strict=True)):
        return run.call(rarer_forms.equal_in_shape, [a, b], {})
    return run.call(all, [combine(run.tracer, np.equal, [one, other])], {})
