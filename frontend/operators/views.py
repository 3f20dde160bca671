"""Views: only indices change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import fx

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import values as v
from distspmd.frontend.builder import Builder, operator_of
from distspmd.frontend.operators.registry import (
    cast,
    number,
    operator,
    shape_of,
    within,
)
from distspmd.frontend.values import At, Call, Expression, Extent, Index, Value, Variable


@operator("view", "_unsafe_view", "reshape")
def _view(builder: Builder, node: fx.Node, x: Value, shape: Sequence[int]) -> Value:
    return v.regroup(x, shape_of(node))


@operator("permute", "t", "transpose")
def _permute(builder: Builder, node: fx.Node, x: Value, *dims: Any) -> Value:
    rank = len(x.shape)
    order = list(range(rank))
    if operator_of(node) == "permute":
        order = [d % rank for d in dims[0]]
    elif operator_of(node) == "transpose":
        a, b = (d % rank for d in dims)
        order[a], order[b] = order[b], order[a]
    else:
        order.reverse()
    return Value(tuple(x.dims[d] for d in order), x.expression, tuple(x.shape[d] for d in order))


@operator("unsqueeze", "squeeze", "expand")
def _reshaped(builder: Builder, node: fx.Node, x: Value, *args: Any, **_: Any) -> Value:
    shape = shape_of(node)
    if operator_of(node) != "expand":  # dimensions of one element have no variables
        waiting = [dim for dim, n in zip(x.dims, x.shape, strict=True) if n != 1]
        dims = tuple(() if n == 1 else waiting.pop(0) for n in shape)
        return Value(dims, x.expression, shape)
    x = builder.spread(x, shape, node)
    own = ((),) * (len(shape) - len(x.shape)) + x.dims
    new = v.fresh(shape)
    dims = tuple(o or n for o, n in zip(own, new, strict=True))
    return Value(dims, x.expression, shape)


@operator("select")
def _select(builder: Builder, node: fx.Node, x: Value, dim: int, index: int) -> Value:
    dim %= len(x.shape)
    index %= x.shape[dim]
    by: dict[Variable, Index] = {}
    for variable in reversed(x.dim(dim)):
        index, digit = divmod(index, variable.length)
        by[variable] = Index((), digit)
    rest = tuple(x.dims[:dim] + x.dims[dim + 1 :])
    return Value(rest, v.substitute(x.expression, by), shape_of(node))


@operator("slice")
def _slice(
    builder: Builder,
    node: fx.Node,
    x: Value,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Value:
    return _part(x, dim % len(x.shape), start or 0, shape_of(node)[dim], step)


def _part(x: Value, dim: int, start: int, length: int, step: int = 1) -> Value:
    """``x[start : start + length * step : step]`` in one dimension."""
    whole = x.shape[dim]
    if length == whole:
        return x
    start = max(0, start + whole if start < 0 else start)
    shape = (*x.shape[:dim], length, *x.shape[dim + 1 :])
    if step == 1 and whole % length == 0 and start % length == 0 and len(x.dims[dim]) == 1:
        grouped = v.regroup(x, (*x.shape[:dim], whole // length, length, *x.shape[dim + 1 :]))
        by: dict[Variable, Index] = {}
        index = start // length
        for variable in reversed(grouped.dim(dim)):
            index, digit = divmod(index, variable.length)
            by[variable] = Index((), digit)
        dims = grouped.dims[:dim] + grouped.dims[dim + 1 :]
        return Value(dims, v.substitute(grouped.expression, by), shape)
    (new,) = v.fresh([length])
    moved = Index.of(new)
    moved = Index(tuple((u, f * step) for u, f in moved.terms), start)
    old = x.dim(dim)
    if len(old) != 1:
        raise _crossing(x)
    old[0].extent.find().solid = True
    dims = (*x.dims[:dim], new, *x.dims[dim + 1 :])
    return Value(dims, v.substitute(x.expression, {old[0]: moved}), shape)


def _crossing(x: Value) -> Exception:
    return UnsupportedProgram(
        f"a slice of a dimension of {list(x.shape)} that is viewed in groups elsewhere does not "
        "end where a group ends. Copy it for one of them: x + 0."
    )


@operator("split", "split_with_sizes")
def _split(builder: Builder, node: fx.Node, x: Value, sizes: Any, dim: int = 0) -> list[Value]:
    dim %= len(x.shape)
    parts, start = [], 0
    for part in node.meta["val"]:
        length = int(part.shape[dim])
        parts.append(_part(x, dim, start, length))
        start += length
    return parts


@operator("getitem")
def _getitem(builder: Builder, node: fx.Node, values: Sequence[Any], index: int) -> Any:
    return values[index]


@operator("cat")
def _cat(builder: Builder, node: fx.Node, parts: Sequence[Value], dim: int = 0) -> Value:
    shape, dtype = shape_of(node), node.meta["val"].dtype
    dim %= len(shape)
    lengths = {part.shape[dim] for part in parts}
    if len(lengths) > 1 or len(parts) == 1:
        return _uneven_cat(builder, node, parts, dim)
    (length,) = lengths
    outer = Variable(Extent(len(parts)))
    dims = [*v.fresh([*shape[:dim], length, *shape[dim + 1 :]])]
    chosen: Expression = number(0, dtype)
    for place, part in enumerate(parts):
        by: dict[Variable, Index] = {}
        stored = builder.stored(part, node).renamed()
        for own, theirs in zip(dims, stored.dims, strict=True):
            if own:
                by |= v.align(own, theirs)
        piece = cast(v.substitute(stored.expression, by), dtype)
        test = f"({{0}} == {place} ? {{1}} : {{2}})"
        chosen = Call(test, (At(Index(((outer, 1),))), piece, chosen), dtype, 1)
    dims[dim] = (outer, *dims[dim])
    return Value(tuple(dims), chosen, shape)


def _uneven_cat(builder: Builder, node: fx.Node, parts: Sequence[Value], dim: int) -> Value:
    shape, dtype = shape_of(node), node.meta["val"].dtype
    dims = v.fresh(shape)
    at = Index.of(dims[dim])
    chosen: Expression = number(0, dtype)
    start = 0
    for part in parts:
        stored = builder.stored(part, node).renamed()
        piece = cast(within(stored, dims, {dim: Index(at.terms, -start)}), dtype)
        test = f"({{0}} >= {start} ? {{1}} : {{2}})"
        chosen = Call(test, (At(at), piece, chosen), dtype, 1)
        start += part.shape[dim]
    return Value(dims, chosen, shape)
