"""Triangles and diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, apply
from distspmd.frontend.from_numpy.arrays import images, indexing
from distspmd.frontend.from_numpy.arrays.shapes import normal_axis, reshape
from distspmd.frontend.from_numpy.arrays.transcript import shape_text
from distspmd.frontend.from_numpy.arrays.values import Tensor, View, index_expression, number
from distspmd.frontend.from_numpy.arrays.values import axis as axis_symbol
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.tensor_ir.statements import Index
from distspmd.frontend.tensor_ir.whole_numbers import add, same, subtract

# -- triangles and diagonals ----------------------------------------------------------------------


def _triangle(lower: bool) -> Any:
    def call(run: Context, value: object, k: object = 0) -> Any:
        tracer = run.tracer
        tensor = tracer.settled(tracer.tensor(value))
        k = tracer.as_whole(k)

        def element(index: tuple[Index, ...]) -> Expression:
            row, column = index_expression(index[-2]), index_expression(index[-1])
            edge = apply("add", row, index_expression(k))
            name = "less_equal" if lower else "greater_equal"
            inside = apply(name, column, edge)
            return apply("where", inside, tensor.element(index), number(0, tensor.dtype))

        return Tensor(tensor.shape, tensor.dtype, element)

    return call


function(np.tril)(_triangle(True))
function(np.triu)(_triangle(False))


@function(np.tri)
def _tri(
    run: Context,
    n: object,
    m: object = None,
    k: object = 0,
    dtype: object = np.float64,
    **_: object,
) -> Any:
    ones = run.call(np.ones, [(n, n if m is None else m)], {"dtype": dtype})
    return _triangle(True)(run, ones, k)


@function(np.diagonal, method="diagonal")
def _diagonal(
    run: Context, value: object, offset: object = 0, axis1: object = 0, axis2: object = 1
) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    one, other = (normal_axis(tracer, a, tensor.ndim) for a in (axis1, axis2))
    offset = tracer.as_whole(offset)
    if not isinstance(offset, int):
        tracer.refuse("the offset of a diagonal has to be known before the run")
    rows, columns = tensor.shape[one], tensor.shape[other]
    length = _shorter(add(rows, min(offset, 0)), subtract(columns, max(offset, 0)))
    kept = [d for d in range(tensor.ndim) if d not in (one, other)]
    shape = [*(tensor.shape[d] for d in kept), length]
    places: list[Any] = [0] * tensor.ndim
    for place, d in enumerate(kept):
        places[d] = axis_symbol(place)
    places[one] = add(axis_symbol(len(kept)), max(-offset, 0))
    places[other] = add(axis_symbol(len(kept)), max(offset, 0))
    return images.moved(tensor, shape, places)


def _shorter(a: object, b: object) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return max(0, min(a, b))
    gap = subtract(a, b)
    if isinstance(gap, int):
        return a if gap <= 0 else b
    return sympy.Min(sympy.sympify(a), sympy.sympify(b))


@function(np.diag)
def _diag(run: Context, value: object, k: object = 0) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    if tensor.ndim == 2:
        return _diagonal(run, tensor, k)
    return _diagflat(run, tensor, k)


@function(np.diagflat)
def _diagflat(run: Context, value: Any, k: Any = 0) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    tensor = tensor if tensor.ndim == 1 else reshape(tracer, tensor, [-1])
    n = add(tensor.shape[0], abs(k))
    zeros = run.call(np.zeros, [(n, n)], {"dtype": tensor.dtype})
    tracer.assign(_diagonal(run, zeros, k), tensor)
    return zeros


@function(np.fill_diagonal)
def _fill_diagonal(run: Context, base: object, value: object, wrap: bool = False) -> None:
    tracer = run.tracer
    if not isinstance(base, View):
        tracer.refuse("np.fill_diagonal of what is no array of the program")
    if base.ndim < 2 or (base.ndim > 2 and not all(same(n, base.shape[0]) for n in base.shape)):
        tracer.refuse(
            "np.fill_diagonal: ValueError: array must be at least 2-d, and all dimensions of more "
            f"than two of equal length, but the shape is {shape_text(base.shape)}"
        )
    if wrap and base.ndim == 2:
        rows, columns = base.shape
        if not (isinstance(rows, int) and isinstance(columns, int)):
            tracer.refuse("np.fill_diagonal with wrap=True of a shape that is not known")
        places = np.arange(0, rows * columns, columns + 1)
        where = tuple(tracer.table(part) for part in np.unravel_index(places, (rows, columns)))
        indexing.write(tracer, base, where, _cycled(run, value, len(places)))
        return
    length = base.shape[0] if base.ndim > 2 else _shorter(*base.shape)
    diagonal = images.moved(base, [length], [axis_symbol(0)] * base.ndim)
    assert isinstance(diagonal, View)
    tracer.assign(diagonal, _cycled(run, value, length))


def _cycled(run: Context, value: object, length: object) -> Tensor:
    """So many values, again from the first one where there are fewer, as NumPy fills."""
    tensor: Tensor = run.tracer.tensor(value)
    if tensor.ndim == 0 or (tensor.ndim == 1 and same(tensor.shape[0], length)):
        return tensor
    line = reshape(run.tracer, run.tracer.stored(tensor), [-1])
    places = run.call(np.remainder, [run.call(np.arange, [length], {}), line.shape[0]], {})
    found: Tensor = indexing.read(run.tracer, line, run.tracer.stored(places))
    return found
