"""Logarithms of sums of powers: elements of ``np.logaddexp`` and its like."""

from __future__ import annotations

import math
from collections.abc import Callable

from distspmd.expressions.ir import Expression, apply
from distspmd.frontend.from_numpy.arrays.values import number


def sum_of_powers(
    power: str, log: Callable[[Expression], Expression], of_two: float
) -> Callable[..., Expression]:
    """``logaddexp`` and its like, of equal infinities, too."""

    def build(a: Expression, b: Expression) -> Expression:
        high, low = apply("maximum", a, b), apply("minimum", a, b)
        apart = apply("subtract", low, high)
        found = apply("add", high, log(apply(power, apart)))
        twice = apply("add", a, number(of_two, a.dtype))
        return apply("where", apply("equal", a, b), twice, found)

    return build


def log2_of_rest(a: Expression) -> Expression:
    """``log2(1 + a)``."""
    return apply("multiply", apply("log1p", a), number(1 / math.log(2), a.dtype))
