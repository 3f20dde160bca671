"""Differences and gradients."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.shapes import broadcast_to, normal_axis, reshape
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.numpy.joins import concatenate
from distspmd.frontend.from_numpy.numpy.registry import function

# -- differences and padding ----------------------------------------------------------------------


@function(np.diff)
def _diff(run: Context, value: object, n: Any = 1, axis: object = -1, **options: object) -> Any:
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
def _ediff1d(run: Context, value: object, to_end: object = None, to_begin: object = None) -> Any:
    if to_end is not None or to_begin is not None:
        return run.call(rarer_forms.ediff1d, [value, to_end, to_begin], {})
    return _diff(run, reshape(run.tracer, run.tracer.tensor(value), [-1]))


@function(np.gradient)
def _gradient(
    run: Context, value: object, *spacing: object, axis: object = None, edge_order: int = 1
) -> Any:
    tracer = run.tracer
    tensor: Tensor = tracer.stored(tracer.tensor(value))
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
    if edge_order not in (1, 2):
        tracer.refuse("'edge_order' greater than 2 not supported")
    kind = np.dtype(np.float64) if tensor.dtype.kind in "biu" else tensor.dtype
    tensor = converted(tracer, tensor, kind)
    found = []
    for d, step in zip(axes, steps, strict=True):
        if edge_order == 2 or tracer.tensor(step).ndim:
            found.append(_gradient_with_weights(run, tensor, d, step, edge_order))
        else:
            found.append(_gradient_along(run, tensor, d, step))
    return found[0] if len(found) == 1 else tuple(found)


def _gradient_with_weights(run: Context, tensor: Tensor, d: int, step: object, order: int) -> Any:
    """A gradient between points of any distances, or with parabolas at the ends."""
    tracer = run.tracer
    steps = tracer.tensor(step)
    if steps.ndim > 1:
        tracer.refuse("distances must be either scalars or 1d")
    if steps.ndim:
        steps = tracer.stored(_diff(run, steps))
    shape = [1] * tensor.ndim
    shape[d] = -1

    def gaps(*ends: object) -> Any:
        if not steps.ndim:
            return steps
        return reshape(tracer, tracer.stored(indexing.read(tracer, steps, slice(*ends))), shape)

    def along(*ends: object) -> Any:
        return indexing.read(tracer, tensor, (*(slice(None),) * d, slice(*ends)))

    before, after = gaps(None, -1), gaps(1, None)
    inside = [along(None, -2), along(1, -1), along(2, None)]
    first = _end_slope(run, [along(k, k + 1) for k in range(order + 1)], gaps(0, 1), gaps(1, 2))
    ends = [along(k - 1, k or None) for k in range(0, -order - 1, -1)]
    last = _end_slope(run, ends, gaps(-1, None), gaps(-2, -1))
    middle = _middle_slope(run, inside, before, after)
    whole = concatenate(run, [first, middle, combine(tracer, np.negative, [last])], d)
    return converted(tracer, whole, tensor.dtype)


def _weighted(run: Context, pairs: Sequence[tuple[Any, Any]]) -> Any:
    """The sum of values with weights."""
    terms = [combine(run.tracer, np.multiply, [weight, value]) for weight, value in pairs]
    return functools.reduce(lambda x, y: combine(run.tracer, np.add, [x, y]), terms)


def _over(run: Context, one: object, *others: object) -> Any:
    for other in others:
        one = combine(run.tracer, np.divide, [one, other])
    return one


def _middle_slope(run: Context, values: Sequence[Any], h: object, k: object) -> Any:
    """The slope in the middle of three points, with the distances before and behind it."""
    whole, difference = (combine(run.tracer, u, [k, h]) for u in (np.add, np.subtract))
    minus = combine(run.tracer, np.negative, [k])
    weights = _over(run, minus, h, whole), _over(run, difference, h, k), _over(run, h, k, whole)
    return _weighted(run, [*zip(weights, values, strict=True)])


def _end_slope(run: Context, values: Sequence[Any], h: object, k: object) -> Any:
    """The slope at the first of two or three points."""
    if len(values) == 2:
        return _over(run, combine(run.tracer, np.subtract, [values[1], values[0]]), h)
    whole = combine(run.tracer, np.add, [h, k])
    twice = combine(run.tracer, np.negative, [combine(run.tracer, np.add, [whole, h])])
    minus = combine(run.tracer, np.negative, [h])
    weights = _over(run, twice, h, whole), _over(run, whole, h, k), _over(run, minus, k, whole)
    return _weighted(run, [*zip(weights, values, strict=True)])


def _gradient_along(run: Context, tensor: Tensor, d: int, step: object) -> Tensor:
    tracer = run.tracer
    target: View = tracer.empty(tracer.target or "gradient", tensor.shape, tensor.dtype)
    lead = (slice(None),) * d

    def part(base: Tensor, *ends: object) -> Tensor:
        return indexing.read(tracer, base, (*lead, slice(*ends)))

    for where, up, down, width in (
        ((1, -1), (2, None), (None, -2), 2.0),
        ((None, 1), (1, 2), (None, 1), 1.0),
        ((-1, None), (-1, None), (-2, -1), 1.0),
    ):
        gap = combine(tracer, np.subtract, [part(tensor, *up), part(tensor, *down)])
        scale = combine(tracer, np.multiply, [width, step])
        slope = combine(tracer, np.divide, [gap, scale])
        written = part(target, *where)
        assert isinstance(written, View)
        tracer.write(written, tracer.broadcast(slope, slope.shape))
    return target
