"""Operators that choose elements by the values of tensors, or draw random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import fx

from distspmd.expressions.ir import Expression, apply
from distspmd.frontend.operators.aten_registry import (
    number,
    operator,
    type_of,
)
from distspmd.frontend.operators.views import strided_part
from distspmd.frontend.tensor_ir import indices as v
from distspmd.frontend.tensor_ir.indices import Index, Value, Variable, at
from distspmd.frontend.tensor_ir.kernels import Builder, is_plain


@operator("gather")
def _gather(builder: Builder, node: fx.Node, x: Value, dim: int, index: Value, **_: Any) -> Value:
    """The one element of ``x`` whose place is the index: a sum, so that ``x`` may be split."""
    dim %= len(x.shape)
    for d, length in enumerate(index.shape):
        if d != dim:
            x = strided_part(x, d, 0, length, grouped=False)
    if len(x.dim(dim)) != 1 or not all(map(is_plain, v.loads(x.expression))):
        x = builder.stored(x, node)  # else it is computed where it is picked
    x, index = x.renamed(), builder.stored(index, node).renamed()
    by: dict[Variable, Index] = {}
    for d in range(len(x.shape)):
        if d != dim and x.dims[d] and index.dims[d]:
            by |= v.align_groups(x.dims[d], index.dims[d])
    chosen = v.substitute_indices(index.expression, by)
    place = at(Index.of(x.dim(dim)))
    dtype = x.dtype
    picked = apply("pick", chosen, place, x.expression, number(0, dtype))
    out = [index.dim(d) if d == dim else x.dim(d) for d in range(len(x.shape))]
    whole = Value((*out, x.dim(dim)), picked, (*index.shape, x.shape[dim]))
    return builder.reduced(whole, [-1], "sum", node, picked=only(x.dim(dim), chosen))


def only(variables: Sequence[Variable], chosen: Expression) -> tuple[Variable, Expression] | None:
    """What is picked along a dimension, unless several variables make its index."""
    return (variables[0], chosen) if len(variables) == 1 else None


@operator("embedding")
def _embedding(builder: Builder, node: fx.Node, table: Value, index: Value, *_: Any) -> Value:
    """Rows of a table: a sum over all of them, of which one is picked, so that it may be split."""
    table, index = builder.stored(table, node).renamed(), builder.stored(index, node).renamed()
    rows = table.dim(0)
    there, nothing = table.expression, number(0, table.dtype)
    picked = apply("pick", index.expression, at(Index.of(rows)), there, nothing)
    dims = (*(index.dim(d) for d in range(len(index.dims))), table.dim(1), rows)
    whole = Value(dims, picked, (*index.shape, table.shape[1], table.shape[0]))
    alone = only(rows, index.expression)
    return builder.reduced(whole, [-1], "sum", node, picked=alone)


@operator("embedding_dense_backward")
def _embedding_backward(
    builder: Builder, node: fx.Node, gradient: Value, index: Value, rows: int, padding: int, *_: Any
) -> Value:
    gradient = builder.stored(gradient, node).renamed()
    index = builder.stored(index, node).renamed()
    by: dict[Variable, Index] = {}
    for d in range(len(index.shape)):
        if index.dims[d]:
            by |= v.align_groups(gradient.dims[d], index.dims[d])
    dtype = type_of(node)
    (row,) = v.new_variables([rows])
    chosen, there = v.substitute_indices(index.expression, by), gradient.expression
    nothing = number(0, dtype)
    if padding >= 0:
        counts = apply("not_equal", chosen, number(padding, chosen.dtype))
        there = apply("where", counts, there, nothing)
    picked = apply("pick", chosen, at(Index.of(row)), there, nothing)
    summed = [gradient.dim(d) for d in range(len(index.shape))]
    dims = (row, gradient.dim(len(gradient.dims) - 1), *summed)
    whole = Value(dims, picked, (rows, gradient.shape[-1], *index.shape))
    alone = only(row, chosen)
    return builder.reduced(whole, list(range(2, len(dims))), "sum", node, picked=alone)
