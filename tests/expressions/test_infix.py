"""Expressions as people write them: the same value in Python, and no type in sight."""

from __future__ import annotations

import numpy as np

from distspmd.expressions.infix import infix
from distspmd.expressions.ir import Argument, Constant, IndexValue, Load, apply, cast

REAL = np.dtype(np.float64)
A, B, C = (Argument(name, REAL) for name in "abc")


def test_parentheses_stand_where_the_meaning_needs_them() -> None:
    texts = {
        infix(apply("multiply", A + B, C)): "(a + b) * c",
        infix(A + apply("multiply", B, C)): "a + b * c",
        infix(A - (B - C)): "a - (b - c)",
        infix((A - B) - C): "a - b - c",
        infix(A / (B * C)): "a / (b * c)",
        infix((-A) ** B): "(-a) ** b",
        infix(apply("power", A**B, C)): "(a ** b) ** c",
        infix(apply("power", A, B**C)): "a ** b ** c",
        infix(apply("less", apply("less", A, B), C)): "(a < b) < c",
        infix(apply("where", apply("less", A, B), A, B)): "where(a < b, a, b)",
        infix(A - Constant(-2.0, REAL)): "a - (-2)",
    }
    for found, wanted in texts.items():
        assert found == wanted
        values = {"a": 3.0, "b": 5.0, "c": 2.0, "where": lambda c, x, y: x if c else y}
        assert eval(found, values) == eval(wanted, values)


def test_types_and_conversions_are_left_out() -> None:
    single = np.dtype(np.float32)
    assert infix(cast(apply("maximum", A, Constant(0.0, REAL)), single)) == "maximum(a, 0)"
    assert infix(IndexValue((("i", 2),), -1)) == "2*i - 1"
    assert infix(Load("x", ("i", 0), REAL)) == "x[i, 0]"


def test_arguments_have_the_names_that_they_are_given() -> None:
    assert infix(A + B, {"a": "hidden[i]", "b": "bias"}.__getitem__) == "hidden[i] + bias"
