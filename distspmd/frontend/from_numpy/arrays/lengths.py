"""Lengths that data decide: ``x[:count]``, where the program computes the count.

A container gets the length that it may have at most, its capacity. What is written to it runs over
the capacity, and reads of what lies outside are moved inside; a part of an array is written where
the index lies in the part. So no range of a space depends on data.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from distspmd.expressions.ir import Expression, Load, apply, replace_leaves
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, Transcript, shape_text
from distspmd.frontend.from_numpy.arrays.values import (
    Tensor,
    View,
    axis,
    index_expression,
    make_view,
    whole_expression,
)
from distspmd.frontend.tensor_ir.statements import Index, Length
from distspmd.frontend.tensor_ir.whole_numbers import (
    Bounds,
    Whole,
    add,
    floor_divide,
    int_floor,
    is_at_least,
    is_decided_by_data,
    multiply,
    remainder,
    same,
    subtract,
)


def capacity(length: Whole, bounds: Bounds, known: Mapping[Any, Length]) -> Length:
    """The most that a length can be.

    Raises:
        CannotRoll: that is not known.
    """
    if not is_decided_by_data(length, bounds):
        return length
    if length in known:
        return known[length]
    assert isinstance(length, sympy.Basic)
    if isinstance(length, sympy.Max):
        return _fold(sympy.Max, [capacity(_whole(a), bounds, known) for a in length.args])
    if isinstance(length, sympy.Min):
        ends = [e for a in length.args if (e := _end(_whole(a), bounds, known)) is not None]
        if ends:
            return _fold(sympy.Min, ends)
    if isinstance(length, sympy.Mul) and length.as_coeff_Mul()[0].is_positive:
        factors = [capacity(_whole(factor), bounds, known) for factor in length.args]
        return functools.reduce(multiply, factors)
    if isinstance(length, int_floor) and length.args[1].is_positive:
        return floor_divide(capacity(_whole(length.args[0]), bounds, known), _whole(length.args[1]))
    if isinstance(-length, int_floor) and (-length).args[1].is_positive:  # rounded up
        top, divisor = (-length).args
        most = capacity(_whole(sympy.expand(-top)), bounds, known)
        return floor_divide(add(most, subtract(_whole(divisor), 1)), _whole(divisor))
    if isinstance(length, sympy.Add):
        terms = [_capacity_of_term(_whole(term), bounds, known) for term in length.args]
        return functools.reduce(add, terms)
    raise CannotRoll(f"the length {length} is not known before the run")


def _end(length: Whole, bounds: Bounds, known: Mapping[Any, Length]) -> Length | None:
    try:
        return capacity(length, bounds, known)
    except CannotRoll:
        return None


def _capacity_of_term(term: Whole, bounds: Bounds, known: Mapping[Any, Length]) -> Length:
    """The most of a summand; what is taken off is never negative."""
    if not is_decided_by_data(term, bounds):
        return term
    assert isinstance(term, sympy.Basic)
    factor, rest = term.as_coeff_Mul()
    if factor.is_positive:
        return multiply(int(factor), capacity(_whole(rest), bounds, known))
    if not is_at_least(_whole(rest), 0, bounds) and not rest.is_Symbol:
        raise CannotRoll(f"the length {term} is not known before the run")
    return 0


def _whole(value: sympy.Basic) -> Whole:
    return int(value) if value.is_Integer else value


def _fold(kind: Any, values: Sequence[Length]) -> Length:
    if all(isinstance(v, int) for v in values):
        return (max if kind is sympy.Max else min)(values)
    return kind(*map(sympy.sympify, values))


def fewest(values: Sequence[Length]) -> Length:
    """The least of some lengths, each of which is an upper limit."""
    return _fold(sympy.Min, values)


MOST_ELEMENTS = 1 << 24
"""Arrays of which lengths have no bound before the run are given no more room than this."""


def rooms(tracer: Transcript, shape: Sequence[Length]) -> list[Length]:
    """The most that each length of a new array can be.

    A length of which nothing is known gets as much as a list of the run has; the program ends with
    a ``ValueError`` where it is more, or negative.

    Raises:
        CannotRoll: no check may stand here, or the array would be too large.
    """
    if tracer.map.own:
        return list(shape)
    found = [_end(length, tracer.known.bounds, tracer.known.capacities) for length in shape]
    if None not in found:
        return [n for n in found if n is not None]
    if not can_end(tracer):
        capacity(
            shape[found.index(None)], tracer.known.bounds, tracer.known.capacities
        )  # which refuses it
    own = [
        _room(tracer, length) if n is None else n for length, n in zip(shape, found, strict=True)
    ]
    if functools.reduce(operator.mul, [n for n in own if isinstance(n, int)], 1) > MOST_ELEMENTS:
        raise CannotRoll(
            f"the lengths {', '.join(map(str, shape))} are not known before the run, and an array "
            "of all that they may be is too large; pass them as Python ints"
        )
    return own


def _room(tracer: Transcript, length: Length) -> Length:
    give_room(tracer, length)
    most = capacity(length, tracer.known.bounds, tracer.known.capacities)
    _end_if(tracer, sympy.Gt(length, most), _too_many())
    if not is_at_least(length, 0, tracer.known.bounds):
        _end_if(tracer, sympy.Lt(length, 0), "negative dimensions are not allowed")
    return most


INSTEAD = "pass the length as a Python int, which is known before the run"


def give_room(
    tracer: Transcript, length: Length, what: str = "an array", instead: str = INSTEAD
) -> None:
    """Let each number in a length that only the run knows be at most the room of lists.

    The program ends with a ``ValueError`` where one is more.

    Args:
        tracer: gets the checks.
        length: that the run decides.
        what: is as long, for messages.
        instead: what to write where the room is too little.
    """
    assert isinstance(length, sympy.Basic)
    for each in sorted(length.free_symbols, key=str):
        if is_decided_by_data(each, tracer.known.bounds) and each not in tracer.known.capacities:
            too_many = sympy.Gt(each, sympy.sympify(tracer.lists.room))
            _end_if(tracer, too_many, _too_many(what, instead))
            tracer.known.capacities[each] = tracer.lists.room


def _too_many(what: str = "an array", instead: str = INSTEAD) -> str:
    return f"{what} has more elements than are provided for; {instead}"


def _end_if(
    tracer: Transcript, condition: object, message: str | list[Any], **options: bool
) -> None:
    assert tracer.hooks.ends_if is not None
    tracer.hooks.ends_if(condition, "ValueError", message, **options)


def can_end(tracer: Transcript) -> bool:
    """Whether a check may stand where the reading is."""
    return not (
        tracer.hooks.ends_if is None
        or tracer.guarded
        or tracer.map.parallel
        or tracer.map.straight is not None
    )


def common_length(
    tracer: Transcript, one: Length, other: Length, shapes: Sequence[Sequence[Length]]
) -> Length:
    """The length of a dimension that has two in operands, neither of which is known to be 1.

    Where data decide them, the program ends with a ``ValueError`` where they differ.

    Args:
        tracer: gets the check.
        one: of them.
        other: the second one.
        shapes: of all operands.

    Raises:
        Refusal: they differ.
    """
    if same(one, other):
        return one
    if isinstance(one, int) and isinstance(other, int):
        texts = " ".join(map(shape_text, shapes))
        tracer.refuse(f"operands could not be broadcast together: shapes {texts}")
    check_lengths(tracer, one, other)
    return one if isinstance(one, int) or not isinstance(other, int) else other


def unpacked_count(tracer: Transcript, value: Tensor, like: ast.AST | None) -> int | None:
    """How many elements or rows of an array are unpacked; None where that is not known.

    As many as variables get one, where the run decides the length, and of a starred argument as
    many as a slice takes at most: the program ends with a ``ValueError`` where there are others.
    """
    if not value.ndim:
        return None
    length = value.shape[0]
    if isinstance(length, int):
        return length
    count: Any = None
    if isinstance(like, ast.Tuple | ast.List):
        is_known = not any(isinstance(part, ast.Starred) for part in like.elts)
        count = len(like.elts) if is_known else None
    elif isinstance(like, ast.Starred):
        most = _end(length, tracer.known.bounds, tracer.known.capacities)
        ends = [end for part in length.atoms(sympy.Min) for end in part.args]
        count = most if any(end.is_Integer for end in ends) else None
    if not isinstance(count, int) or not can_end(tracer):
        return None
    what = f"{count} values are unpacked, and as many are not there"
    _end_if(tracer, sympy.Ne(length, count), what)
    return count


def check_lengths(tracer: Transcript, one: Length, other: Length) -> None:
    """End the program where two lengths differ that data decide; of 1 nothing is broadcast.

    Raises:
        CannotRoll: a scope for parts of rows is read, in which nothing can end it.
    """
    if not can_end(tracer) and tracer.in_row is None:
        return
    if not any(is_decided_by_data(n, tracer.known.bounds) for n in (one, other)) or same(
        one, other
    ):
        return
    if tracer.in_row is not None:
        raise CannotRoll(f"the lengths {one} and {other} are to be the same")
    head = "operands could not be broadcast together: values decide their lengths, which are "
    _end_if(tracer, sympy.Ne(one, other), [head, one, " and ", other], can_go_on=True)


def inside(expression: Expression, bounds: Bounds) -> Expression:
    """An expression whose loads stay in their containers."""

    def moved(leaf: Expression) -> Expression:
        if not isinstance(leaf, Load):
            return leaf
        pairs = zip(leaf.index, leaf.array.shape, strict=True)
        found = tuple(kept_in(i, n, bounds) for i, n in pairs)
        return Load(leaf.array, found, leaf.dtype)

    return replace_leaves(expression, moved)


def kept_in(index: Index, length: Length, bounds: Bounds) -> Index:
    """An index, or the nearest one in a dimension of a length."""
    if not isinstance(index, int | sympy.Basic):
        return index
    low = is_at_least(index, 0, bounds)
    high = is_at_least(subtract(subtract(length, 1), index), 0, bounds)
    value = sympy.sympify(index)
    if not high:
        value = sympy.Min(value, sympy.sympify(length) - 1)
    return index if low and high else (value if low else sympy.Max(0, value))


def with_capacity(tensor: Tensor, shape: Sequence[Length], bounds: Bounds) -> Tensor:
    """A tensor in the shape of its capacities; what lies outside of it is any number."""

    def element(index: tuple[Index, ...]) -> Expression:
        return inside(tensor.element(index), _known_inside(index, shape, bounds))

    return Tensor(tuple(shape), tensor.dtype, element, tensor.weak)


def _known_inside(index: Sequence[Index], shape: Sequence[Length], bounds: Bounds) -> Bounds:
    """Bounds, with those of indices in a shape."""
    own = zip(index, shape, strict=True)
    return {
        **bounds,
        **{i.name: (0, subtract(n, 1)) for i, n in own if isinstance(i, sympy.Symbol)},
    }


def neutral_outside(
    tensor: Tensor,
    shape: Sequence[Length],
    neutral: Callable[[tuple[Index, ...]], Expression],
    bounds: Bounds,
) -> Tensor:
    """A tensor in the shape of its capacities; what lies outside of it are neutral numbers."""
    whole = with_capacity(tensor, shape, bounds)

    def element(index: tuple[Index, ...]) -> Expression:
        found = whole.element(index)
        for i, own, n in zip(index, tensor.shape, shape, strict=True):
            if own is not n and is_decided_by_data(own, bounds):
                there = apply("less", index_expression(i), whole_expression(own))
                found = apply("where", there, found, neutral(index))
        return found

    return Tensor(tuple(shape), tensor.dtype, element)


@dataclass(frozen=True)
class _Part:
    """Of a dimension of a view in which data decide the part: where it lies in the container.

    Attributes:
        place: the dimension of the container; None where the view goes along several at once.
        most: elements that there can be.
        first: the first index there.
        step: of the view in it.
        length: that data decide.
    """

    place: int | None
    most: Length
    first: Whole
    step: int
    length: Length

    def place_of(self, index: Index) -> tuple[Index, list[Expression]]:
        """The index in the part of one in the container, and tests of whether it lies there."""
        there = subtract(index, self.first)
        inner = floor_divide(there, self.step)
        tests: list[Expression] = [
            apply("greater_equal", whole_expression(inner), whole_expression(0)),
            apply("less", whole_expression(inner), whole_expression(self.length)),
        ]
        if self.step not in (1, -1):
            rest = remainder(there, abs(self.step))
            tests.append(apply("equal", whole_expression(rest), whole_expression(0)))
        return inner, tests


def _part(target: View, d: int, bounds: Bounds) -> _Part | None:
    """Where the part lies of a dimension in which data decide it; None where it is known.

    Raises:
        CannotRoll: the dimension lies in several of the container, not as a diagonal does.
    """
    places, n = target.place, target.shape[d]
    extents = target.container.shape
    own = [k for k, p in enumerate(places) if isinstance(p, sympy.Basic) and p.has(axis(d))]
    firsts = [subtract(places[k], axis(d)) for k in own]
    moves = any(is_decided_by_data(first, bounds) for first in firsts)
    if not is_decided_by_data(n, bounds) and not moves:
        return None
    if len(own) > 1 and not any(isinstance(f, sympy.Basic) and f.has(axis(d)) for f in firsts):
        ends = [subtract(extents[k], first) for k, first in zip(own, firsts, strict=True)]
        if not moves:
            return _Part(None, functools.reduce(_shorter, ends), 0, 1, n)
    if len(own) != 1:
        raise CannotRoll("the part is decided by data")
    (k,) = own
    step = sympy.expand(places[k]).coeff(axis(d), 1)
    first = subtract(places[k], multiply(step, axis(d)))
    if not step.is_Integer or (isinstance(first, sympy.Basic) and first.has(axis(d))):
        raise CannotRoll("the part is decided by data")
    return _Part(k, extents[k], first, int(step), n)


def _shorter(one: Length, other: Length) -> Length:
    return one if same(one, other) else _fold(sympy.Min, [one, other])


def over_container(target: View, value: Tensor, bounds: Bounds) -> tuple[View, Tensor]:
    """A view and a value, where data decide the part, over whole dimensions of the container.

    Raises:
        CannotRoll: a dimension of the part lies in several of the container.
    """
    places = list(target.place)
    shape = list(target.shape)
    choices = {d: part for d in range(target.ndim) if (part := _part(target, d, bounds))}
    for d, part in choices.items():
        shape[d] = part.most
        if part.place is not None:
            places[part.place] = axis(d)
    if not choices:
        return target, value
    whole = make_view(target.container, shape, places)

    def element(index: tuple[Index, ...]) -> Expression:
        inner = list(index)
        tests = []
        for d, part in choices.items():
            inner[d], own = part.place_of(index[d])
            tests += own
        new = inside(value.element(tuple(inner)), _known_inside(index, shape, bounds))
        if new.dtype != target.dtype:
            new = apply("cast", new, dtype=target.dtype)
        found = functools.reduce(functools.partial(apply, "logical_and"), tests)
        return apply("where", found, new, whole.element(index))

    return whole, Tensor(tuple(shape), target.dtype, element)
