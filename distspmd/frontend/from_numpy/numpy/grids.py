"""Arrays of indices, and arrays chosen from by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import choose, combine, converted
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.shapes import reshape
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.numpy.creation import dtype_of, shape_of
from distspmd.frontend.from_numpy.numpy.reductions import finished
from distspmd.frontend.from_numpy.numpy.registry import FUNCTIONS, METHODS, function


def _open(run: Context, shape: Any, kind: object) -> list[Tensor]:
    """The index along each dimension, in arrays that are broadcast to the shape."""
    found = []
    for d, n in enumerate(shape):
        numbers = run.call(np.arange, [n], {"dtype": np.int64})
        own = [n if e == d else 1 for e in range(len(shape))]
        found.append(converted(run.tracer, reshape(run.tracer, numbers, own), kind))
    return found


@function(np.indices)
def _indices(run: Context, dimensions: object, dtype: object = int, sparse: bool = False) -> Any:
    tracer = run.tracer
    shape, kind = shape_of(run, dimensions), dtype_of(run, dtype, np.int64)
    grids = _open(run, shape, kind)
    if sparse:
        return tuple(grids)
    return run.call(np.stack, [[tracer.broadcast(grid, shape) for grid in grids]], {})


def _spaced(run: Context, grid: Any, items: Any) -> Any:
    """``np.mgrid[...]`` and ``np.ogrid[...]``."""
    if not has_data(items):
        return grid[items]
    return run.call(rarer_forms.grid_of_slices, [items, grid.sparse], {})


FUNCTIONS[("subscript", type(np.mgrid))] = _spaced
FUNCTIONS[("subscript", type(np.ogrid))] = _spaced


@function(np.fromfunction)
def _fromfunction(
    run: Context, called: object, shape: object, *, dtype: object = float, **options: object
) -> Any:
    extents = shape_of(run, shape)
    kind = dtype_of(run, dtype)
    grids = [run.tracer.broadcast(grid, extents) for grid in _open(run, extents, kind)]
    return run.call(called, grids, {k: v for k, v in options.items() if k != "like"})


@function(np.ix_)
def _ix(run: Context, *arrays: object) -> tuple[Any, ...]:
    found = []
    for d, given in enumerate(arrays):
        tensor: Any = run.tracer.tensor(given)
        if tensor.ndim != 1:
            run.tracer.refuse("Cross index must be 1 dimensional")
        if tensor.dtype.kind == "b":
            tensor = run.tracer.tensor(run.call(np.flatnonzero, [given], {}))
        shape = [tensor.shape[0] if e == d else 1 for e in range(len(arrays))]
        found.append(reshape(run.tracer, run.tracer.stored(tensor), shape))
    return tuple(found)


@function(np.choose, method="choose")
def _choose(run: Context, a: object, choices: Any, out: object = None, mode: str = "raise") -> Any:
    tracer = run.tracer
    if isinstance(choices, Tensor):
        if not isinstance(choices.shape[0], int):
            tracer.refuse("np.choose of choices whose number is not known: use np.take_along_axis")
        choices = [indexing.read(tracer, choices, n) for n in range(choices.shape[0])]
    every = [tracer.tensor(c) for c in choices]
    place = tracer.settled(tracer.tensor(a))
    if place.dtype.kind not in "biu":
        tracer.refuse(f"np.choose: places are whole numbers, not of the type {place.dtype}")
    if mode == "wrap":
        place = tracer.stored_anew(combine(tracer, np.remainder, [place, len(every)]), "places")
    kind = np.result_type(*(t.dtype for t in every))
    found = every[-1]
    for n in range(len(every) - 2, -1, -1):
        compare = np.less_equal if n == 0 and mode == "clip" else np.equal
        found = choose(tracer, combine(tracer, compare, [place, n]), every[n], found, kind)
    shape = tracer.broadcast_shape([place.shape, *(t.shape for t in every)])
    return finished(run, converted(tracer, tracer.broadcast(found, shape), kind), out)


METHODS["choose"] = _choose


@function(np.piecewise)
def _piecewise(
    run: Context, x: Any, condlist: Any, funclist: Any, *arguments: object, **options: object
) -> Tensor:
    tracer = run.tracer
    value = tracer.settled(tracer.tensor(x))
    if isinstance(condlist, Tensor):
        many = isinstance(condlist.shape[0], int) and condlist.ndim > value.ndim
        condlist = (
            [indexing.read(tracer, condlist, n) for n in range(condlist.shape[0])]
            if many
            else [condlist]
        )
    conditions = [converted(tracer, c, bool) for c in condlist]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        tracer.refuse(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected"
        )

    def result(each: object) -> Tensor:
        if isinstance(each, int | float | complex | np.generic | np.ndarray | Tensor | sympy.Basic):
            return converted(tracer, each, value.dtype)
        return converted(tracer, run.call(each, [value, *arguments], options), value.dtype)

    has_default = len(funclist) > len(conditions)
    found = result(funclist[-1]) if has_default else tracer.tensor(value.dtype.type(0))
    for condition, each in zip(conditions, funclist[: len(conditions)], strict=True):
        found = choose(tracer, condition, result(each), found, value.dtype)
    chosen: Tensor = tracer.stored_anew(tracer.broadcast(found, value.shape))
    return chosen
