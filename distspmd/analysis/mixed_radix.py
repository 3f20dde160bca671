"""Whether indices leave a hole: sums of strided ranges, such as ``32 * block + thread``.

Such a sum is a number whose digits have weights of any size. Ordered by weight, each digit has to
be filled up by those before it: exactly then the sums are all integers from the least to the
greatest, because the weight of the first digit that is not filled up is where the sums go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sympy
from numpy.typing import NDArray

from distspmd.analysis.index_bounds import Range, Scope, constant


@dataclass(frozen=True, slots=True)
class Digit:
    """A summand of an index: the multiples of ``weight`` from 0 to ``span``, which is one."""

    weight: int
    span: sympy.Expr


def digits_of(indices: Range, scope: Scope) -> list[Digit] | None:
    """The summands of indices, but for a constant; each takes its values by itself.

    Args:
        indices: what one access touches: ends that name symbols of the scope.
        scope: ranges of these symbols, none of them empty.

    Returns:
        None where the indices are no such sum, or where their ends may not be reached.
    """
    length = sympy.expand(indices.upper - indices.lower)
    if indices.step is None or _depends(length, scope):
        return None
    found = [Digit(indices.step, length)]
    rest = sympy.expand(indices.lower)
    for name in reversed(scope):
        symbol = next((s for s in rest.free_symbols if s.name == name), None)
        if symbol is None:
            continue
        values, weight = scope[name], constant(rest.coeff(symbol, 1))
        rest = sympy.expand(rest - (weight or 0) * symbol)
        if values is not None and abs(weight or 0) == 1 and length == 0 and len(found) == 1:
            values = values if _depends(rest, scope) else _unclipped(values, scope)
        if values is None or values.step is None or not weight or symbol in rest.free_symbols:
            return None
        span = sympy.expand(values.upper - values.lower)
        if _depends(span, scope):
            return None
        found.append(Digit(abs(weight) * values.step, abs(weight) * span))
        rest = sympy.expand(rest + weight * values.lower)
    return found


def is_filled(
    digits: Sequence[Digit], value: Callable[[sympy.Expr], NDArray[np.int64]]
) -> NDArray[np.bool_]:
    """Whether the sums have no hole, in each of the places for which spans have a value."""
    filled: NDArray[np.bool_] = np.array(True)
    reach: NDArray[np.int64] = np.array(0)
    for digit in sorted(digits, key=lambda digit: digit.weight):
        span = value(digit.span)
        filled = filled & ((span <= 0) | (digit.weight <= reach + 1))
        reach = reach + np.maximum(span, 0)
    return filled


def ends_of(values: Range) -> tuple[list[sympy.Expr], list[sympy.Expr]]:
    """Lower ends and upper ends of a range, the inmost of which bind."""
    return _one_of(values.lower, "Max"), _one_of(values.upper, "Min")


def _one_of(end: sympy.Expr, function: str) -> list[sympy.Expr]:
    """Expressions the greatest or least of which is a sum: those in a function, plus the rest."""
    terms = sympy.Add.make_args(sympy.expand(end))
    choices = [term for term in terms if term.func.__name__ == function]
    if len(choices) != 1:
        return [end]
    rest = sympy.Add(*(term for term in terms if term is not choices[0]))
    return [choice + rest for choice in choices[0].args]


def _unclipped(values: Range, scope: Scope) -> Range:
    """The range without upper ends that are the same all over the scope.

    An index that is the symbol alone loses nothing but what lies behind such an end: of blocks
    that fill an interval, cut off at its end, all but the last are whole.
    """
    _, uppers = ends_of(values)
    moving = [upper for upper in uppers if _depends(upper, scope)]
    if not moving or len(moving) == len(uppers):
        return values
    return Range(values.lower, sympy.Min(*moving), values.step)


def _depends(expression: sympy.Expr, scope: Scope) -> bool:
    return any(symbol.name in scope for symbol in expression.free_symbols)
