"""Lengths that data decide: ``x[:count]``, where the program computes the count.

A container gets the length that it may have at most, its capacity. What is written to it runs over
the capacity, and reads of what lies outside are moved inside; a part of an array is written where
the index lies in the part. So no range of a space depends on data.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy

from distspmd.expressions.ir import Expression, Load, apply, replace_leaves
from distspmd.frontend.from_numpy.transcript import CannotRoll, Transcript, shape_text
from distspmd.frontend.from_numpy.values import (
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
    multiply,
    remainder,
    same,
    subtract,
)


def is_decided_by_data(length: Whole, bounds: Bounds) -> bool:
    """Whether a length has symbols of which nothing is known before the run."""
    if isinstance(length, int):
        return False
    return any(bounds.get(s.name) == (None, None) for s in length.free_symbols)


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


def check_lengths(tracer: Transcript, one: Length, other: Length) -> None:
    """End the program where two lengths differ that data decide; of 1 nothing is broadcast."""
    if tracer.ends_if is None or tracer.guarded or tracer.parallel or tracer.straight is not None:
        return
    if not any(is_decided_by_data(n, tracer.bounds) for n in (one, other)) or same(one, other):
        return
    from distspmd.frontend.from_numpy.checks import Part, Text

    lengths = [str(n) if isinstance(n, int) else Part(n) for n in (one, other)]
    head = "operands could not be broadcast together: values decide their lengths, which are "
    message = Text.of([head, lengths[0], " and ", lengths[1]])
    tracer.ends_if(sympy.Ne(one, other), "ValueError", message, can_go_on=True)


def inside(expression: Expression, bounds: Bounds) -> Expression:
    """An expression whose loads stay in their containers."""

    def moved(leaf: Expression) -> Expression:
        if not isinstance(leaf, Load):
            return leaf
        pairs = zip(leaf.index, leaf.array.shape, strict=True)
        found = tuple(_kept_in(i, n, bounds) for i, n in pairs)
        return Load(leaf.array, found, leaf.dtype)

    return replace_leaves(expression, moved)


def _kept_in(index: Index, length: Length, bounds: Bounds) -> Index:
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
        known = dict(bounds)
        for i, n in zip(index, shape, strict=True):
            if isinstance(i, sympy.Symbol):
                known[i.name] = (0, subtract(n, 1))
        return inside(tensor.element(index), known)

    return Tensor(tuple(shape), tensor.dtype, element, tensor.weak)


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


def _chosen(target: View, d: int, bounds: Bounds) -> tuple[int, int, Whole, int, Length] | None:
    """Of a dimension in which data decide the part: where it lies in the container.

    Returns:
        The dimension, that of the container, the first index there, the step, and the length; None
        where the part is known.

    Raises:
        CannotRoll: the dimension lies in several of the container.
    """
    places, n = target.place, target.shape[d]
    own = [k for k, p in enumerate(places) if isinstance(p, sympy.Basic) and p.has(axis(d))]
    if not is_decided_by_data(n, bounds) and not any(
        is_decided_by_data(subtract(places[k], axis(d)), bounds) for k in own
    ):
        return None
    if len(own) != 1:
        raise CannotRoll("the part is decided by data")
    (k,) = own
    step = sympy.expand(places[k]).coeff(axis(d), 1)
    first = subtract(places[k], multiply(step, axis(d)))
    if not step.is_Integer or (isinstance(first, sympy.Basic) and first.has(axis(d))):
        raise CannotRoll("the part is decided by data")
    return d, k, first, int(step), n


def over_container(target: View, value: Tensor, bounds: Bounds) -> tuple[View, Tensor]:
    """A view and a value, where data decide the part, over whole dimensions of the container.

    Raises:
        CannotRoll: a dimension of the part lies in several of the container.
    """
    places = list(target.place)
    shape = list(target.shape)
    choices = [
        choice for d in range(target.ndim) if (choice := _chosen(target, d, bounds)) is not None
    ]
    for d, k, _, _, _ in choices:
        places[k] = axis(d)
        shape[d] = target.container.shape[k]
    if not choices:
        return target, value
    whole = make_view(target.container, shape, places)

    def element(index: tuple[Index, ...]) -> Expression:
        known = dict(bounds)
        for i, n in zip(index, shape, strict=True):
            if isinstance(i, sympy.Symbol):
                known[i.name] = (0, subtract(n, 1))
        inner = list(index)
        tests = []
        for d, _, first, step, n in choices:
            there = subtract(index[d], first)
            inner[d] = floor_divide(there, step)
            tests.append(apply("greater_equal", whole_expression(inner[d]), whole_expression(0)))
            tests.append(apply("less", whole_expression(inner[d]), whole_expression(n)))
            if step not in (1, -1):
                rest = remainder(there, abs(step))
                tests.append(apply("equal", whole_expression(rest), whole_expression(0)))
        new = inside(value.element(tuple(inner)), known)
        if new.dtype != target.dtype:
            new = apply("cast", new, dtype=target.dtype)
        found = tests[0]
        for test in tests[1:]:
            found = apply("logical_and", found, test)
        return apply("where", found, new, whole.element(index))

    return whole, Tensor(tuple(shape), target.dtype, element)
