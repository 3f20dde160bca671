"""Differences and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy import indexing
from distspmd.frontend.from_numpy.arithmetic import combine, converted
from distspmd.frontend.from_numpy.functions.joins import concatenate
from distspmd.frontend.from_numpy.functions.registry import function
from distspmd.frontend.from_numpy.shapes import broadcast_to, normal_axis, reshape
from distspmd.frontend.from_numpy.values import Tensor, view_of

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
        tracer.write(part(target, *where), tracer.broadcast(slope, slope.shape))
    return target
