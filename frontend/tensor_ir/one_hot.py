"""Sums of which only one term can be other than zero become that term.

before -> after:  ``sum over i of (c == i ? x : 0) * y``  ->  ``0 <= c < n ? x * y : 0``, as in the
derivative of a cross-entropy.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from distspmd.frontend.tensor_ir.indices import At, Call, Expression, Load, Value, Variable

PICK = "({0} == {1} ? {2} : {3})"
"""Chosen, place, what is there, and what is elsewhere."""
_FACTORS = ("({0} * {1})", "({0} / {1})")
_ZERO = re.compile(r"\w+\(-?0(\.0)?\)")


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
    test = f"({{0}} >= 0 && {{0}} < {variable.length} ? {{1}} : {{2}})"
    return Call(test, (chosen, value, zero), value.dtype, 2)


def _only(e: Expression, variable: Variable) -> tuple[Expression, Expression, Expression] | None:
    """The one place, what is there, and zero."""
    if not isinstance(e, Call):
        return None
    if e.text == PICK:
        chosen, place, value, zero = e.arguments
        free = not _depends(chosen, variable) and not _depends(value, variable)
        return (chosen, value, zero) if free and _is(place, variable) and _is_zero(zero) else None
    if e.text in _FACTORS:
        first, second = e.arguments
        for one, other in ((first, second), (second, first))[: 1 + (e.text == _FACTORS[0])]:
            found = _only(one, variable)
            if found is not None and not _depends(other, variable):
                chosen, value, zero = found
                pair = (value, other) if one is first else (other, value)
                return chosen, Call(e.text, pair, e.dtype, e.cost), zero
    return None


def _is(place: Expression, variable: Variable) -> bool:
    at = place.index if isinstance(place, At) else None
    return at is not None and at.terms == ((variable, 1),) and not at.constant


def _is_zero(e: Expression) -> bool:
    return isinstance(e, Call) and not e.arguments and bool(_ZERO.fullmatch(e.text))


def _depends(e: Expression, variable: Variable) -> bool:
    """Whether a variable counts in an expression, also as a part of another one."""
    if isinstance(e, Load):
        return any(variable in v.leaves() for index in e.index for v, _ in index.terms)
    if isinstance(e, At):
        return any(variable in v.leaves() for v, _ in e.index.terms)
    return any(_depends(argument, variable) for argument in e.arguments)
