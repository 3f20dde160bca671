"""Values that may be None: a choice of None and a value, and a symbol that says which it is.

``is None`` asks the symbol. Where such a value is computed with, the program ends with Python's
TypeError on all ranks if it is None.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sympy

from distspmd.expressions.ir import apply
from distspmd.frontend.from_numpy import checks
from distspmd.frontend.from_numpy.syntax.variables import OneOf, Undecided
from distspmd.frontend.from_numpy.tracer import Tracer
from distspmd.frontend.from_numpy.values import INT64, Tensor
from distspmd.frontend.tensor_ir.statements import Block, SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import same, subtract, symbol

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.interpreter import Interpreter


def may_be_none(value: Any) -> bool:
    """Whether a value is None or something that is no choice itself, which the run decides."""
    if not isinstance(value, OneOf):
        return False
    others = [each for each in value.values if each is not None]
    return len(others) == 1 and not isinstance(others[0], Undecided)


def value_of(choice: OneOf) -> Any:
    """What a value is that may be None, where it is not."""
    one, other = choice.values
    return other if one is None else one


def is_none(choice: OneOf) -> sympy.Basic:
    """Whether a value that may be None is None."""
    kind = sympy.Ne if choice.values[0] is None else sympy.Eq
    return kind(choice.which, 0)


def _known(tracer: Tracer, choice: OneOf) -> bool | None:
    """Whether it is known here that a value is None, or is not."""
    first, last = tracer.bounds.get(choice.which.name, (0, 1))
    return None if first != last else (first != 0) == (choice.values[0] is None)


def compared_with_none(run: Interpreter, op: ast.cmpop, left: Any, right: Any) -> Any:
    """``left is right``, where one may be None and the other is; NotImplemented elsewhere."""
    if not isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        return NotImplemented
    for one, other in ((left, right), (right, left)):
        if may_be_none(one) and other is None:
            found = is_none(one)
            holds = _known(run.tracer, one)
            negative = isinstance(op, ast.IsNot | ast.NotEq)
            if holds is not None:
                return holds != negative
            return sympy.Not(found) if negative else found
    return NotImplemented


def known_value(run: Interpreter, choice: Any) -> Any:
    """A value of which it is known here that it is None, or that it is not."""
    if not may_be_none(choice):
        return choice
    known = _known(run.tracer, choice)
    return choice if known is None else None if known else value_of(choice)


def present(run: Interpreter, choice: Any) -> Any:
    """What is computed with, of a value that may be None: the program ends where it is."""
    if not may_be_none(choice):
        return choice
    absent, tracer = is_none(choice), run.tracer
    known = _known(tracer, choice)
    if known:
        tracer.refuse("TypeError: the value is None here")
    if known is None:
        condition: Any = absent
        if tracer.guarded:
            guard = tracer.guard()
            if guard is None or tracer.straight is not None:
                tracer.refuse(choice.reason)
            truth = tracer.truth(absent)
            condition = Tensor(
                (), truth.dtype, lambda _: apply("logical_and", guard, truth.element(()))
            )
        checks.end_if(run, condition, "TypeError", f"{choice.reason}: it is None")
    return value_of(choice)


@contextmanager
def knowing(tracer: Tracer, test: Any, *, holds: bool) -> Iterator[None]:
    """Read a branch in which it is known of a value whether it is None."""
    if isinstance(test, sympy.Not):
        with knowing(tracer, test.args[0], holds=not holds):
            yield
        return
    name = test.args[0].name if isinstance(test, sympy.Eq | sympy.Ne) and _asks(test) else None
    if name is None or tracer.bounds.get(name) != (0, 1):
        yield
        return
    is_zero = holds == isinstance(test, sympy.Eq)
    before = tracer.bounds[name]
    tracer.bounds[name] = (0, 0) if is_zero else (1, 1)
    try:
        yield
    finally:
        tracer.bounds[name] = before


def _asks(test: sympy.Basic) -> bool:
    return isinstance(test.args[0], sympy.Symbol) and test.args[1] == 0


def joined_choice(
    run: Interpreter, name: str, values: Sequence[Any], blocks: Sequence[Block], join: Any
) -> Any:
    """A value of two ways of which one at least may be None; None where they are other things.

    Args:
        run: the reading.
        name: of the value.
        values: what it is on each way.
        blocks: the ways.
        join: of two values, what is one of them.
    """
    tracer = run.tracer
    if any(isinstance(value, Undecided) and not may_be_none(value) for value in values):
        return None
    present_ = [value_of(v) if may_be_none(v) else v for v in values]
    others = [v for v in present_ if v is not None]
    found = others[0] if len(others) == 1 else join(*others)
    if isinstance(found, Undecided):
        return None
    which = tracer.unique(f"{name}_which")
    tracer.bounds[which] = (0, 1)
    for value, block in zip(values, blocks, strict=True):
        with tracer.within(block):
            tracer.add(SetSymbol(which, _number(value), INT64))
    reason = next(v.reason for v in values if may_be_none(v))
    return OneOf(reason, symbol(which), (None, found))


def _number(value: Any) -> sympy.Basic:
    """1 where a value is None, 0 where it is not."""
    if not may_be_none(value):
        return sympy.Integer(value is None)
    return value.which if value.values[0] is None else sympy.sympify(subtract(1, value.which))


def alike_choices(one: Any, other: Any, alike: Any) -> bool:
    """Whether two values that may be None are the same one."""
    return (
        may_be_none(one)
        and may_be_none(other)
        and same(one.which, other.which)
        and all(a is b or alike(a, b) for a, b in zip(one.values, other.values, strict=True))
    )
