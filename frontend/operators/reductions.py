"""Reductions, and products of matrices."""

from __future__ import annotations

from typing import Any

from torch import fx

from distspmd.frontend import values as v
from distspmd.frontend.builder import Builder
from distspmd.frontend.operators.registry import (
    OPERATORS,
    Operator,
    cast,
    combine,
    operator,
    scaled,
    shape_of,
)
from distspmd.frontend.values import Call, Value


def _reduction(operation: str) -> Operator:
    def build(
        builder: Builder,
        node: fx.Node,
        x: Value,
        dims: Any = None,
        keep: bool = False,
        **_: Any,
    ) -> Value:
        dtype = node.meta["val"].dtype
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


def contract(builder: Builder, node: fx.Node, a: Value, b: Value, batch: int) -> Value:
    """``a[.., m, k] @ b[.., k, n]``."""
    a, b = builder.stored(a, node).renamed(), builder.stored(b, node).renamed()
    by = v.align(a.dims[-1], b.dims[-2])
    for d in range(batch):
        by |= v.align(a.dims[d], b.dims[d])
    dtype = node.meta["val"].dtype
    product = Call("({0} * {1})", (a.expression, v.substitute(b.expression, by)), dtype, 1)
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
    dtype = node.meta["val"].dtype
    product = contract(builder, node, a, b, 0)
    terms = [product if alpha == 1 else scaled(product, alpha, dtype)]
    terms.append(c if beta == 1 else scaled(c, beta, dtype))
    return combine(builder, node, terms, lambda *e: Call("({0} + {1})", e, dtype, 1), dtype)
