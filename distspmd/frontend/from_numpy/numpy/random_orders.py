"""Choices and orders by chance, as a generator of a program draws them."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine
from distspmd.frontend.from_numpy.arrays.shapes import normal_axis
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library.distributions import chosen_once
from distspmd.frontend.from_numpy.numpy.random_numbers import (
    Stream,
    as_drawn,
    draw,
    integers,
    random,
    stream_method,
    uniform,
)


@stream_method("choice")
def _choice(
    run: Context,
    rng: Stream,
    a: object,
    size: object = None,
    replace: object = True,
    p: object = None,
    axis: object = 0,
    shuffle: bool = True,
) -> Any:
    tracer = run.tracer
    given = a if isinstance(a, int | sympy.Basic) else tracer.tensor(a)
    if isinstance(given, Tensor) and not given.ndim:
        given = tracer.as_whole(given, "the number of choices")
    d = normal_axis(tracer, axis, given.ndim) if isinstance(given, Tensor) else 0
    n = given.shape[d] if isinstance(given, Tensor) else given
    if not replace:
        places: Any = run.call(chosen_once, [rng, n, size, p], {})
    elif p is None:
        places = integers(run, rng, n, None, size)
    else:
        sums = run.call(np.cumsum, [p], {})
        total = indexing.read(tracer, tracer.tensor(sums), -1)
        drawn = random(run, rng, size)
        scaled = combine(tracer, np.multiply, [drawn, total])
        places = run.call(np.searchsorted, [sums, scaled], {"side": "right"})
    if not isinstance(given, Tensor):
        return as_drawn(places, () if size is None else (1,), int)
    return run.call(np.take, [given, tracer.stored(tracer.tensor(places)), d], {})


def _permutation_of(run: Context, rng: Stream, n: object) -> Any:
    return run.call(np.argsort, [draw(run, rng, (n,), uniform)], {})


@stream_method("permutation")
def _permutation(run: Context, rng: Stream, x: object, axis: object = 0) -> Any:
    tracer = run.tracer
    if isinstance(x, int | sympy.Basic):
        return _permutation_of(run, rng, x)
    value = tracer.tensor(x)
    if not value.ndim:
        return _permutation_of(run, rng, tracer.as_whole(value, "a length"))
    d = normal_axis(tracer, axis, value.ndim)
    return run.call(np.take, [value, _permutation_of(run, rng, value.shape[d]), d], {})


@stream_method("shuffle")
def _shuffle(run: Context, rng: Stream, x: object, axis: object = 0) -> None:
    if not isinstance(x, View):
        run.tracer.refuse("shuffle of what is no array; use permutation")
    run.tracer.assign(x, run.tracer.stored_anew(_permutation(run, rng, x, axis)))
