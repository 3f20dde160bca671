"""The bits of arrays as elements of other types: ``view`` and ``byteswap``."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.images import image_of, moved
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    Tensor,
    View,
    axis,
    index_expression,
    number,
)
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.creation import dtype_of
from distspmd.frontend.from_numpy.numpy.registry import METHODS
from distspmd.frontend.tensor_ir.statements import Index
from distspmd.frontend.tensor_ir.whole_numbers import add, floor_divide, multiply

BOOL = np.dtype(bool)


def _view(run: Context, array: object, dtype: object = None, type: object = None) -> Any:
    """``array.view(dtype)``: writes to either are seen in both where elements have one size."""
    tracer, asked = run.tracer, dtype if type is None else type
    if asked is None or asked is np.ndarray:
        return array
    if inspect.isclass(asked) and issubclass(asked, np.ndarray):
        tracer.refuse(f"{asked.__name__}, a class of arrays, is not covered")
    tensor, kind = tracer.tensor(array), dtype_of(run, asked)
    own, wanted = tensor.dtype.itemsize, kind.itemsize
    if tensor.mask is not None:
        tensor = tracer.stored(tensor)
    if tensor.dtype == kind:
        return tensor
    if own == wanted and "c" not in (tensor.dtype.kind, kind.kind):
        return image_of(tensor, lambda t: _same(t, kind), lambda part, t: _same(part, t.dtype))
    if not tensor.ndim:
        tracer.refuse(
            "Changing the dtype of a 0d array is only supported if the itemsize is unchanged"
        )
    if isinstance(tensor, View) and _steps_over(tensor):
        tracer.refuse(
            "To change to a dtype of a different size, the last axis must be contiguous; "
            "write np.ascontiguousarray(a) before"
        )
    length = tensor.shape[-1]
    if own < wanted and isinstance(length, int) and length * own % wanted:
        tracer.refuse(
            "When changing to a larger dtype, its size must be a divisor of the total size in "
            "bytes of the last axis of the array."
        )
    if own < wanted and not isinstance(length, int):
        tracer.refuse("view of a larger type: the length of the last dimension has to be known")
    return image_of(tensor, lambda t: _resized(t, kind), None)


def _steps_over(view: View) -> bool:
    """Whether neighbours in the last dimension are apart in memory."""
    last = axis(view.ndim - 1)
    step = sympy.expand(view.place[-1]).coeff(last)
    return not view.is_merged and view.shape[-1] != 1 and step != 1


def _same(tensor: Tensor, kind: DType) -> Tensor:
    return Tensor(tensor.shape, kind, lambda i: as_bits(tensor.element(i), kind))


def as_bits(value: Expression, kind: DType) -> Expression:
    """The number of a type that has the bits of another one; of a truth value the byte."""
    if value.dtype == kind:
        return value
    if value.dtype == BOOL:
        return as_bits(cast(value, np.dtype(np.uint8)), kind)
    if kind == BOOL:
        return apply("not_equal", value, number(0, value.dtype))
    return apply("bits", value, dtype=kind)


def _unsigned(kind: DType) -> DType:
    return np.dtype(f"u{kind.itemsize}")


def _resized(tensor: Tensor, kind: DType) -> Tensor:
    """Elements of another size; complex numbers are the two that they consist of."""
    if tensor.dtype.kind == "c":
        part = np.dtype(f"f{tensor.dtype.itemsize // 2}")
        words = _divided(tensor, part, 2, lambda value, place: _part(value, place, part))
        return words if kind == part else _resized_or_same(words, kind)
    if kind.kind == "c":
        part = np.dtype(f"f{kind.itemsize // 2}")
        words = tensor if tensor.dtype == part else _resized_or_same(tensor, part)
        return _joined(words, kind, 2, lambda parts: apply("from_parts", *parts, dtype=kind))
    if kind.itemsize < tensor.dtype.itemsize:
        count = tensor.dtype.itemsize // kind.itemsize
        return _divided(tensor, kind, count, lambda value, place: _piece(value, place, kind))
    return _joined(tensor, kind, kind.itemsize // tensor.dtype.itemsize, lambda p: _whole(p, kind))


def _resized_or_same(tensor: Tensor, kind: DType) -> Tensor:
    same = kind.itemsize == tensor.dtype.itemsize and kind.kind != "c"
    return _same(tensor, kind) if same else _resized(tensor, kind)


def _part(value: Expression, place: Expression, kind: DType) -> Expression:
    parts = [apply(name, value, dtype=kind) for name in ("real", "imag")]
    return apply("where", apply("equal", place, number(0, INT64)), *parts)


def _piece(value: Expression, place: Expression, kind: DType) -> Expression:
    word = as_bits(value, _unsigned(value.dtype))
    steps = cast(apply("multiply", place, number(8 * kind.itemsize, INT64)), word.dtype)
    return as_bits(cast(apply("right_shift", word, steps), _unsigned(kind)), kind)


def _whole(pieces: list[Expression], kind: DType) -> Expression:
    word = _unsigned(kind)
    found: Expression = number(0, word)
    for place, piece in enumerate(pieces):
        bits = cast(as_bits(piece, _unsigned(piece.dtype)), word)
        steps = number(8 * piece.dtype.itemsize * place, word)
        found = apply("bitwise_or", found, apply("left_shift", bits, steps))
    return as_bits(found, kind)


def _divided(tensor: Tensor, kind: DType, count: int, piece: Any) -> Tensor:
    """Each element as some neighbours in the last dimension."""
    last = tensor.ndim - 1
    shape = (*tensor.shape[:-1], multiply(tensor.shape[-1], count))
    places = [*(axis(d) for d in range(last)), floor_divide(axis(last), count)]
    plain = Tensor(tensor.shape, tensor.dtype, tensor.element)
    repeated = moved(plain, shape, places)

    def element(index: tuple[Index, ...]) -> Expression:
        place = apply("remainder", index_expression(index[-1]), number(count, INT64))
        return piece(repeated.element(index), place)  # type: ignore[no-any-return]

    return Tensor(shape, kind, element)


def _joined(tensor: Tensor, kind: DType, count: int, whole: Any) -> Tensor:
    """Some neighbours in the last dimension as one element."""
    last = tensor.ndim - 1
    shape = (*tensor.shape[:-1], floor_divide(tensor.shape[-1], count))
    plain = Tensor(tensor.shape, tensor.dtype, tensor.element)
    before = [axis(d) for d in range(last)]
    parts = [
        moved(plain, shape, [*before, add(multiply(axis(last), count), n)]) for n in range(count)
    ]
    return Tensor(shape, kind, lambda index: whole([p.element(index) for p in parts]))


def _byteswap(run: Context, array: object, inplace: bool = False) -> Tensor:
    """Elements whose bytes stand in the other order."""
    tracer = run.tracer
    tensor = tracer.tensor(array)
    kind, byte = tensor.dtype, np.dtype(np.uint8)
    if kind.kind == "c":
        tracer.refuse("byteswap of complex numbers; write it of x.real and x.imag")

    def element(index: tuple[Index, ...]) -> Expression:
        value = tensor.element(index)
        places = [number(n, INT64) for n in reversed(range(kind.itemsize))]
        return _whole([_piece(value, place, byte) for place in places], kind)

    found = tracer.stored_anew(Tensor(tensor.shape, kind, element))
    if not inplace:
        return found
    tracer.assign(tracer.stored(tensor), found)
    return tensor


METHODS["view"] = _view
METHODS["byteswap"] = _byteswap
