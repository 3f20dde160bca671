"""``np.linalg.norm`` and its kin: of vectors, and of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.shapes import (
    expand_dims,
    normal_axis,
    reshape,
    size_of,
    transpose,
)
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.lapack_calls import matrices
from distspmd.frontend.from_numpy.numpy.linalg import inverse, singular_values
from distspmd.frontend.from_numpy.numpy.registry import function


@function(np.linalg.norm)
def norm(run: Context, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """``np.linalg.norm``: of a vector, or of a matrix where two axes are given."""
    tracer = run.tracer
    tensor = tracer.tensor(x)
    if tensor.dtype.kind not in "fc":
        tensor = converted(tracer, tensor, np.float64)
    tensor = tracer.settled(tensor)
    if axis is None:
        if (
            ord is None
            or (ord in ("f", "fro") and tensor.ndim == 2)
            or (ord == 2 and tensor.ndim == 1)
        ):
            found = _root_of_squares(run, tensor, None)
            if keepdims:
                return expand_dims(tracer, found, list(range(tensor.ndim)))
            return found
        axes = list(range(tensor.ndim))
    else:
        given = axis if isinstance(axis, tuple | list) else (axis,)
        axes = [normal_axis(tracer, a, tensor.ndim) for a in given]
    if len(axes) == 1:
        return _of_vectors(run, tensor, ord, axes[0], keepdims)
    if len(axes) != 2:
        tracer.refuse("Improper number of dimensions to norm.")
    return _of_matrices(run, tensor, ord, axes, keepdims)


def _squares(run: Context, tensor: Tensor) -> Tensor:
    if tensor.dtype.kind != "c":
        return combine(run.tracer, np.multiply, [tensor, tensor])
    parts = [run.attribute(tensor, name) for name in ("real", "imag")]
    found = [combine(run.tracer, np.multiply, [p, p]) for p in parts]
    return combine(run.tracer, np.add, found)


def _root_of_squares(run: Context, tensor: Tensor, axis: Any, keepdims: bool = False) -> Any:
    total = run.call(np.sum, [_squares(run, tensor)], {"axis": axis, "keepdims": keepdims})
    return combine(run.tracer, np.sqrt, [total])


def _of_vectors(run: Context, tensor: Tensor, ord: Any, axis: int, keepdims: bool) -> Any:
    tracer = run.tracer
    options = {"axis": axis, "keepdims": keepdims}
    if isinstance(ord, str | Tensor):
        tracer.refuse(f"Invalid norm order {ord!r} for vectors")
    if ord is None or ord == 2:
        return _root_of_squares(run, tensor, axis, keepdims)
    sizes = combine(tracer, np.absolute, [tensor])
    if ord in (np.inf, -np.inf):
        return run.call(np.max if ord > 0 else np.min, [sizes], options)
    if ord == 0:
        there = run.call(np.not_equal, [tensor, 0], {})
        return run.call(np.sum, [converted(tracer, there, sizes.dtype)], options)
    if ord == 1:
        return run.call(np.sum, [sizes], options)
    powers = combine(tracer, np.power, [sizes, ord])
    total = run.call(np.sum, [powers], options)
    return combine(tracer, np.power, [total, 1 / ord])


def _of_matrices(run: Context, tensor: Tensor, ord: Any, axes: list[int], keepdims: bool) -> Any:
    tracer = run.tracer
    rows, columns = axes
    if rows == columns:
        tracer.refuse("Duplicate axes given.")
    sizes = combine(tracer, np.absolute, [tensor])
    if ord is None or ord in ("fro", "f"):
        found = _root_of_squares(run, tensor, tuple(axes))
    elif ord in (1, -1, np.inf, -np.inf):
        summed, kept = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = run.call(np.sum, [sizes], {"axis": summed})
        place = kept - 1 if kept > summed else kept
        found = run.call(np.max if ord > 0 else np.min, [sums], {"axis": place})
    elif ord in (2, -2, "nuc"):
        rest = [d for d in range(tensor.ndim) if d not in axes]
        values = singular_values(run, transpose(tracer, tensor, [*rest, rows, columns]))
        reduced = np.sum if ord == "nuc" else np.max if ord == 2 else np.min
        found = run.call(reduced, [values], {"axis": -1})
    else:
        tracer.refuse(f"Invalid norm order {ord!r} for matrices.")
    return expand_dims(tracer, found, sorted(axes)) if keepdims else found


@function(np.linalg.vector_norm)
def _vector_norm(
    run: Context, x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2
) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(x)
    if axis is not None and not isinstance(axis, tuple | list):
        return norm(run, tensor, ord, axis, keepdims)
    axes = (
        list(range(tensor.ndim))
        if axis is None
        else [normal_axis(tracer, a, tensor.ndim) for a in axis]
    )
    rest = [d for d in range(tensor.ndim) if d not in axes]
    turned = transpose(tracer, tensor, [*rest, *axes]) if rest else tensor
    line = size_of([tensor.shape[d] for d in axes])
    flat = reshape(tracer, turned, [*(tensor.shape[d] for d in rest), line])
    found = norm(run, flat, ord, -1)
    return expand_dims(tracer, found, sorted(axes)) if keepdims else found


@function(np.linalg.matrix_norm)
def _matrix_norm(run: Context, x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return norm(run, x, ord, (-2, -1), keepdims)


@function(np.linalg.cond)
def _cond(run: Context, x: Any, p: Any = None) -> Any:
    matrix = matrices(run, x, "np.linalg.cond")
    if p is None or p in (2, -2):
        values = singular_values(run, matrix)
        largest = run.call(np.max, [values], {"axis": -1})
        least = run.call(np.min, [values], {"axis": -1})
        pair = [least, largest] if p == -2 else [largest, least]
        return combine(run.tracer, np.divide, pair)
    sizes = [norm(run, each, p, (-2, -1)) for each in (matrix, inverse(run, matrix))]
    return combine(run.tracer, np.multiply, sizes)


@function(np.vecdot, np.linalg.vecdot)
def _vecdot(run: Context, x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    tracer = run.tracer
    one = tracer.tensor(x1)
    one = combine(tracer, np.conjugate, [one]) if one.dtype.kind == "c" else one
    return run.call(
        np.sum, [combine(tracer, np.multiply, [one, tracer.tensor(x2)])], {"axis": axis}
    )
