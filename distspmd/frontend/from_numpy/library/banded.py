"""Systems of equations of three diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np


def tridiagonal(below: Any, main: Any, above: Any, b: np.ndarray[Any, Any]) -> Any:
    """Elimination with exchanges of neighbouring rows (LAPACK's gtsv)."""
    kind = np.result_type(below, main, above, b)
    n = main.shape[0]
    low = np.zeros(n, kind)
    diagonal = main.astype(kind)
    one = np.zeros(n, kind)
    two = np.zeros(n, kind)
    x = b.astype(kind)
    low[: n - 1] = below
    one[: n - 1] = above
    for i in range(n - 1):
        if abs(diagonal[i]) >= abs(low[i]):
            factor = low[i] / diagonal[i]
            diagonal[i + 1] -= factor * one[i]
            x[i + 1] -= factor * x[i]
        else:
            factor = diagonal[i] / low[i]
            diagonal[i] = low[i]
            held = diagonal[i + 1]
            diagonal[i + 1] = one[i] - factor * held
            two[i] = one[i + 1]
            one[i + 1] = -factor * two[i]
            one[i] = held
            swapped = x[i] - factor * x[i + 1]
            x[i] = x[i + 1]
            x[i + 1] = swapped
    if np.any(diagonal == 0):
        raise np.linalg.LinAlgError("singular matrix")
    x[n - 1] = x[n - 1] / diagonal[n - 1]
    if n > 1:
        x[n - 2] = (x[n - 2] - one[n - 2] * x[n - 1]) / diagonal[n - 2]
    for i in range(n - 3, -1, -1):
        x[i] = (x[i] - one[i] * x[i + 1] - two[i] * x[i + 2]) / diagonal[i]
    return x
