"""Sums of which only one term can be other than zero become that term.

before -> after:  ``sum over i of (c == i ? x : 0) * y``  ->  ``0 <= c < n ? x * y : 0``, as in the
derivative of a cross-entropy.
"""

from __future__ import annotations

from collections.abc import Collection

from distspmd.expressions.ir import (
    Constant,
    Expression,
    IndexValue,
    Load,
    Operation,
    apply,
)
from distspmd.frontend.tensor_ir.indices import Index, Value, Variable, at

_FACTORS = ("multiply", "divide")


def without_picks(value: Value, axes: Collection[int]) -> Value:
    """A value that is summed along axes, without the variables along which this is no sum."""
    dims, expression = list(value.dims), value.expression
    for d in axes:
        dims[d] = ()
        for variable in value.dim(d):
            found = _summed(expression, variable)
            if found is None:
                dims[d] += (variable,)
            else:
                expression = found
    return Value(tuple(dims), expression, value.shape)


def _summed(expression: Expression, variable: Variable) -> Expression | None:
    """The sum of an expression over a variable, if it is zero at all of its values but one."""
    found = _only(expression, variable)
    if found is None:
        return None
    chosen, value, zero = found
    ends = Constant(0, chosen.dtype), Constant(variable.length, chosen.dtype)
    return apply("pick_between", chosen, *ends, value, zero)


def _only(e: Expression, variable: Variable) -> tuple[Expression, Expression, Expression] | None:
    """The one place, what is there, and zero."""
    if not isinstance(e, Operation):
        return None
    if e.name == "pick":
        chosen, place, value, zero = e.arguments
        free = not _depends(chosen, variable) and not _depends(value, variable)
        return (chosen, value, zero) if free and _is(place, variable) and _is_zero(zero) else None
    if e.name in _FACTORS:
        first, second = e.arguments
        for one, other in ((first, second), (second, first))[: 1 + (e.name == "multiply")]:
            found = _only(one, variable)
            if found is not None and not _depends(other, variable):
                chosen, value, zero = found
                pair = (value, other) if one is first else (other, value)
                return chosen, Operation(e.name, pair, e.dtype), zero
    return None


def _is(place: Expression, variable: Variable) -> bool:
    return isinstance(place, IndexValue) and place == at(Index(((variable, 1),)))


def _is_zero(e: Expression) -> bool:
    return isinstance(e, Constant) and e.value == 0


def _depends(e: Expression, variable: Variable) -> bool:
    """Whether a variable counts in an expression, also as a part of another one."""
    if isinstance(e, Load):
        return any(variable in v.leaves() for index in e.index for v, _ in index.terms)
    if isinstance(e, IndexValue):
        return any(variable in v.leaves() for v, _ in e.terms)
    return any(_depends(argument, variable) for argument in e.arguments)
