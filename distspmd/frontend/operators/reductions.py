"""Reductions, and products of matrices."""

from __future__ import annotations

import math
from typing import Any

from torch import fx

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.operators.aten_registry import (
    INT64,
    OPERATORS,
    Operator,
    combine,
    number,
    operator,
    scale,
    shape_of,
    type_of,
)
from distspmd.frontend.tensor_ir import indices as v
from distspmd.frontend.tensor_ir.indices import Value
from distspmd.frontend.tensor_ir.kernels import Builder


def _reduction(operation: str) -> Operator:
    def build(
        builder: Builder,
        node: fx.Node,
        x: Value,
        dims: Any = None,
        keep: bool = False,
        **_: Any,
    ) -> Value:
        dtype = type_of(node)
        axes = [dims] if isinstance(dims, int) else list(dims or range(len(x.shape)))
        x = Value(x.dims, cast(x.expression, dtype), x.shape)
        if not any(x.shape[d] != 1 for d in axes):
            left = [
                d for d in range(len(x.shape)) if keep or d not in {a % len(x.shape) for a in axes}
            ]
            return Value(tuple(x.dims[d] for d in left), x.expression, shape_of(node))
        return builder.reduced(x, axes, operation, node, keep)

    return build


OPERATORS["sum"] = _reduction("sum")
OPERATORS["amax"] = _reduction("max")
OPERATORS["amin"] = _reduction("min")
OPERATORS["any"] = _reduction("max")
OPERATORS["all"] = _reduction("min")


def _extreme(operation: str) -> Operator:
    def build(
        builder: Builder, node: fx.Node, x: Value, dim: int | None = None, keep: bool = False
    ) -> Any:
        """The extremes along a dimension, and the first place of each; or the one of all."""
        if dim is None:
            return _reduction(operation)(builder, node, x)
        return [_kept(found, dim, keep) for found in _with_place(builder, node, x, dim, operation)]

    return build


def _place_of_extreme(operation: str) -> Operator:
    def build(
        builder: Builder, node: fx.Node, x: Value, dim: int | None = None, keep: bool = False
    ) -> Value:
        if dim is None:
            shape = shape_of(node)
            x = v.regroup(x, (math.prod(x.shape),))
            return v.regroup(_with_place(builder, node, x, 0, operation)[1], shape)
        return _kept(_with_place(builder, node, x, dim, operation)[1], dim, keep)

    return build


def _with_place(
    builder: Builder, node: fx.Node, x: Value, dim: int, operation: str
) -> tuple[Value, Value]:
    """The extremes along a dimension, which stays with one element, and the first place of each."""
    if not x.shape:
        return x, Value((), number(0, INT64), ())
    dim %= len(x.shape)
    x = builder.stored(x, node)
    extreme = x if x.shape[dim] == 1 else builder.reduced(x, [dim], operation, node, True)
    none = number(x.shape[dim], INT64)

    def build(element: Expression, best: Expression, place: Expression) -> Expression:
        test = apply("is_extreme", element, best)  # the first of those that are no number
        return apply("where", test, place, none)

    found = v.pointwise(build, [x, extreme, v.element_index(x, dim)], x.shape)
    if x.shape[dim] == 1:
        return extreme, found
    return extreme, builder.reduced(found, [dim], "min", node, True)


def _kept(x: Value, dim: int, keep: bool) -> Value:
    """Without a dimension of one element, unless it is kept."""
    if keep or not x.shape:
        return x
    left = [d for d in range(len(x.shape)) if d != dim % len(x.shape)]
    return Value(tuple(x.dims[d] for d in left), x.expression, tuple(x.shape[d] for d in left))


OPERATORS["max"], OPERATORS["argmax"] = _extreme("max"), _place_of_extreme("max")
OPERATORS["min"], OPERATORS["argmin"] = _extreme("min"), _place_of_extreme("min")


def contract(builder: Builder, node: fx.Node, a: Value, b: Value, batch: int) -> Value:
    """``a[.., m, k] @ b[.., k, n]``."""
    a, b = builder.stored(a, node).renamed(), builder.stored(b, node).renamed()
    by = v.align_groups(a.dims[-1], b.dims[-2])
    for d in range(batch):
        by |= v.align_groups(a.dims[d], b.dims[d])
    dtype = type_of(node)
    factors = a.expression, v.substitute_indices(b.expression, by)
    product = apply("multiply", *factors, dtype=dtype)
    dims = (*(a.dim(d) for d in range(batch + 1)), b.dim(len(b.dims) - 1), a.dim(len(a.dims) - 1))
    whole = Value(dims, product, (*a.shape[:-1], b.shape[-1], a.shape[-1]))
    return builder.reduced(whole, [-1], "sum", node)


@operator("mm")
def _mm(builder: Builder, node: fx.Node, a: Value, b: Value) -> Value:
    return contract(builder, node, a, b, 0)


@operator("bmm")
def _bmm(builder: Builder, node: fx.Node, a: Value, b: Value) -> Value:
    return contract(builder, node, a, b, 1)


@operator("addmm")
def _addmm(
    builder: Builder, node: fx.Node, c: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1
) -> Value:
    dtype = type_of(node)
    product = contract(builder, node, a, b, 0)
    terms = [product if alpha == 1 else scale(product, alpha, dtype)]
    terms.append(c if beta == 1 else scale(c, beta, dtype))
    return combine(builder, node, terms, lambda *e: apply("add", *e), dtype)
