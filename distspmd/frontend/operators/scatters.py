"""Indices that are tensors: elements at them, and sums and replacements there.

An element at an index is a sum of which one term is picked, and what is written at indices is a sum
over all that could be, so that both sides may be split over ranks, and nothing is written twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import fx

from distspmd.expressions.ir import Expression, IndexValue, apply, cast
from distspmd.frontend.operators.aten_registry import (
    INT64,
    OPERATORS,
    combine,
    fitting,
    number,
    operator,
    shape_of,
    type_of,
)
from distspmd.frontend.operators.indexing import only
from distspmd.frontend.operators.views import strided_part
from distspmd.frontend.tensor_ir import indices as v
from distspmd.frontend.tensor_ir.indices import Index, Value, Variable, at
from distspmd.frontend.tensor_ir.kernels import Builder, refuse

NOWHERE = int(np.iinfo(np.int64).min)
"""Less than the number of any element: the maximum of nothing."""


# -- elements at indices --------------------------------------------------------------------------


@operator("index", "_unsafe_index")
def _index(
    builder: Builder, node: fx.Node, x: Value, indices: Sequence[Value | None], **_: Any
) -> Value:
    """``x[i, :, j]``: the dimensions of all indices together, if they stand beside each other."""
    places = _places(node, x, indices)
    own = [index for index in indices if index is not None]
    shape = _broadcast(own)
    views = [_as_view(index, x.shape[d]) for index, d in zip(own, places, strict=True)]
    if all(view is not None for view in views):
        return _read_at_views(x, places, views, own, shape)  # type: ignore[arg-type]
    chosen = _chosen(builder, node, x, places, own, shape)
    rows = _rows_first(builder, node, x, places)
    rest = len(rows.shape) - 1
    row = rows.dim(0)
    picked = apply(
        "pick", chosen.expression, at(Index.of(row)), rows.expression, number(0, rows.dtype)
    )
    before = places[0] if _adjacent(places) else 0
    others = [rows.dim(1 + d) for d in range(rest)]
    mine = [chosen.dim(d) for d in range(len(shape))]
    dims = [*others[:before], *mine, *others[before:], row]
    lengths = [*rows.shape[1 : 1 + before], *shape, *rows.shape[1 + before :], rows.shape[0]]
    whole = Value(tuple(dims), picked, tuple(lengths))
    found = builder.reduced(whole, [-1], "sum", node, picked=only(row, chosen.expression))
    return Value(found.dims, cast(found.expression, x.dtype), found.shape)


@operator("index_select")
def _index_select(builder: Builder, node: fx.Node, x: Value, dim: int, index: Value) -> Value:
    if not x.shape:
        return x
    indices = [*(None for _ in range(dim % len(x.shape))), index]
    found: Value = _index(builder, node, x, indices)
    return builder.viewed(found, shape_of(node), node)


def _places(node: fx.Node, x: Value, indices: Sequence[Value | None]) -> list[int]:
    """The dimensions that are indexed."""
    masks = (np.dtype(bool), np.dtype(np.uint8))
    if any(index is not None and index.dtype in masks for index in indices):
        raise refuse(node, ["indices that are numbers; of masks torch.where"])
    return [d for d, index in enumerate(indices) if index is not None]


def _adjacent(places: Sequence[int]) -> bool:
    return places[-1] - places[0] == len(places) - 1


def _broadcast(values: Sequence[Value]) -> tuple[int, ...]:
    return tuple(int(n) for n in np.broadcast_shapes(*(value.shape for value in values)))


def _as_view(index: Value, length: int) -> Index | None:
    """An index that counts along dimensions: as such, if it stays inside."""
    found = index.expression
    if not isinstance(found, IndexValue):
        return None
    plain = Index(found.terms, found.constant).substitute({})
    least = plain.constant + sum(f * (u.length - 1) for u, f in plain.terms if f < 0)
    most = plain.constant + sum(f * (u.length - 1) for u, f in plain.terms if f > 0)
    if least < 0 and most < 0 and least >= -length:
        return Index(plain.terms, plain.constant + length)
    return plain if least >= 0 and most < length else None


def _read_at_views(
    x: Value,
    places: Sequence[int],
    views: Sequence[Index],
    own: Sequence[Value],
    shape: tuple[int, ...],
) -> Value:
    """Elements at indices that count: only indices change."""
    dims: list[tuple[Variable, ...]] = list(v.new_variables(shape))
    by: dict[Variable, Index] = {}
    for d, view, index in zip(places, views, own, strict=True):
        renamed: dict[Variable, Index] = {}
        for k in range(1, len(index.shape) + 1):
            if index.shape[-k] != 1:
                renamed |= v.align_groups(dims[-k], index.dims[-k])
        moved = view.substitute(renamed)
        leaves = x.dim(d)
        if len(leaves) == 1:
            leaves[0].extent.find().solid = True
            by[leaves[0]] = moved
        elif leaves:
            raise v.Crossing("a dimension that is viewed in groups is indexed.")
    rest = [x.dim(d) for d in range(len(x.shape)) if d not in places]
    before = places[0] if _adjacent(places) else 0
    every = (*rest[:before], *dims, *rest[before:])
    lengths = [n for d, n in enumerate(x.shape) if d not in places]
    return Value(
        every,
        v.substitute_indices(x.expression, by),
        (*lengths[:before], *shape, *lengths[before:]),
    ).renamed()


def _chosen(
    builder: Builder,
    node: fx.Node,
    x: Value,
    places: Sequence[int],
    own: Sequence[Value],
    shape: Sequence[int],
) -> Value:
    """The number of the row that each index chooses, stored; negative ones count from the end."""

    def build(*indices: Expression) -> Expression:
        total: Expression = number(0, INT64)
        for n, (index, d) in enumerate(zip(indices, places, strict=True)):
            one = cast(index, INT64)
            extent = number(x.shape[d], INT64)
            negative = apply("less", one, number(0, INT64))
            one = apply("where", negative, apply("add", one, extent), one)
            total = one if n == 0 else apply("add", apply("multiply", total, extent), one)
        return total

    return builder.stored(v.pointwise(build, own, shape), node).renamed()


def _rows_first(builder: Builder, node: fx.Node, x: Value, places: Sequence[int]) -> Value:
    """``[rows, *rest]``: the dimensions that are indexed as one, whose elements are stored."""
    order = [*places, *(d for d in range(len(x.shape)) if d not in places)]
    moved = Value(tuple(x.dims[d] for d in order), x.expression, tuple(x.shape[d] for d in order))
    rows = math.prod(moved.shape[: len(places)])
    if len(places) > 1 or len(moved.dim(0)) > 1:  # a single variable is picked without a loop
        moved = builder.joined(moved, len(places), node)
    elif x.dtype.kind != "b":
        moved = builder.stored(moved, node)
    if moved.dtype.kind == "b":  # sums are of numbers
        number_of = Value(moved.dims, cast(moved.expression, INT64), moved.shape)
        moved = builder.stored(number_of, node)
    assert moved.shape[0] == rows
    return moved.renamed()


# -- sums and replacements at indices -------------------------------------------------------------


@operator("index_put", "_unsafe_index_put")
def _index_put(
    builder: Builder,
    node: fx.Node,
    x: Value,
    indices: Sequence[Value | None],
    values: Value,
    accumulate: bool = False,
    *_: Any,
) -> Value:
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype.kind == "b":
        return _masked_put(builder, node, x, indices[0], values, accumulate)
    places = _places(node, x, indices)
    own = [index for index in indices if index is not None]
    shape = _broadcast(own)
    chosen = _flat(builder, node, _chosen(builder, node, x, places, own, shape))
    rest = [d for d in range(len(x.shape)) if d not in places]
    before = places[0] if _adjacent(places) else 0
    lengths = [x.shape[d] for d in rest]
    whole = (*lengths[:before], *shape, *lengths[before:])
    given = OPERATORS["_broadcast"](builder, node, values, whole)
    mine = range(before, before + len(shape))
    order = [*mine, *(d for d in range(len(whole)) if d not in mine)]
    given = Value(
        tuple(given.dims[d] for d in order), given.expression, tuple(whole[d] for d in order)
    )
    given = builder.joined(given, len(shape), node) if len(shape) != 1 else given
    count = math.prod(x.shape[d] for d in places)
    sums = _written(builder, node, chosen, given, count, accumulate)
    back = [
        builder.viewed(part, (*(x.shape[d] for d in places), *part.shape[1:]), node)
        for part in sums
    ]
    order = [*places, *rest]
    back = [
        Value(
            tuple(part.dims[order.index(d)] for d in range(len(order)))[: len(x.shape)],
            part.expression,
            tuple(part.shape[order.index(d)] for d in range(len(order))),
        )
        for part in back
    ]
    return _combined(builder, node, x, back, accumulate)


def _masked_put(
    builder: Builder, node: fx.Node, x: Value, mask: Value, values: Value, accumulate: bool
) -> Value:
    """One value where a mask holds."""
    if math.prod(values.shape) != 1:
        raise refuse(node, ["one value at a mask; of several torch.where"])
    rank = len(x.shape)
    missing = rank - len(mask.shape)
    over = Value(
        (*mask.dims, *(() for _ in range(missing))),
        mask.expression,
        (*mask.shape, *(1 for _ in range(missing))),
    )
    one = Value(((),) * rank, values.expression, (1,) * rank)

    def build(old: Expression, test: Expression, new: Expression) -> Expression:
        new = cast(new, x.dtype)
        return apply("where", test, apply("add", old, new) if accumulate else new, old)

    return v.pointwise(build, [x, over, one], x.shape)


@operator("_broadcast")
def _broadcast_to(builder: Builder, node: fx.Node, x: Value, shape: Sequence[int]) -> Value:
    """A value in the shape to which it is broadcast."""
    x = builder.spread(x, shape, node)
    while len(x.shape) > len(shape):
        x = Value(x.dims[1:], x.expression, x.shape[1:])
    return v.pointwise(lambda e: e, [x], shape)


def _flat(builder: Builder, node: fx.Node, x: Value) -> Value:
    """All elements in one dimension."""
    if len(x.shape) == 1:
        return x
    return builder.joined(x, len(x.shape), node)


def _written(
    builder: Builder, node: fx.Node, chosen: Value, given: Value, count: int, accumulate: bool
) -> list[Value]:
    """``[rows, *rest]``: sums of what is given at each row; or the last, and its number."""
    given = builder.stored(given, node).renamed()
    chosen = chosen.renamed()
    by = v.align_groups(given.dims[0], chosen.dims[0]) if chosen.shape[0] != 1 else {}
    where = v.substitute_indices(chosen.expression, by)
    (row,) = v.new_variables([count])
    place = at(Index.of(row))
    if accumulate:
        term = apply("pick", where, place, given.expression, number(0, given.dtype))
        others = [given.dim(d) for d in range(1, len(given.shape))]
        whole = Value((row, *others, given.dim(0)), term, (count, *given.shape[1:], given.shape[0]))
        return [builder.reduced(whole, [-1], "sum", node, picked=only(row, where))]
    mine = v.element_index(given, 0)
    by = v.align_groups(given.dims[0], mine.dims[0]) if given.shape[0] != 1 else {}
    number_of = v.substitute_indices(mine.expression, by)
    term = apply("pick", where, place, number_of, number(NOWHERE, INT64))
    line = Value((row, given.dim(0)), term, (count, given.shape[0]))
    last = builder.reduced(line, [-1], "max", node, picked=only(row, where))
    rows = _index_rows(builder, node, given, last)
    return [
        rows,
        Value(
            (*last.dims, *(() for _ in given.shape[1:])),
            last.expression,
            (count, *(1 for _ in given.shape[1:])),
        ),
    ]


def _index_rows(builder: Builder, node: fx.Node, x: Value, chosen: Value) -> Value:
    """Rows of a stored value by their number; zeros where there is none."""
    x = _numbers(builder, node, x).renamed()
    chosen = builder.stored(chosen, node).renamed()
    row = x.dim(0)
    term = apply("pick", chosen.expression, at(Index.of(row)), x.expression, number(0, x.dtype))
    others = [x.dim(d) for d in range(1, len(x.shape))]
    dims = (*chosen.dims, *others, row)
    whole = Value(dims, term, (*chosen.shape, *x.shape[1:], x.shape[0]))
    return builder.reduced(whole, [-1], "sum", node, picked=only(row, chosen.expression))


def _numbers(builder: Builder, node: fx.Node, x: Value) -> Value:
    """Truth values as numbers, which have sums."""
    if x.dtype.kind != "b":
        return builder.stored(x, node)
    return builder.stored(Value(x.dims, cast(x.expression, INT64), x.shape), node)


def _combined(
    builder: Builder, node: fx.Node, x: Value, made: Sequence[Value], accumulate: bool
) -> Value:
    """A value with what :func:`_written` made for it."""
    dtype = type_of(node)
    if accumulate:
        return combine(builder, node, [x, made[0]], lambda a, b: apply("add", a, b), dtype)

    def build(old: Expression, new: Expression, last: Expression) -> Expression:
        there = apply("greater_equal", last, number(0, INT64))
        return apply("where", there, cast(new, dtype), cast(old, dtype))

    return v.pointwise(build, [x, *made], shape_of(node))


@operator("scatter")
def _scatter(
    builder: Builder, node: fx.Node, x: Value, dim: int, index: Value, value: Any, **more: Any
) -> Value:
    """``x`` with elements along a dimension replaced, by a number or by those of a tensor."""
    if more.get("reduce") is not None:
        raise refuse(node, ["scatter_add, scatter_reduce"])
    dim %= max(1, len(x.shape))
    expected = tuple(1 if d == dim else n for d, n in enumerate(x.shape))
    if not isinstance(value, Value):
        value = Value(v.new_variables(index.shape), fitting(node, value, x.dtype), index.shape)
    if index.shape == expected and value.shape == expected:
        return _one_in_each_row(builder, node, x, dim, index, value)
    where, row, source = _along(builder, node, x, dim, index, value)
    mine = v.element_index(source, dim)
    by = v.align_groups(source.dims[dim], mine.dims[dim]) if source.shape[dim] != 1 else {}
    number_of = v.substitute_indices(mine.expression, by)
    term = apply("pick", where, at(Index.of(row)), number_of, number(NOWHERE, INT64))
    last = _over_rows(builder, node, x, dim, row, source, term, where, "max")
    rows = OPERATORS["gather"](builder, node, _numbers(builder, node, source), dim, last)
    made = [_padded(builder, node, rows, x, 0), _padded(builder, node, last, x, NOWHERE)]
    return _combined(builder, node, x, made, False)


def _one_in_each_row(
    builder: Builder, node: fx.Node, x: Value, dim: int, index: Value, value: Value
) -> Value:
    shape, dtype = shape_of(node), type_of(node)
    operands = [x, builder.spread(index, shape, node), v.element_index(x, dim)]
    operands.append(builder.spread(value, shape, node))

    def build(
        old: Expression, chosen: Expression, place: Expression, new: Expression
    ) -> Expression:
        return apply("pick", chosen, place, cast(new, dtype), old)

    return v.pointwise(build, operands, shape)


def _along(
    builder: Builder, node: fx.Node, x: Value, dim: int, index: Value, source: Value
) -> tuple[Expression, tuple[Variable, ...], Value]:
    """The index of each element of a source, the variables of its target, and the source."""
    for d, length in enumerate(index.shape):
        source = strided_part(source, d, 0, length, grouped=False)
    source, index = builder.stored(source, node).renamed(), builder.stored(index, node).renamed()
    by: dict[Variable, Index] = {}
    for d in range(len(x.shape)):
        if index.dims[d]:
            by |= v.align_groups(source.dims[d], index.dims[d])
    (row,) = v.new_variables([x.shape[dim]]) if x.shape else ((),)
    return v.substitute_indices(index.expression, by), row, source


def _over_rows(
    builder: Builder,
    node: fx.Node,
    x: Value,
    dim: int,
    row: tuple[Variable, ...],
    source: Value,
    term: Expression,
    where: Expression,
    operation: str,
) -> Value:
    """What elements of a source are together at each place of their target."""
    shape = [x.shape[d] if d == dim else n for d, n in enumerate(source.shape)]
    kept = [row if d == dim else source.dim(d) for d in range(len(shape))]
    whole = Value((*kept, source.dim(dim)), term, (*shape, source.shape[dim]))
    return builder.reduced(whole, [-1], operation, node, picked=only(row, where))


def _padded(builder: Builder, node: fx.Node, part: Value, x: Value, fill: int) -> Value:
    """A part of a value's shape as all of it."""
    pads = [n for d in reversed(range(len(x.shape))) for n in (0, x.shape[d] - part.shape[d])]
    padded: Value = OPERATORS["constant_pad_nd"](builder, node, part, pads, fill)
    return padded


@operator("scatter_add")
def _scatter_add(
    builder: Builder, node: fx.Node, x: Value, dim: int, index: Value, source: Value
) -> Value:
    """``x``, and at each place the sum of the elements whose index it is."""
    if not x.shape:
        return combine(builder, node, [x, source], lambda a, b: apply("add", a, b), x.dtype)
    dim %= len(x.shape)
    where, row, source = _along(builder, node, x, dim, index, source)
    term = apply("pick", where, at(Index.of(row)), source.expression, number(0, x.dtype))
    sums = _over_rows(builder, node, x, dim, row, source, term, where, "sum")
    sums = _padded(builder, node, sums, x, 0)
    return combine(builder, node, [x, sums], lambda a, b: apply("add", a, b), x.dtype)


@operator("scatter_reduce")
def _scatter_extreme(
    builder: Builder,
    node: fx.Node,
    x: Value,
    dim: int,
    index: Value,
    source: Value,
    reduce: str,
    include_self: bool = True,
) -> Value:
    """``x``, and at each place the extreme of the elements whose index it is."""
    if reduce not in ("amax", "amin") or not x.shape or x.dtype.kind not in "fiu":
        raise refuse(node, ["scatter_reduce: sum, mean, amax, amin"])
    dim %= len(x.shape)
    operation = reduce[1:]
    if x.dtype.kind == "f":
        ends = -np.inf, np.inf
    else:
        ends = np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
    worst = ends[0] if operation == "max" else ends[1]
    where, row, source = _along(builder, node, x, dim, index, source)
    place = at(Index.of(row))
    term = apply("pick", where, place, source.expression, number(worst, x.dtype))
    extreme = _over_rows(builder, node, x, dim, row, source, term, where, operation)
    term = apply("pick", where, place, number(1, INT64), number(0, INT64))
    count = _over_rows(builder, node, x, dim, row, source, term, where, "sum")
    parts = [_padded(builder, node, part, x, 0) for part in (extreme, count)]

    def build(old: Expression, new: Expression, many: Expression) -> Expression:
        if include_self:
            new = apply(f"{operation}imum", old, cast(new, x.dtype))
        return apply("where", apply("greater", many, number(0, INT64)), new, old, dtype=x.dtype)

    return v.pointwise(build, [x, *parts], x.shape)
