"""Elements that a mask chooses, as arrays: their number is a length that data decide.

What a mask chooses stays where it is as long as it is reduced, computed with, or assigned where
the same mask chooses: that splits over ranks as the array does. Everything else gets an array of
the elements, which has room for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.from_numpy.arrays.elements import truth_of
from distspmd.frontend.from_numpy.arrays.images import moved
from distspmd.frontend.from_numpy.arrays.indexing import read
from distspmd.frontend.from_numpy.arrays.lengths import check_lengths
from distspmd.frontend.from_numpy.arrays.lines import cpp, flat, in_parts, is_long, run_on_lines
from distspmd.frontend.from_numpy.arrays.shapes import reshape, size_of
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    Tensor,
    View,
    make_view,
    number,
    whole_expression,
)
from distspmd.frontend.from_numpy.arrays.values import axis as axis_symbol
from distspmd.frontend.tensor_ir.statements import Index
from distspmd.frontend.tensor_ir.whole_numbers import add, symbol
from distspmd.runtime.calls.form import rebuilt

BOOL = np.dtype(bool)


def _line_of(tracer: Tracer, mask: Tensor) -> Tensor:
    """The truth of the elements of a mask in reading order."""
    truth = mask
    if mask.dtype.kind != "b":
        truth = Tensor(mask.shape, BOOL, lambda index: truth_of(mask.element(index)))
    if truth.ndim == 0:
        return moved(tracer.stored_anew(truth, "mask"), [1], [])
    return flat(tracer, truth if truth.ndim == 1 else tracer.stored(truth, "mask"))


def true_places(tracer: Tracer, mask: Tensor) -> Tensor:
    """The places of true elements in reading order, as ``np.flatnonzero`` gives them."""
    if mask.mask is not None:
        mask = chosen(tracer, mask)
    line = _line_of(tracer, mask)
    if is_long(tracer, line):
        return _closed_up(tracer, "places", {"_mask": line})
    (length,) = line.shape
    code = (
        f"int64_t count = 0; for (int64_t i = 0; i < {cpp(length)}; ++i)"
        "{ if (_line0[i]) _result0[count++] = i; }"
        f"std::fill(_result0 + count, _result0 + {cpp(length)}, int64_t(0)); *_result1 = count;"
    )
    with tracer.named("places"):
        places, count = run_on_lines(
            tracer, "places", (), [line], [], [(length, INT64), (None, INT64)], code
        )
    return _as_long_as(tracer, places, count)


def _as_long_as(tracer: Tracer, line: View, count: Tensor) -> View:
    """The first elements of a line, as many as the run counts."""
    found = tracer.read_whole(count)
    tracer.known.capacities[found] = tracer.capacity(line.shape[0])
    view = make_view(line.container, [found], [axis_symbol(0)])
    view.is_index = line.dtype == INT64
    return view


def _closed_up(tracer: Tracer, name: str, lines: dict[str, Tensor]) -> View:
    """The places, or elements, of a long line that a mask chooses: each moves once at most."""
    mask = lines["_mask"] = tracer.stored(lines["_mask"], "mask")
    function = "choose_parts" if "_in" in lines else "choose_places"
    with tracer.named(name):
        dtype = lines["_in"].dtype if "_in" in lines else INT64
        line = in_parts(tracer, name, function, lines, dtype)
    place = symbol("__place")
    truth = cast(mask.element((place,)), INT64)
    count = tracer.contract([], [(place, mask.shape[0])], truth, "sum", "count")
    return _as_long_as(tracer, line, count)


def true_indices(tracer: Tracer, mask: Tensor) -> tuple[Tensor, ...]:
    """The indices of true elements in each dimension, as ``np.nonzero`` gives them."""
    places = true_places(tracer, mask)
    if mask.ndim <= 1:
        return (places,)
    found: list[Tensor] = []
    inner: Any = 1
    for n in reversed(mask.shape):
        found.append(_digit(tracer, places, inner, n, is_first=len(found) == mask.ndim - 1))
        inner = size_of([inner, n])
    return tuple(reversed(found))


def _digit(
    tracer: Tracer, places: Tensor, inner: object, extent: object, *, is_first: bool
) -> Tensor:
    """The index in one dimension of places in all."""

    def element(index: tuple[Index, ...]) -> Expression:
        value = apply("floor_divide", places.element(index), whole_expression(inner))
        return value if is_first else apply("remainder", value, whole_expression(extent))

    stored = tracer.stored_anew(Tensor(places.shape, INT64, element), "places")
    stored.is_index = True
    return stored


def chosen(tracer: Tracer, tensor: Tensor) -> Tensor:
    """The elements, or the rows, that the mask of a tensor chooses, as an array."""
    mask = tensor.mask
    assert mask is not None
    whole = Tensor(tensor.shape, tensor.dtype, tensor.element)
    if is_long(tracer, whole) and mask.ndim == 1:
        lines = {"_mask": _line_of(tracer, mask), "_in": whole}
        found = _closed_up(tracer, "chosen", lines)
        found.is_index = tensor.is_index
        return found
    rest = list(tensor.shape[mask.ndim :])
    lined = whole
    if mask.ndim > 1:
        lined = reshape(tracer, tracer.stored_anew(whole, "base"), [size_of(mask.shape), *rest])
    return read(tracer, lined, true_places(tracer, mask))


def in_one_dimension(tracer: Tracer, tensor: Tensor) -> Tensor:
    """A tensor of which no mask of several dimensions chooses rows: these become an array."""
    mask = tensor.mask
    return chosen(tracer, tensor) if mask is not None and 1 < mask.ndim < tensor.ndim else tensor


def as_arrays(tracer: Tracer, value: object) -> Any:
    """A value in which elements that masks choose are arrays."""
    if isinstance(value, Tensor):
        return value if value.mask is None else chosen(tracer, value)
    if isinstance(value, list | tuple) and any(_has_choice(v) for v in value):
        return rebuilt(value, [as_arrays(tracer, v) for v in value])
    return value


def _has_choice(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_choice, value))
    return isinstance(value, Tensor) and value.mask is not None


def ranked(tracer: Tracer, mask: Tensor, values: Tensor) -> Tensor:
    """The values, or rows, that the true elements of a mask get in reading order, in its shape.

    The program ends with a ``ValueError`` where there are more or fewer of them.
    """
    line = _line_of(tracer, mask)
    (length,) = line.shape
    code = (
        f"int64_t count = 0; for (int64_t i = 0; i < {cpp(length)}; ++i)"
        "{ _result0[i] = count; count += _line0[i]; } *_result1 = count;"
    )
    with tracer.named("ranks"):
        ranks, count = run_on_lines(
            tracer, "ranks", (), [line], [], [(length, INT64), (None, INT64)], code
        )
    if not tracer.map.own:
        check_lengths(tracer, tracer.read_whole(count), values.shape[0])
    shaped = reshape(tracer, ranks, list(mask.shape))
    stored = tracer.stored_anew(values, "values")
    last = whole_expression(add(values.shape[0], -1))
    rest = values.shape[1:]

    def inside(index: tuple[Index, ...]) -> Expression:
        place = apply("minimum", shaped.element(index), last)
        return apply("maximum", place, number(0, INT64))

    places = tracer.stored_anew(Tensor(mask.shape, INT64, inside), "ranks")

    def element(index: tuple[Index, ...]) -> Expression:
        place = places.element(tuple(index[: mask.ndim]))
        return stored.element((place, *index[mask.ndim :]))

    return tracer.stored_anew(Tensor((*mask.shape, *rest), values.dtype, element), "values")
