"""Systems of equations whose matrices are bands, in the storage that LAPACK has for them."""

from __future__ import annotations

from typing import Any

import numpy as np


def solve_banded(
    l_and_u: Any,
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """A band of some diagonals below and above the main one."""
    below, above = l_and_u
    bands, right = np.asarray(ab) * 1.0, np.asarray(b) * 1.0
    if below + above + 1 != bands.shape[0]:
        raise ValueError("invalid values for the number of lower and upper diagonals")
    if below == 1 and above == 1:
        return tridiagonal(bands[2, :-1], bands[1], bands[0, 1:], right)
    n = bands.shape[1]
    whole = np.zeros((n, n), bands.dtype)
    for k in range(-below, above + 1):
        rows = np.arange(max(0, -k), min(n, n - k))
        whole[rows, rows + k] = bands[above - k, rows + k]
    return np.linalg.solve(whole, right)


def solveh_banded(
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Any:
    """A Hermitian band, by its upper or lower part."""
    bands = np.asarray(ab) * 1.0
    u, n = bands.shape[0] - 1, bands.shape[1]
    whole = np.zeros((n, n), bands.dtype)
    for k in range(u + 1):
        rows = np.arange(n - k)
        part = bands[k, : n - k] if lower else np.conj(bands[u - k, k:])
        whole[rows + k, rows] = part
        whole[rows, rows + k] = np.conj(part)
    return np.linalg.solve(whole, np.asarray(b) * 1.0)


def tridiagonal(below: Any, main: Any, above: Any, b: Any) -> Any:
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
