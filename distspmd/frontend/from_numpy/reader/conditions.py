"""Conditions: what is known of them before the run, and their texts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sympy

from distspmd.expressions.ir import apply
from distspmd.frontend.from_numpy.arrays.elements import truth_of
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.tensor_ir.whole_numbers import is_at_least, subtract, text

_DIFFERENCES: dict[Any, Any] = {
    sympy.StrictLessThan: lambda a, b: (subtract(b, a), 1),
    sympy.LessThan: lambda a, b: (subtract(b, a), 0),
    sympy.StrictGreaterThan: lambda a, b: (subtract(a, b), 1),
    sympy.GreaterThan: lambda a, b: (subtract(a, b), 0),
}
"""Relations as a number, and the least that it has to be."""


def decided(tracer: Tracer, relation: sympy.Basic) -> bool | None:
    """Whether a relation of whole numbers holds for all values of its symbols."""
    if relation in (sympy.true, sympy.false):
        return bool(relation)
    if type(relation) in _DIFFERENCES:
        value, least = _DIFFERENCES[type(relation)](*relation.args)
        if is_at_least(value, least, tracer.known.bounds):
            return True
        if is_at_least(subtract(least - 1, value), 0, tracer.known.bounds):
            return False
        return None
    if isinstance(relation, sympy.Eq | sympy.Ne):
        difference = subtract(*relation.args)
        apart = is_at_least(difference, 1, tracer.known.bounds) or is_at_least(
            subtract(0, difference), 1, tracer.known.bounds
        )
        equal = difference == 0
        if apart or equal:
            return equal == isinstance(relation, sympy.Eq)
    return None


def facts_of(tracer: Tracer, value: Any, *, holds: bool = True) -> list[sympy.Expr]:
    """Numbers that are not negative where a relation holds, or does not.

    They are of sizes and variables of loops, which keep their values there.
    """
    if isinstance(value, sympy.And if holds else sympy.Or):
        return [fact for part in value.args for fact in facts_of(tracer, part, holds=holds)]
    if isinstance(value, sympy.Not):
        return facts_of(tracer, value.args[0], holds=not holds)
    if type(value) not in _DIFFERENCES:
        return []
    above, least = _DIFFERENCES[type(value)](*value.args)
    fact = subtract(above, least) if holds else subtract(least - 1, above)
    if isinstance(fact, int) or any(
        tracer.known.bounds.get(s.name) == (None, None) for s in fact.free_symbols
    ):
        return []
    return [fact]


@contextmanager
def goes_on(tracer: Tracer, op: ast.boolop, found: object) -> Iterator[None]:
    """Read what stands behind a value in ``and`` or ``or``, which may decide by itself."""
    if found is None:
        yield
        return
    value = tracer.truth(relation(found)) if isinstance(found, sympy.Basic) else found
    conditions = []
    if isinstance(value, Tensor):
        holds = truth_of(value.element((0,) * value.ndim))
        conditions = [apply("logical_not", holds) if isinstance(op, ast.Or) else holds]
    with tracer.guarded_by(*conditions):
        yield


def condition_text(interpreter: Context, value: object) -> str:
    """The text of a condition that is known at run time only."""
    tracer = interpreter.tracer
    if isinstance(value, sympy.Basic):
        return relation_text(value)
    return tracer.condition(tracer.tensor(value))


def relation_text(value: sympy.Basic) -> str:
    """A relation of whole numbers in Python's syntax."""
    if isinstance(value, sympy.And):
        return "(" + " and ".join(map(relation_text, value.args)) + ")"
    if isinstance(value, sympy.Or):
        return "(" + " or ".join(map(relation_text, value.args)) + ")"
    if isinstance(value, sympy.Not):
        return f"(not {relation_text(value.args[0])})"
    signs = {
        sympy.StrictLessThan: "<",
        sympy.LessThan: "<=",
        sympy.StrictGreaterThan: ">",
        sympy.GreaterThan: ">=",
        sympy.Equality: "==",
        sympy.Unequality: "!=",
    }
    if type(value) in signs:
        a, b = value.args
        return f"({text(a)} {signs[type(value)]} {text(b)})"
    if value in (sympy.true, sympy.false):
        return str(bool(value))
    return f"({text(value)} != 0)"


def relation(value: sympy.Basic) -> sympy.Basic:
    """A whole number as a truth value."""
    is_truth = isinstance(value, sympy.logic.boolalg.Boolean) and not value.is_Symbol
    return value if is_truth else sympy.Ne(value, 0)  # symbols are both to SymPy
