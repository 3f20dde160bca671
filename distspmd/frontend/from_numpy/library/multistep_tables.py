"""The formulas of Adams and of backward differences, by orders, as ODEPACK computes them."""

from __future__ import annotations

from typing import Any

import numpy as np

ADAMS, BDF = 0, 1
ORDERS = (12, 5)
ROWS = 13
STABLE = np.array([0.5, 0.575, 0.55, 0.45, 0.35, 0.25, 0.2, 0.15, 0.1, 0.075, 0.05, 0.025])
"""By orders, how far the formulas of Adams are stable."""


def _adams() -> tuple[Any, Any]:
    """The formulas of Adams, and what their errors are compared with."""
    formulas, tests = np.zeros((12, ROWS)), np.zeros((12, 3))
    formulas[0, :2] = 1.0
    tests[0, 1], tests[1, 0] = 2.0, 1.0
    powers = np.zeros(12)
    powers[0] = 1.0
    factor = 1.0
    for q in range(1, 12):
        before, factor = factor, factor / (q + 1)
        powers[1 : q + 1] = powers[:q] + q * powers[1 : q + 1]
        powers[0] *= q
        signs = (-1.0) ** np.arange(q + 1)
        formulas[q, 0] = before * np.sum(signs * powers[: q + 1] / np.arange(1, q + 2))
        formulas[q, 1] = 1.0
        formulas[q, 2 : q + 2] = before * powers[1 : q + 1] / np.arange(2, q + 2)
        size = 1.0 / (factor * np.sum(signs * powers[: q + 1] / np.arange(2, q + 3)))
        tests[q, 1] = tests[q - 1, 2] = size
        if q < 11:
            tests[q + 1, 0] = size * factor / (q + 2)
    return formulas, tests


def _bdf() -> tuple[Any, Any]:
    """The backward differences, and what their errors are compared with."""
    formulas, tests = np.zeros((12, ROWS)), np.ones((12, 3))
    powers = np.zeros(ROWS)
    powers[0] = 1.0
    factor = 1.0
    for q in range(5):
        powers[1 : q + 2] = powers[: q + 1] + (q + 1) * powers[1 : q + 2]
        powers[0] *= q + 1
        formulas[q, : q + 2] = powers[: q + 2] / powers[1]
        formulas[q, 1] = 1.0
        tests[q] = factor, (q + 2) / formulas[q, 0], (q + 3) / formulas[q, 0]
        factor /= q + 1
    return formulas, tests


_TABLES = (_adams(), _bdf())
FORMULAS = np.array([table[0] for table in _TABLES])
TESTS = np.array([table[1] for table in _TABLES])
CONSTANTS = np.array([[t[q, 1] * f[q, q + 1] for q in range(12)] for f, t in _TABLES])
"""By kinds and orders, the constants of errors, with which the kinds are compared."""


PAIRS = np.array(
    [([j for k in range(q) for j in range(q - 1 - k, q)] + [0] * 78)[:78] for q in range(ROWS)]
)
"""By orders, the rows to which the next ones are added one after the other, in a prediction."""
