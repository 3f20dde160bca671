"""What is stored before it is broadcast: elements that cost more than to read them again.

before -> after:  ``y = z**s * x`` with one ``z``  ->  ``power_expr = z**s; y = power_expr * x``

A kernel over the larger shape would take the power of each of its elements, and the compiler does
not know of all functions that one call is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from distspmd.expressions.ir import (
    Expression,
    IndexValue,
    Load,
    Operation,
    count_additions,
    parts,
)
from distspmd.frontend.from_numpy.arrays.elements import is_one
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.tensor_ir.statements import Length
from distspmd.frontend.tensor_ir.whole_numbers import symbol
from distspmd.plans.heuristics import HEURISTICS

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.arrays.tracer import Tracer


def before_spreading(tracer: Tracer, value: Tensor, shape: Sequence[Length]) -> Tensor:
    """A tensor before it is broadcast to a shape: stored if its elements are work, surely read."""
    if type(value) is not Tensor or value.is_on_demand or tracer.guarded:
        return value
    if sum(not is_one(n) for n in shape) == sum(not is_one(n) for n in value.shape):
        return value
    expression = value.element(tuple(symbol(f"__probe{d}") for d in range(value.ndim)))
    if count_additions(expression) < HEURISTICS.spread_work:
        return value
    if not any(isinstance(part, Load | IndexValue) for part in parts(expression)):
        return value
    return tracer.stored_anew(value, _named(expression))


def _named(expression: Expression) -> str | None:
    """The name of a space of what is computed last."""
    while isinstance(expression, Operation) and expression.name == "cast":
        (expression,) = expression.arguments
    return f"{expression.name}_expr" if isinstance(expression, Operation) else None
