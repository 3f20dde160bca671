"""Subscripts as in NumPy: slices of any steps, new axes, ellipses, masks, and arrays of indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, Load, apply, cast
from distspmd.frontend.from_numpy.arithmetic import choose, same_mask
from distspmd.frontend.from_numpy.tracer import CannotRoll, Tracer, is_one, told
from distspmd.frontend.from_numpy.values import (
    INT64,
    Tensor,
    View,
    axis,
    make_view,
    number,
    view_of,
    whole_expression,
)
from distspmd.frontend.tensor_ir.statements import Index, Length, Store
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    add,
    ceil_divide,
    is_at_least,
    multiply,
    remainder,
    same,
    subtract,
    symbol,
)


@dataclass(frozen=True)
class _Axis:
    """What becomes of a dimension: ``first + step * index``, or one index where there is no length."""

    first: Whole
    step: Whole = 1
    length: Length | None = None


@dataclass(frozen=True)
class _Picked:
    """A dimension that an array of indices picks from."""

    indices: Tensor


@dataclass(frozen=True)
class _Masked:
    """Dimensions that a mask chooses from."""

    mask: Tensor


def read(tracer: Tracer, base: Tensor, items: Any) -> Tensor:
    """``base[items]``."""
    if base.mask is not None:
        tracer.refuse("a part of the elements that a mask chooses has no known place")
    found = _parse(tracer, base.shape, items)
    if any(isinstance(x, _Masked) for x in found):
        return _read_masked(tracer, base, found)
    if any(isinstance(x, _Picked) for x in found):
        return _gather(tracer, base, found)
    return _basic(base, found)


def write(tracer: Tracer, base: Any, items: Any, value: Any) -> None:
    """``base[items] = value``."""
    if not isinstance(base, View):
        tracer.refuse(f"{told(base)} cannot be assigned to")
    found = _parse(tracer, base.shape, items)
    if any(isinstance(x, _Masked) for x in found):
        _write_masked(tracer, base, found, value)
    elif any(isinstance(x, _Picked) for x in found):
        _scatter(tracer, base, found, tracer.tensor(value), None)
    else:
        target = _basic(base, found)
        assert isinstance(target, View)
        tracer.assign(target, tracer.tensor(value))


def accumulate(tracer: Tracer, base: Any, items: Any, value: Any, operation: str) -> None:
    """``np.add.at(base, items, value)`` and its like: an index that comes twice counts twice."""
    if not isinstance(base, View):
        tracer.refuse(f"{told(base)} cannot be assigned to")
    found = _parse(tracer, base.shape, items)
    if any(isinstance(x, _Masked) for x in found):
        tracer.refuse("ufunc.at with a mask: write base[mask] = base[mask] + value")
    if any(isinstance(x, _Picked) for x in found):
        _scatter(tracer, base, found, tracer.tensor(value), operation)
        return
    target = _basic(base, found)
    assert isinstance(target, View)
    tensor = tracer.stored(tracer.broadcast(tracer.tensor(value), target.shape))
    tracer.write(target, tensor, operation)


def is_basic(items: Any) -> bool:
    """Whether a subscript has slices, whole numbers, new axes and ellipses alone."""
    every = items if isinstance(items, tuple) else (items,)
    return not any(
        isinstance(i, list | np.ndarray | bool | np.bool_)
        or (isinstance(i, Tensor) and (i.ndim > 0 or i.dtype.kind == "b"))
        for i in every
    )


# -- what is written in brackets ------------------------------------------------------------------


def _parse(tracer: Tracer, shape: Sequence[Length], items: Any) -> list[Any]:
    """For each dimension, in order, what becomes of it; None for a new one."""
    every = list(items) if isinstance(items, tuple) else [items]
    every = [_as_array(tracer, i) for i in every]
    taken = sum(_dimensions(i) for i in every)
    if taken > len(shape):
        tracer.refuse(f"{taken} indices for an array of {len(shape)} dimensions")
    if sum(i is Ellipsis for i in every) > 1:
        tracer.refuse("an index can have one ellipsis only")
    if not any(i is Ellipsis for i in every):
        every.append(Ellipsis)
    place = next(n for n, i in enumerate(every) if i is Ellipsis)
    every[place : place + 1] = [slice(None)] * (len(shape) - taken)
    found: list[Any] = []
    d = 0
    for item in every:
        if item is None:
            found.append(None)
            continue
        if isinstance(item, Tensor) and item.dtype.kind == "b":
            found.append(_Masked(item))
            for n, own in zip(item.shape, shape[d : d + item.ndim], strict=True):
                if isinstance(n, int) and isinstance(own, int) and n != own:
                    tracer.refuse(f"a mask of {n} elements for a dimension of {own}")
            d += item.ndim
            continue
        if isinstance(item, Tensor):
            found.append(_Picked(_indices(tracer, item, shape[d])))
        elif isinstance(item, slice):
            found.append(_slice(tracer, item, shape[d]))
        else:
            found.append(_Axis(_place(tracer, tracer.as_whole(item), shape[d])))
        d += 1
    return found


def _as_array(tracer: Tracer, item: Any) -> Any:
    """Lists and arrays as tensors; a tensor of one whole number as a symbol."""
    if isinstance(item, bool | np.bool_):
        tracer.refuse("a truth value as an index")
    if isinstance(item, list):
        item = np.array(item, dtype=np.int64) if not item else item
        return tracer.tensor(item)
    if isinstance(item, np.ndarray) and item.ndim:
        return tracer.tensor(item)
    if isinstance(item, Tensor) and item.ndim == 0 and item.dtype.kind in "iu":
        return tracer.as_whole(item)
    if isinstance(item, Tensor) and item.dtype.kind not in "iub":
        tracer.refuse("arrays used as indices must be of integer (or boolean) type")
    if isinstance(item, range):
        return slice(item.start, item.stop, item.step) if item.step > 0 else tracer.tensor(item)
    return item


def _dimensions(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, Tensor) and item.dtype.kind == "b" else 1


def _place(tracer: Tracer, value: Whole, length: Length) -> Whole:
    """An index, counted from the end where it is negative."""
    if isinstance(value, int):
        if isinstance(length, int) and not -length <= value < length and not tracer.guarded:
            tracer.refuse(f"index {value} is out of bounds for a dimension of {length}")
        return value if value >= 0 else add(length, value)
    if is_at_least(value, 0, tracer.bounds):
        found = value
    elif is_at_least(subtract(-1, value), 0, tracer.bounds):
        found = add(length, value)
    else:
        free = {s.name for s in value.free_symbols}
        if any(tracer.bounds.get(n) == (None, None) for n in free) and value.is_Symbol:
            found = value
        else:
            found = remainder(value, length)
    if tracer.guarded and not (
        is_at_least(found, 0, tracer.bounds)
        and is_at_least(subtract(subtract(length, 1), found), 0, tracer.bounds)
    ):
        return sympy.Max(0, sympy.Min(sympy.sympify(found), sympy.sympify(length) - 1))
    return found


def _slice(tracer: Tracer, item: slice, length: Length) -> _Axis:
    step = 1 if item.step is None else tracer.as_whole(item.step, "the step of a slice")
    if not isinstance(step, int):
        if not is_at_least(step, 1, tracer.bounds):
            tracer.refuse("the step of a slice has to be a number, or known to be positive")
    elif step == 0:
        tracer.refuse("slice step cannot be zero")
    ends = [
        None if e is None else tracer.as_whole(e, "the end of a slice")
        for e in (item.start, item.stop)
    ]
    if (
        isinstance(length, int)
        and isinstance(step, int)
        and all(e is None or isinstance(e, int) for e in ends)
    ):
        first, stop, step = slice(*ends, step).indices(length)
        return _Axis(first, step, len(range(first, stop, step)))
    if isinstance(step, int) and step < 0:
        start = subtract(length, 1) if ends[0] is None else _end(tracer, ends[0], length, -1)
        stop_ = -1 if ends[1] is None else _end(tracer, ends[1], length, -1)
        count = _positive(tracer, ceil_divide(subtract(start, stop_), -step))
        return _Axis(start, step, count)
    start = 0 if ends[0] is None else _end(tracer, ends[0], length, 0)
    stop_ = length if ends[1] is None else _end(tracer, ends[1], length, 0)
    count = _positive(tracer, ceil_divide(subtract(stop_, start), step))
    _must_be_linear(tracer, start, count)
    return _Axis(start, step, count)


def _must_be_linear(tracer: Tracer, *values: Whole) -> None:
    """Lengths that are powers or products of a loop's variable are no ranges of a space."""
    for value in values:
        if isinstance(value, int):
            continue
        for power in value.atoms(sympy.Pow, sympy.Mod):
            if any(s.name in tracer.bounds for s in power.free_symbols):
                raise CannotRoll(f"the part {value} changes with the loop other than by steps")


def _end(tracer: Tracer, value: Whole, length: Length, least: int) -> Whole:
    """An end of a slice, kept within the dimension where it could be outside."""
    bounds = tracer.bounds
    if not is_at_least(value, 0, bounds) and is_at_least(subtract(-1, value), 0, bounds):
        value = add(length, value)
    last = add(length, least)  # counting down, one before the end is the last that is possible
    inside = subtract(last, value)
    if _by_sizes(tracer, value):
        return value
    if not is_at_least(inside, 0, bounds):
        value = sympy.Min(sympy.sympify(value), sympy.sympify(last))
    if not is_at_least(value, least, bounds):
        value = sympy.Max(sympy.Integer(least), sympy.sympify(value))
    return value


def _by_sizes(tracer: Tracer, value: Whole) -> bool:
    """Whether a value is a number or decided by sizes, which are taken to be large enough."""
    if isinstance(value, int):
        return True
    return not any(s.name in tracer.bounds for s in value.free_symbols)


def _positive(tracer: Tracer, count: Whole) -> Length:
    if isinstance(count, int):
        return max(0, count)
    if _by_sizes(tracer, count) or is_at_least(count, 0, tracer.bounds):
        return count
    return sympy.Max(0, count)


# -- slices ---------------------------------------------------------------------------------------


def _basic(base: Tensor, found: Sequence[Any]) -> Tensor:
    shape: list[Length] = []
    places: list[Whole] = []
    for item in found:
        if item is None:
            shape.append(1)
        elif item.length is None:
            places.append(item.first)
        else:
            places.append(add(item.first, multiply(item.step, axis(len(shape)))))
            shape.append(item.length)
    return moved(base, shape, places)


def moved(
    base: Tensor, shape: Sequence[Length], places: Sequence[Whole], *, is_merged: bool = False
) -> Tensor:
    """The tensor whose elements are those of another one at places, over ``axis(0)``, ..."""
    if isinstance(base, View):
        inner = base.at(places)
        return make_view(
            base.container,
            shape,
            inner,  # type: ignore[arg-type]
            is_merged=is_merged or base.is_merged,
            weak=base.weak if not shape else None,
        )

    def element(index: tuple[Index, ...]) -> Expression:
        return base.element(at(places, index))

    return Tensor(tuple(shape), base.dtype, element)


def at(places: Sequence[Whole], index: Sequence[Index]) -> tuple[Index, ...]:
    """Places for an index."""
    by = {axis(d): i for d, i in enumerate(index)}
    found: list[Index] = []
    for place in places:
        if isinstance(place, int):
            found.append(place)
            continue
        own = {s: by[s] for s in place.free_symbols if s in by}
        if all(isinstance(i, int | sympy.Basic) for i in own.values()):
            value = place.xreplace({s: sympy.sympify(i) for s, i in own.items()})
            found.append(int(value) if value.is_Integer else value)
        elif place in own:
            found.append(own[place])
        else:
            found.append(whole_expression(place, dict(own)))
    return tuple(found)


# -- arrays of indices ----------------------------------------------------------------------------


def _indices(tracer: Tracer, indices: Tensor, length: Length) -> Tensor:
    """Indices, counted from the end where they are negative, in a container."""
    if indices.dtype.kind == "u" or getattr(indices, "is_index", False):
        return tracer.stored(indices, "indices")

    def element(index: tuple[Index, ...]) -> Expression:
        own = cast(indices.element(index), INT64)
        from_end = apply("add", own, whole_expression(length))
        return apply("where", apply("less", own, number(0, INT64)), from_end, own)

    return tracer.stored_anew(Tensor(indices.shape, INT64, element), "indices")


def _advanced(
    tracer: Tracer, base: View, found: Sequence[Any]
) -> tuple[tuple[Length, ...], list[Any]]:
    """The shape of the result, and for each dimension of the base a function of the index."""
    picked = [(n, x) for n, x in enumerate(found) if isinstance(x, _Picked)]
    common = tracer.broadcast_shape([x.indices.shape for _, x in picked])
    numbers = [
        n
        for n, x in enumerate(found)
        if isinstance(x, _Picked) or (isinstance(x, _Axis) and x.length is None)
    ]
    together = numbers == list(range(numbers[0], numbers[-1] + 1))
    shape: list[Length] = []
    begin = -1
    if not together:
        begin = 0
        shape += common
    functions: list[Any] = []
    for item in found:
        if item is None:
            shape.append(1)
            continue
        if isinstance(item, _Axis) and item.length is not None:
            d = len(shape)
            shape.append(item.length)
            functions.append(("axis", d, item))
            continue
        if together and begin < 0:
            begin = len(shape)
            shape += common
        functions.append(("one", item.first) if isinstance(item, _Axis) else ("picked", item))
    places: list[Any] = []
    for function in functions:
        if function[0] == "axis":
            _, d, item = function
            places.append(add(item.first, multiply(item.step, axis(d))))
        elif function[0] == "one":
            places.append(function[1])
        else:
            indices = tracer.broadcast(function[1].indices, common)
            places.append((indices, begin, len(common)))
    return tuple(shape), places


def _gathered_index(places: Sequence[Any], index: Sequence[Index]) -> tuple[Index, ...]:
    result: list[Index] = []
    for place in places:
        if isinstance(place, tuple):
            indices, begin, count = place
            result.append(indices.element(tuple(index[begin : begin + count])))
        else:
            result += at([place], index)
    return tuple(result)


def _plain_base(tracer: Tracer, base: Tensor) -> View:
    """A base whose container has its dimensions, so that indices are those of the container."""
    if (
        isinstance(base, View)
        and len(base.place) == base.ndim
        and all(p == axis(d) for d, p in enumerate(base.place))
    ):
        return base
    return tracer.stored_anew(base, "base")


def _gather(tracer: Tracer, base: Tensor, found: Sequence[Any]) -> Tensor:
    plain = _plain_base(tracer, base)
    shape, places = _advanced(tracer, plain, found)
    gathered = Tensor(
        shape, base.dtype, lambda index: plain.element(_gathered_index(places, index))
    )
    return tracer.stored_anew(gathered, "gathered")


def _scatter(
    tracer: Tracer, base: View, found: Sequence[Any], value: Tensor, operation: str | None
) -> None:
    if not (len(base.place) == base.ndim and all(p == axis(d) for d, p in enumerate(base.place))):
        copied = tracer.stored_anew(base, "part")
        _scatter(tracer, copied, found, value, operation)
        tracer.write(base, copied)
        return
    shape, places = _advanced(tracer, base, found)
    value = tracer.broadcast(value, shape)
    parameters, index = tracer._parameters(shape)
    expression = value.element(index)
    if any(isinstance(part, Load) and part.array is base.container for part in _loads(expression)):
        value = tracer.stored_anew(value, "before")
        expression = value.element(index)
    place = _gathered_index(places, index)
    store = Store(base.container, place, cast(expression, base.dtype), operation)
    if operation is None:
        tracer.ordered_kernel([store], parameters, base.container.name)
    else:
        tracer.kernel([store], parameters, base.container.name)


def _loads(expression: Expression) -> list[Expression]:
    from distspmd.expressions.ir import parts

    return parts(expression)


# -- masks ----------------------------------------------------------------------------------------


def _split_mask(tracer: Tracer, base: Tensor, found: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """The part that the other indices choose, and the mask in its shape."""
    masks = [x for x in found if isinstance(x, _Masked)]
    if len(masks) > 1 or any(isinstance(x, _Picked) for x in found):
        tracer.refuse("one mask in an index at most, and no arrays of indices beside it")
    mask = masks[0].mask
    others: list[Any] = []
    d, begin = 0, 0
    out = 0
    for item in found:
        if isinstance(item, _Masked):
            begin = out
            for n in base.shape[d : d + mask.ndim]:
                others.append(_Axis(0, 1, n))
                out += 1
            d += mask.ndim
            continue
        others.append(item)
        if item is None:
            out += 1
            continue
        out += item.length is not None
        d += 1
    part = _basic(base, others)
    count = mask.ndim

    def element(index: tuple[Index, ...]) -> Expression:
        return mask.element(tuple(index[begin : begin + count]))

    return part, Tensor(part.shape, mask.dtype, element)


def _read_masked(tracer: Tracer, base: Tensor, found: Sequence[Any]) -> Tensor:
    part, mask = _split_mask(tracer, base, found)
    if part.ndim != sum(x.mask.ndim for x in found if isinstance(x, _Masked)):
        tracer.refuse(
            "rows that a mask chooses make an array of unknown length; use "
            "np.where(mask[:, None], x, ...) on the whole, or sums over it"
        )
    return Tensor(part.shape, part.dtype, part.element, None, mask)


def _write_masked(tracer: Tracer, base: View, found: Sequence[Any], value: Any) -> None:
    part, mask = _split_mask(tracer, base, found)
    assert isinstance(part, View)
    tensor = tracer.tensor(value)
    if tensor.mask is not None:
        if not same_mask(tensor.mask, mask):
            tracer.refuse("elements that one mask chooses are assigned where another one chooses")
        tensor = Tensor(tensor.shape, tensor.dtype, tensor.element)
    elif tensor.ndim and not all(is_one(n) for n in tensor.shape):
        masked = sum(x.mask.ndim for x in found if isinstance(x, _Masked))
        if part.ndim == masked or tensor.ndim > part.ndim - masked:
            tracer.refuse(
                "an array is assigned to the elements that a mask chooses, in reading order; write "
                "np.where(mask, ..., ...), or assign a number"
            )
    found_value = choose(tracer, mask, tensor, part, part.dtype)
    tracer.assign(part, found_value)


__all__ = ["accumulate", "is_basic", "moved", "read", "same", "symbol", "view_of", "write"]
