"""What is written in brackets: for each dimension, what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.from_numpy.arrays.elements import substitute, whole_operations
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, is_taken, line_of_error
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    Tensor,
    index_expression,
    number,
    whole_expression,
)
from distspmd.frontend.from_numpy.arrays.written_values import line_of, whole_of
from distspmd.frontend.tensor_ir.statements import Index, Length, SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import (
    Bounds,
    CheckedIndex,
    Whole,
    add,
    ceil_divide,
    int_floor,
    is_at_least,
    is_decided_by_data,
    is_ranged_by_data,
    multiply,
    remainder,
    same,
    subtract,
    symbol,
)


@dataclass(frozen=True)
class Axis:
    """What becomes of a dimension: ``first + step * index``; one index where there is no length."""

    first: Whole
    step: Whole = 1
    length: Length | None = None


@dataclass(frozen=True)
class Picked:
    """A dimension that an array of indices picks from.

    Attributes:
        given: the indices as they are written.
        check: what stores them, from the front and inside; None where no data decide them.
    """

    given: Tensor
    check: Callable[[], Tensor] | None = None

    @cached_property
    def indices(self) -> Tensor:
        """The indices from the front; the program ends where one is outside."""
        return self.given if self.check is None else self.check()

    def spread(self, tracer: Tracer, shape: Sequence[Length]) -> Picked:
        """The same indices in a shape to which theirs is broadcast."""
        check = self.check and (lambda: tracer.broadcast(self.indices, shape))
        return Picked(tracer.broadcast(self.given, shape), check)

    def at(self, index: tuple[Index, ...]) -> Index:
        """The index that an element of the array is; one of symbols, if no data decide it."""
        found = self.indices.element(index)
        known = whole_operations(found)
        return found if known is None else known


@dataclass(frozen=True)
class Masked:
    """Dimensions that a mask chooses from."""

    mask: Tensor


def is_basic(items: object) -> bool:
    """Whether a subscript has slices, whole numbers, new axes and ellipses alone."""
    every = items if isinstance(items, tuple) else (items,)
    return not any(
        isinstance(i, list | tuple | np.ndarray | bool | np.bool_)
        or (isinstance(i, Tensor) and (i.ndim > 0 or i.dtype.kind == "b"))
        for i in every
    )


def has_ellipsis(items: object) -> bool:
    """Whether a subscript has ``...``, of which even an element is an array."""
    return any(i is Ellipsis for i in (items if isinstance(items, tuple) else (items,)))


# -- what is written in brackets ------------------------------------------------------------------


def parse_subscript(tracer: Tracer, shape: Sequence[Length], items: object) -> list[Any]:
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
        found.append(None if item is None else _parsed(tracer, item, shape[d:]))
        d += _dimensions(item)
    return found


def _parsed(tracer: Tracer, item: object, shape: Sequence[Length]) -> Axis | Picked | Masked:
    """What becomes of the first dimension, or of as many as a mask has."""
    if isinstance(item, Tensor) and item.dtype.kind == "b":
        for n, own in zip(item.shape, shape, strict=False):
            if isinstance(n, int) and isinstance(own, int) and n != own:
                tracer.refuse(f"a mask of {n} elements for a dimension of {own}")
        return Masked(item)
    if isinstance(item, Tensor):
        steady = _steady(tracer, item, shape[0])
        if steady is not None:
            return Picked(steady)
        return Picked(item, lambda: _indices(tracer, item, shape[0]))
    if isinstance(item, slice):
        return _slice(tracer, item, shape[0])
    return Axis(index_in(tracer, tracer.as_whole(item), shape[0]))


def _as_array(tracer: Tracer, item: object) -> Any:
    """Lists and arrays as tensors; a tensor of one whole number as a symbol."""
    if isinstance(item, Tensor) and item.mask is not None:
        return tracer.chosen(item)
    if isinstance(item, bool | np.bool_) or (
        isinstance(item, Tensor) and not item.ndim and item.dtype.kind == "b"
    ):
        tracer.refuse("a truth value as an index behind others")
    if isinstance(item, list | tuple):  # a tuple within the one in brackets is an array, too
        line = _line(item)
        return line or tracer.tensor(list(item) or np.array(item, dtype=np.int64))
    if isinstance(item, np.ndarray) and item.ndim:
        return _line(item) or tracer.tensor(item)
    if isinstance(item, Tensor) and item.ndim == 0 and item.dtype.kind in "iu":
        return tracer.as_whole(item)
    if isinstance(item, Tensor) and item.dtype.kind not in "iub":
        tracer.refuse("arrays used as indices must be of integer (or boolean) type")
    if isinstance(item, range):
        return _line(item) or tracer.tensor(item)
    return item


def _line(numbers: Any) -> Tensor | None:
    """Known whole numbers in steps, ``[3, 5, 7]``, by their first and their step; None of others.

    So they index as slices do, of which is known where they are.
    """
    line = None if _has_data(numbers) else line_of(numbers)
    if line is None:
        return None
    first, step = line

    def element(index: tuple[Index, ...]) -> Expression:
        (place,) = index
        if isinstance(place, int | sympy.Basic):
            return whole_expression(add(first, multiply(step, place)))
        return apply("add", number(first, INT64), apply("multiply", number(step, INT64), place))

    return Tensor((len(numbers),), INT64, element)


def _has_data(numbers: object) -> bool:
    return isinstance(numbers, list | tuple) and not all(
        isinstance(n, int | np.integer) and not isinstance(n, bool) for n in numbers
    )


def _steady(tracer: Tracer, item: Tensor, length: Length) -> Tensor | None:
    """Indices that no data decide, and that are all inside, counted from the front; else None."""
    if tracer.guarded or not item.ndim or tracer.is_decided_by_data(length, *item.shape):
        return None
    places = tuple(symbol(tracer.unique("line")) for _ in item.shape)
    ends = {p.name: (0, subtract(n, 1)) for p, n in zip(places, item.shape, strict=True)}
    bounds = {**tracer.known.bounds, **ends}
    value = whole_of(tracer, item.element(places), bounds)
    if value is None:
        return None
    if is_at_least(subtract(-1, value), 0, bounds):
        value = add(value, length)
    if not _is_inside(value, length, bounds):
        if not _is_inside(add(value, length), add(length, length), bounds):
            return None
        value = remainder(value, length)  # some are counted from the end

    def element(index: tuple[Index, ...]) -> Expression:
        by = dict(zip(places, index, strict=True))
        if all(isinstance(i, int | sympy.Basic) for i in index):
            return whole_expression(sympy.sympify(value).xreplace(by))
        return substitute(whole_expression(value), by)

    return Tensor(item.shape, INT64, element)


def _is_inside(value: Whole, length: Length, bounds: Bounds) -> bool:
    """Whether an index surely is one of a dimension."""
    if isinstance(value, sympy.Mod) and same(value.args[1], length):
        return True
    ends = value, subtract(subtract(length, 1), value)
    return all(is_at_least(each, 0, bounds) for each in ends)


def _dimensions(item: object) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, Tensor) and item.dtype.kind == "b" else 1


def index_in(tracer: Tracer, value: Whole, length: Length) -> Whole:
    """An index, counted from the end where it is negative."""
    if isinstance(value, int):
        if isinstance(length, int) and not -length <= value < length and not tracer.guarded:
            tracer.fail(IndexError(f"index {value} is out of bounds for a dimension of {length}"))
        return value if value >= 0 else add(length, value)
    if is_taken(tracer, "IndexError"):
        return _taken_index(tracer, value, length)
    _check_ends(tracer, value, length)
    if tracer.is_not_negative(value):
        found = value
    elif is_at_least(subtract(-1, value), 0, tracer.known.bounds):
        found = add(length, value)
    else:
        if is_ranged_by_data(value, tracer.known.bounds):
            return _checked_symbol(tracer, value, length)
        found = remainder(value, length)
    if tracer.guarded and not (
        is_at_least(found, 0, tracer.known.bounds)
        and is_at_least(subtract(subtract(length, 1), found), 0, tracer.known.bounds)
    ):
        return sympy.Max(0, sympy.Min(sympy.sympify(found), sympy.sympify(length) - 1))
    return found


def _taken_index(tracer: Tracer, value: sympy.Expr, length: Length) -> Whole:
    """An index for which a handler of the program runs where it is out of range; any one there."""
    above, below = add(value, length), subtract(subtract(length, 1), value)
    if not (tracer.is_not_negative(above) and tracer.is_not_negative(below)):
        what = f"index {value} is out of bounds for a dimension of {length}"
        catch_outside(tracer, value, length, what)
    elif tracer.is_not_negative(value):
        return value
    return remainder(value, sympy.Max(1, length))


def catch_outside(tracer: Tracer, value: sympy.Expr, length: Length, what: str) -> None:
    """Let the body of a ``try`` end where an index is out of range."""
    assert tracer.hooks.ends_if is not None
    outside = sympy.Or(sympy.Lt(value, -length), sympy.Ge(value, length))
    tracer.hooks.ends_if(outside, "IndexError", what, can_go_on=True)


def checked_index(
    tracer: Tracer, value: Expression, length: Length, there: Expression | None = None
) -> Expression:
    """An index that is a value of the run: where it is out of range, the program ends.

    What is read although it may not happen has no such check.

    Args:
        tracer: knows the line.
        value: the index.
        length: of the dimension.
        there: whether there is such an index; where there is none, it is 0.
    """
    own, extent = cast(value, INT64), whole_expression(length)
    if there is not None:
        own = apply("where", there, own, number(0, INT64))
        extent = apply("where", there, extent, number(1, INT64))
    if tracer.guarded:
        return _from_end(own, length)
    line = line_of_error(tracer, "IndexError")
    return apply("checked_index", own, extent, number(line, INT64))


def _there(tracer: Tracer, index: Sequence[Index], shape: Sequence[Length]) -> Expression | None:
    """Whether an index is below lengths that data decide; None where they decide none."""
    found: Expression | None = None
    for i, n in zip(index, shape, strict=True):
        if tracer.is_decided_by_data(n):
            below = apply("less", index_expression(i), whole_expression(n))
            found = below if found is None else apply("logical_and", found, below)
    return found


def _from_end(value: Expression, length: Length) -> Expression:
    own = cast(value, INT64)
    from_end = apply("add", own, whole_expression(length))
    return apply("where", apply("less", own, number(0, INT64)), from_end, own)


def _check_ends(tracer: Tracer, value: sympy.Expr, length: Length) -> None:
    """Let the program end where an index of loops and sizes is out of range, if that may be.

    Iterations of maps have no order in which to end: their indices are checked before the map.
    """
    bounds = tracer.known.bounds
    if tracer.hooks.ends_if is None or (tracer.guarded and tracer.map.straight is None):
        return
    if is_ranged_by_data(value, bounds):
        return
    if isinstance(value, sympy.Mod) and same(value.args[1], length):
        return
    is_in_map = bool(tracer.map.parallel) or tracer.map.straight is not None
    if (is_in_map and not tracer.guarded) and (
        not tracer.map.maps or tracer.map.maps[-1].note(tracer, value, length)
    ):
        return
    above, below = add(value, length), subtract(subtract(length, 1), value)
    if tracer.is_not_negative(above) and tracer.is_not_negative(below):
        return
    if tracer.guarded:
        tracer.map.straight.unproved.append((value, length))
    elif is_in_map:
        _checked_symbol(tracer, value, length)
        tracer.map.in_range.append(sympy.And(sympy.Ge(value, -length), sympy.Lt(value, length)))
    else:
        outside = sympy.Or(sympy.Lt(value, -length), sympy.Ge(value, length))
        what = f"the index {value} is out of bounds for a dimension of {length}"
        tracer.hooks.ends_if(outside, "IndexError", what)


def _checked_symbol(tracer: Tracer, value: sympy.Expr, length: Length) -> Whole:
    """A symbol for an index that is a value of the run."""
    if tracer.guarded:
        return remainder(value, length)
    name = tracer.unique("place")
    tracer.known.bounds[name] = (0, subtract(length, 1))
    if tracer.known.rows & {s.name for s in value.free_symbols}:
        tracer.known.rows.add(name)
    line = line_of_error(tracer, "IndexError")
    checked = CheckedIndex(value, sympy.sympify(length), sympy.Integer(line))
    tracer.add(SetSymbol(name, checked, INT64))
    return symbol(name)


def _slice(tracer: Tracer, item: slice, length: Length) -> Axis:
    step = 1 if item.step is None else tracer.as_whole(item.step, "the step of a slice")
    if not isinstance(step, int):
        if not is_at_least(step, 1, tracer.known.bounds):
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
        first, stop, step = slice(ends[0], ends[1], step).indices(length)
        return Axis(first, step, len(range(first, stop, step)))
    if isinstance(step, int) and step < 0:
        start = subtract(length, 1) if ends[0] is None else _end(tracer, ends[0], length, -1)
        stop_ = -1 if ends[1] is None else _end(tracer, ends[1], length, -1)
        count = _positive(tracer, ceil_divide(subtract(start, stop_), -step))
        if not isinstance(count, int) and is_decided_by_data(count, tracer.known.bounds):
            tracer.known.capacities.setdefault(count, tracer.capacity(length))
        return Axis(start, step, count)
    start = 0 if ends[0] is None else _end(tracer, ends[0], length, 0, is_first=True)
    stop_ = length if ends[1] is None else _end(tracer, ends[1], length, 0)
    count = _positive(tracer, ceil_divide(subtract(stop_, start), step))
    _must_be_linear(tracer, start, count)
    if not isinstance(count, int) and is_decided_by_data(count, tracer.known.bounds):
        tracer.known.capacities.setdefault(count, _most(tracer, count, length))
    return Axis(start, step, count)


def _most(tracer: Tracer, count: Length, length: Length) -> Length:
    """The most elements of a part: those of the whole, or fewer where its end says so."""
    whole = tracer.capacity(length)
    try:
        own = tracer.capacity(count)
    except CannotRoll:
        return whole
    is_less = isinstance(own, int) and isinstance(whole, int) and own < whole
    return own if is_less else whole


def _must_be_linear(tracer: Tracer, *values: Whole) -> None:
    """Lengths that are powers or products of a loop's variable are no ranges of a space."""
    for value in values:
        if isinstance(value, int):
            continue
        powers = value.atoms(sympy.Pow, sympy.Mod)
        powers |= {f.args[1] for f in value.atoms(int_floor)}
        for power in powers:
            if any(s.name in tracer.known.bounds for s in power.free_symbols):
                raise CannotRoll(f"the part {value} changes with the loop other than by steps")


def _end(
    tracer: Tracer, value: Whole, length: Length, least: int, *, is_first: bool = False
) -> Whole:
    """An end of a slice, kept within the dimension where it could be outside.

    The first place of a part that goes forwards may be outside: nothing is read of such a part.
    """
    bounds = tracer.known.bounds
    if not is_at_least(value, 0, bounds):
        if is_at_least(subtract(-1, value), 0, bounds):
            value = add(length, value)
        elif not _by_sizes(tracer, value):
            is_negative = sympy.Min(1, sympy.Max(0, multiply(-1, value)))
            value = add(value, sympy.Mul(sympy.sympify(length), is_negative))
    last = add(length, least)  # counting down, one before the end is the last that is possible
    inside = subtract(last, value)
    if _by_sizes(tracer, value) and (is_first or not is_decided_by_data(length, bounds)):
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
    return not any(s.name in tracer.known.bounds for s in value.free_symbols)


def _positive(tracer: Tracer, count: Whole) -> Length:
    if isinstance(count, int):
        return max(0, count)
    if _by_sizes(tracer, count) or is_at_least(count, 0, tracer.known.bounds):
        return count
    return sympy.Max(0, count)


def _indices(tracer: Tracer, indices: Tensor, length: Length) -> Tensor:
    """Indices, counted from the end where they are negative, in a container."""

    def element(index: tuple[Index, ...]) -> Expression:
        own = indices.element(index)
        return checked_index(tracer, own, length, _there(tracer, index, indices.shape))

    return tracer.stored_anew(Tensor(indices.shape, INT64, element), "indices")
