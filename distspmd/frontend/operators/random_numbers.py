"""Random numbers: drawn from a counter, the same for each place at any number of ranks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import fx

from distspmd.expressions.ir import FLOAT64, Expression, apply, cast
from distspmd.frontend.operators.aten_registry import (
    INT64,
    Operator,
    number,
    operator,
    shape_of,
    type_of,
)
from distspmd.frontend.tensor_ir import indices as v
from distspmd.frontend.tensor_ir.indices import Index, Value, at, element
from distspmd.frontend.tensor_ir.kernels import Builder


def _drawn(
    builder: Builder, node: fx.Node, make: Callable[..., Expression], draws: int = 1
) -> Value:
    """What is made of one or more numbers in [0, 1) for each element of a node's value."""
    shape, dtype = shape_of(node), type_of(node)
    dims = v.new_variables(shape)
    index = Index.of([u for dim in dims for u in dim])
    if builder.seed is None:
        builder.argument("seed", (1,), INT64)
        builder.seed = builder.arrays["seed"]
    numbers = []
    for _ in range(draws):
        builder.draws += 1
        draw = number(builder.draws, INT64)
        numbers.append(apply("uniform", element(builder.seed, ()), draw, at(index)))
    return Value(dims, cast(make(*numbers), dtype), shape)


@operator("bernoulli")
def _bernoulli(builder: Builder, node: fx.Node, x: Value, p: float = 0.5, **_: Any) -> Value:
    return _drawn(builder, node, lambda u: apply("less", u, number(p, FLOAT64)))


def _uniform(low: float, high: float) -> Callable[[Expression], Expression]:
    def make(u: Expression) -> Expression:
        return u * number(high - low, FLOAT64) + number(low, FLOAT64)

    return make


def _normal(mean: float, deviation: float) -> Callable[[Expression, Expression], Expression]:
    """A distance from the mean, and an angle."""

    def make(u: Expression, angle: Expression) -> Expression:
        logarithm = apply("log", number(1, FLOAT64) - u)
        distance = apply("sqrt", logarithm * number(-2, FLOAT64))
        turned = apply("cos", angle * number(2 * math.pi, FLOAT64))
        return distance * turned * number(deviation, FLOAT64) + number(mean, FLOAT64)

    return make


@operator("rand", "rand_like")
def _rand(builder: Builder, node: fx.Node, *_: Any, **__: Any) -> Value:
    return _drawn(builder, node, lambda u: u)


@operator("randn", "randn_like")
def _randn(builder: Builder, node: fx.Node, *_: Any, **__: Any) -> Value:
    return _drawn(builder, node, _normal(0.0, 1.0), 2)


@operator("uniform")
def _uniform_like(
    builder: Builder, node: fx.Node, x: Value, low: float = 0.0, high: float = 1.0, **_: Any
) -> Value:
    return _drawn(builder, node, _uniform(low, high))


@operator("normal_functional")
def _normal_like(
    builder: Builder, node: fx.Node, x: Value, mean: float = 0.0, std: float = 1.0, **_: Any
) -> Value:
    return _drawn(builder, node, _normal(mean, std), 2)


def _whole_numbers(skipped: int) -> Operator:
    def build(builder: Builder, node: fx.Node, *args: Any, **_: Any) -> Value:
        ends = [a for a in args[skipped:] if isinstance(a, int)]
        low, high = (0, ends[0]) if len(ends) == 1 else ends[:2]

        def make(u: Expression) -> Expression:
            places = apply("floor", u * number(high - low, FLOAT64))
            return places + number(low, FLOAT64)

        return _drawn(builder, node, make)

    return build


operator("randint")(_whole_numbers(0))
operator("randint_like")(_whole_numbers(1))
