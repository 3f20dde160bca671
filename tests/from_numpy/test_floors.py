"""Quotients and remainders of negative whole numbers are Python's, in indices and ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from mpi4py import MPI

import distspmd
from distspmd.frontend import numpy_program
from distspmd.frontend.tensor_ir.whole_numbers import (
    among,
    floor_divide,
    remainder,
    symbol,
    text,
)


def in_indices_and_ranges(x):
    n = len(x)
    counts, ends, reads = np.zeros(20), np.zeros(20), np.zeros(10)
    for i in range(-7, 5):
        counts[i // 2 + 4] += 1
        counts[i % 3 + 10] += 1
        for _ in range(i // 3 + 4):
            ends[0] += 1
    for i in range(n + n - 1):
        for _ in range((n + n - i) // 2):
            ends[i] += 1
    for i in range(n, -n, -2):
        ends[(i - 1) % 4 + 12] += i // -3
    for i in distspmd.map[0:10]:
        reads[i] = x[(9 - i) // 2] + x[(i - 9) // 4] + x[(i - 4) % 10]
    return counts, ends, reads


def test_programs_round_down() -> None:
    x = np.arange(10.0)
    program = distspmd.compile(
        distspmd.lower(numpy_program(in_indices_and_ranges, x)), MPI.COMM_SELF
    )
    for found, wanted in zip(program(x), in_indices_and_ranges(x), strict=True):
        np.testing.assert_array_equal(found, wanted)


def truncated(a: int, b: int) -> int:
    """As C++ divides."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.parametrize("bounds", [None, {"i": (None, None)}, {"i": (-9, 9)}])
@pytest.mark.parametrize("divisor", [1, 2, 3, -2, -3])
def test_texts_hold_for_quotients_that_round_towards_zero(bounds: Any, divisor: int) -> None:
    i = symbol("i")
    for dividend in (i, 5 - i, 6 - 2 * i, 3 * i - 1):
        with among(bounds):
            written = [text(of(dividend, divisor)) for of in (floor_divide, remainder)]
        names = {"int_floor": truncated, "Max": max, "Min": min}
        for value in range(-9, 10):
            number = int(sympy.sympify(dividend).subs(i, value))
            found = [eval(code, names | {"i": value}) for code in written]
            assert found == [number // divisor, number % divisor], (written, value)


def test_sizes_and_variables_that_are_not_negative_are_divided_as_they_are() -> None:
    n, i = symbol("N"), symbol("i")
    with among({"i": (0, n - 1)}):
        assert text(floor_divide(n, 2)) == "int_floor(N, 2)"
        assert text(floor_divide(i, 2)) == "int_floor(i, 2)"
        assert text(floor_divide(n - i, 2)) == "int_floor((N + (-1 * i)), 2)"
