"""Places of extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.from_numpy.arrays.arithmetic import converted
from distspmd.frontend.from_numpy.arrays.shapes import expand_dims, size_of
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    Tensor,
    index_expression,
    number,
    whole_expression,
)
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.numpy.reductions import axes_of, finished, reduce
from distspmd.frontend.from_numpy.numpy.registry import function


def _place_of(name: str) -> Any:
    def call(
        run: Context, value: Any, axis: Any = None, out: Any = None, keepdims: bool = False
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
