"""The text form of expressions, and that they are equal if they are written alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distspmd.expressions.cpp import CppPrinter
from distspmd.expressions.ir import (
    Argument,
    Call,
    Constant,
    Expression,
    IndexValue,
    Load,
    apply,
    cast,
    count_additions,
)
from distspmd.expressions.text import (
    assignments_text,
    parse_assignments,
    parse_expression,
    print_expression,
)
from expressions.strategies import REAL, WHOLE, real, whole

X, N = Argument("x", REAL), Argument("n", WHOLE)


@given(st.one_of(real(), whole()))
def test_texts_parse_to_what_they_were_printed_from(expression: Expression) -> None:
    assert parse_expression(print_expression(expression)) == expression
    pair = (("_out0", expression), ("_out1", apply("negative", expression)))
    assert parse_assignments(assignments_text(pair)) == pair


@pytest.mark.parametrize(
    "expression",
    [
        Constant(float("inf"), np.dtype(np.float32)),
        Constant(-0.0, REAL),
        Constant(-(2**63), WHOLE),
        Constant(True, np.dtype(bool)),
        Constant(1 - 2j, np.dtype(np.complex128)),
        Load("a", ("2*i + j", "-1"), REAL),
        Load("a", (), REAL),
        IndexValue((("i", -1),), 4),
        Argument("math.pi", REAL),
        Call("f", (X, N), REAL),
        Call("f", (), REAL),
        cast(X, np.dtype(np.float16)),
        apply("divide", N, N, dtype=WHOLE),
    ],
    ids=str,
)
def test_each_kind_of_node_has_a_text(expression: Expression) -> None:
    assert parse_expression(print_expression(expression)) == expression


def test_parts_that_are_used_twice_are_written_once() -> None:
    expression: Expression = X
    for _ in range(60):
        expression = apply("multiply", expression, expression)
    assert len(print_expression(expression)) < 3000
    assert parse_expression(print_expression(expression)) == expression
    assert count_additions(expression) == 2**60 - 1
    assert len(CppPrinter().text(expression)) < 10


def test_not_a_number_equals_itself_as_an_expression() -> None:
    assert Constant(float("nan"), REAL) == parse_expression("float('nan')@float64")
    assert Constant(0, REAL) != Constant(0.0, REAL)


@pytest.mark.parametrize(
    "wrong", ["", "x", "x + y", "x@wood", "exp(x@float64, x@float64)", "foo(x@float64)", "a = x@"]
)
def test_other_texts_are_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        parse_expression(wrong)


@pytest.mark.parametrize(
    ("name", "count", "message"), [("wood", 1, "is in no table"), ("exp", 2, "takes 1")]
)
def test_operations_have_rows_and_arities(name: str, count: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        apply(name, *[X] * count)
