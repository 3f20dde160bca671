"""What mixtures of experts need: products of matrices by groups of rows, and histograms."""

from __future__ import annotations

from typing import Any

from torch import fx

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.operators.aten_registry import INT64, number, operator, type_of
from distspmd.frontend.operators.indexing import only
from distspmd.frontend.tensor_ir import indices as v
from distspmd.frontend.tensor_ir.indices import Index, Value, Variable, at
from distspmd.frontend.tensor_ir.kernels import Builder, refuse


@operator("_grouped_mm")
def _grouped_mm(
    builder: Builder,
    node: fx.Node,
    a: Value,
    b: Value,
    offsets: Value | None = None,
    bias: Value | None = None,
    *_: Any,
) -> Value:
    """Products of groups of rows, or of columns, with a matrix for each; the groups end at offsets.

    A sum over all groups, of which one is picked, so that groups may be split over ranks.
    """
    if offsets is None or bias is not None or len(a.shape) + len(b.shape) > 5:
        raise refuse(node, ["_grouped_mm of two matrices, or of one and several"])
    if len(b.shape) == 3:  # [m, k] @ [group, k, n]: groups of rows
        return _by_rows(builder, node, a, b, offsets)
    if len(a.shape) == 3:  # [group, m, k] @ [k, n]: groups of columns
        return _turned(_by_rows(builder, node, _turned(b), _turned(a), offsets))
    return _by_groups(builder, node, a, b, offsets)


@operator("transformers::grouped_mm_fallback")
def _of_transformers(
    builder: Builder, node: fx.Node, x: Value, weight: Value, offsets: Value
) -> Value:
    """What `transformers` calls where torch has no such product of a type."""
    return _by_rows(builder, node, x, weight, offsets)


@operator("transformers::grouped_mm_fallback_backward")
def _of_transformers_backward(
    builder: Builder, node: fx.Node, x: Value, weight: Value, offsets: Value, g: Value
) -> list[Value]:
    to_x = _by_rows(builder, node, g, _turned(weight), offsets)
    return [to_x, _by_groups(builder, node, _turned(x), g, offsets)]


def _turned(x: Value) -> Value:
    order = (*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2)
    return Value(tuple(x.dims[d] for d in order), x.expression, tuple(x.shape[d] for d in order))


def _by_rows(builder: Builder, node: fx.Node, a: Value, b: Value, offsets: Value) -> Value:
    """``[m, k] @ [group, k, n]``: a matrix for each group of rows."""
    a, b = builder.stored(a, node).renamed(), builder.stored(b, node).renamed()
    by = v.align_groups(a.dims[1], b.dims[1])
    group = b.dim(0)
    member = _members(builder, node, a, 0, offsets)
    factors = a.expression, v.substitute_indices(b.expression, by)
    product = apply("multiply", *factors, dtype=a.dtype)
    term = apply("pick", member, at(Index.of(group)), product, number(0, a.dtype))
    dims = (a.dim(0), b.dim(2), group, a.dim(1))
    whole = Value(dims, term, (a.shape[0], b.shape[2], b.shape[0], a.shape[1]))
    return builder.reduced(whole, [-2, -1], "sum", node, picked=only(group, member))


def _by_groups(builder: Builder, node: fx.Node, a: Value, b: Value, offsets: Value) -> Value:
    """``[m, k] @ [k, n]`` for each group of what is summed: ``[group, m, n]``."""
    a, b = builder.stored(a, node).renamed(), builder.stored(b, node).renamed()
    (group,) = v.new_variables([offsets.shape[0]])
    by = v.align_groups(a.dims[1], b.dims[0])
    member = _members(builder, node, a, 1, offsets)
    factors = a.expression, v.substitute_indices(b.expression, by)
    product = apply("multiply", *factors, dtype=a.dtype)
    term = apply("pick", member, at(Index.of(group)), product, number(0, a.dtype))
    dims = (group, a.dim(0), b.dim(1), a.dim(1))
    whole = Value(dims, term, (offsets.shape[0], a.shape[0], b.shape[1], a.shape[1]))
    return builder.reduced(whole, [-1], "sum", node, picked=only(group, member))


def _members(builder: Builder, node: fx.Node, x: Value, dim: int, offsets: Value) -> Expression:
    """The group of each index along a dimension: how many groups end at it or before."""
    offsets = builder.stored(offsets, node).renamed()
    place = v.element_index(x, dim).renamed()
    ended = cast(apply("less_equal", cast(offsets.expression, INT64), place.expression), INT64)
    whole = Value((place.dims[dim], offsets.dims[0]), ended, (x.shape[dim], offsets.shape[0]))
    found = builder.reduced(whole, [-1], "sum", node)
    by: dict[Variable, Index] = v.align_groups(x.dims[dim], found.dims[0])
    return v.substitute_indices(found.expression, by)


@operator("histc")
def _histc(
    builder: Builder, node: fx.Node, x: Value, bins: int = 100, low: Any = 0, high: Any = 0
) -> Value:
    if low == high:
        raise refuse(node, ["histc between given ends"])
    dtype = type_of(node)
    line = builder.joined(x, len(x.shape), node).renamed()
    element = cast(line.expression, dtype)
    width = apply("multiply", apply("subtract", element, number(low, dtype)), number(bins, dtype))
    place = cast(apply("floor", apply("divide", width, number(high - low, dtype))), INT64)
    place = apply("minimum", place, number(bins - 1, INT64))
    inside = apply(
        "logical_and",
        apply("greater_equal", element, number(low, dtype)),
        apply("less_equal", element, number(high, dtype)),
    )
    chosen = builder.stored(
        Value(line.dims, apply("where", inside, place, number(-1, INT64)), line.shape), node
    ).renamed()
    (row,) = v.new_variables([bins])
    one, nothing = number(1, dtype), number(0, dtype)
    term = apply("pick", chosen.expression, at(Index.of(row)), one, nothing)
    whole = Value((row, chosen.dim(0)), term, (bins, chosen.shape[0]))
    return builder.reduced(whole, [-1], "sum", node, picked=only(row, chosen.expression))
