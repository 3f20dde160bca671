"""Sums of series of orthogonal polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np


def summed(x: Any, c: Any, by_value: Any, by_first: Any, last: Any) -> Any:
    """Clenshaw's sum of a series.

    Args:
        x: where.
        c: coefficients, that of the lowest degree first.
        by_value: the factor of the sum so far, from it, the place and the degree.
        by_first: the factor of the sum before, from the degree.
        last: the value, from the last two sums and the place.
    """
    c = np.asarray(c) + 0.0
    if c.ndim != 1:
        raise NotImplementedError("several series at once; call it for each")
    if c.shape[0] < 2:
        c = np.append(c, 0.0)
    zero = np.zeros(np.shape(x), np.result_type(x, c))
    one, two = c[-2] + zero, c[-1] + zero
    n = c.shape[0]
    for i in range(3, n + 1):
        before = one
        one = c[n - i] - two * by_first(n - i + 2)
        two = before + by_value(two, x, n - i + 2)
    return last(one, two, x)
