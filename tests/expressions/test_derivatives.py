"""Derivatives, factors and substitutions of expressions, by their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from distspmd.expressions.derivatives import derivative
from distspmd.expressions.evaluation import evaluate
from distspmd.expressions.ir import Argument, Expression, apply, names, substitute
from distspmd.expressions.linear import linear_in
from distspmd.expressions.operations import OPERATIONS
from expressions.strategies import PLACE, REAL, arguments, drawn, real, smooth

X = Argument("x", REAL)


@given(smooth(), st.integers(0, 99))
def test_derivatives_are_slopes(expression: Expression, seed: int) -> None:
    slope = derivative(expression, "x")
    at, step = drawn(REAL, seed), 1e-6
    high, low = ({**at, "x": at["x"] + sign * step} for sign in (1, -1))
    ends = [evaluate(expression, point, PLACE) for point in (high, low)]
    middle = evaluate(expression, at, PLACE)
    if not np.all(np.isfinite(ends)):
        return
    bend = np.max(np.abs(ends[0] - 2 * middle + ends[1]))
    if bend > 1e-6 or np.max(np.abs(ends)) > 1e3:
        return  # a jump between, or too steep to tell
    wanted = (ends[0] - ends[1]) / (2 * step)
    found = 0.0 if slope is None else evaluate(slope, at, PLACE)
    scale = 1 + np.max(np.abs(wanted))
    assert np.max(np.abs(found - wanted)) < 1e-2 * scale + 1e3 * bend


@pytest.mark.parametrize("name", [n for n, k in OPERATIONS.items() if k.derivative])
def test_derivatives_of_functions_are_those_of_torch(name: str) -> None:
    points = {"x": np.array([0.25, 0.5, 0.75]), "y": np.array([0.5, 0.5, 0.125])}
    if name == "arccosh":
        points = {key: value + 1.5 for key, value in points.items()}
    function = TORCH.get(name) or getattr(torch, name)
    operands = [torch.tensor(points[a.name], requires_grad=True) for a in arguments(name, REAL)]
    function(*operands).sum().backward()
    for argument, operand in zip(arguments(name, REAL), operands, strict=True):
        slope = derivative(apply(name, *arguments(name, REAL)), argument.name)
        found = 0.0 if slope is None else evaluate(slope, points)
        np.testing.assert_allclose(found * np.ones(3), operand.grad, rtol=1e-12)


TORCH: dict[str, Any] = {
    "power": torch.pow,
    "at_least": torch.maximum,
    "at_most": torch.minimum,
}


@given(smooth(), st.integers(0, 99))
def test_factor_and_rest_give_the_value(expression: Expression, seed: int) -> None:
    found = linear_in(apply("add", apply("multiply", X, Argument("y", REAL)), expression), "x")
    if found is None:
        return
    factor, rest = found
    at = drawn(REAL, seed)
    total = at["x"] * (0.0 if factor is None else evaluate(factor, at, PLACE))
    total = total + (0.0 if rest is None else evaluate(rest, at, PLACE))
    assert "x" not in (names(factor) if factor else set()) | (names(rest) if rest else set())
    wanted = at["x"] * at["y"] + evaluate(expression, at, PLACE)
    assert total == pytest.approx(wanted, rel=1e-9, abs=1e-9, nan_ok=True)


@given(real(), real(), st.integers(0, 99))
def test_substitution_puts_values_in(outer: Expression, inner: Expression, seed: int) -> None:
    at = drawn(REAL, seed)
    put = evaluate(substitute(outer, {"x": inner}), at, PLACE)
    wanted = evaluate(outer, {**at, "x": evaluate(inner, at, PLACE)}, PLACE)
    assert np.array_equal(np.broadcast_to(put, 1), np.broadcast_to(wanted, 1), equal_nan=True)
