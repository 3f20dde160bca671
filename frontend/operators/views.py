"""Views: only indices change."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from torch import fx

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.operators.aten_registry import (
    INT64,
    element_within,
    number,
    operator,
    shape_of,
    type_of,
)
from distspmd.frontend.tensor_ir import indices as v
from distspmd.frontend.tensor_ir.indices import Extent, Index, Value, Variable, at
from distspmd.frontend.tensor_ir.kernels import Builder, operator_of


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
    new = v.new_variables(shape)
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
    return Value(rest, v.substitute_indices(x.expression, by), shape_of(node))


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
    dim %= len(x.shape)
    lengths = {
        shape_of(other)[dim]
        for other in node.args[0].users  # type: ignore[union-attr]
        if operator_of(other) == "slice"
        and len(other.args) > 1
        and other.args[1] in (dim, dim - len(x.shape))
    }
    return strided_part(x, dim, start or 0, shape_of(node)[dim], step, grouped=len(lengths) == 1)


def strided_part(
    x: Value, dim: int, start: int, length: int, step: int = 1, grouped: bool = True
) -> Value:
    """``x[start : start + length * step : step]`` in one dimension.

    Args:
        grouped: whether the dimension may be split in groups of this length.
    """
    whole = x.shape[dim]
    if length == whole:
        return x
    start = max(0, start + whole if start < 0 else start)
    shape = (*x.shape[:dim], length, *x.shape[dim + 1 :])
    if length and grouped and len(x.dims[dim]) == 1:
        with contextlib.suppress(v.Crossing):  # it has to stay whole
            found = _group(x, dim, start, length, step)
            if found is not None:
                return found
    (new,) = v.new_variables([length])
    moved = Index.of(new)
    moved = Index(tuple((u, f * step) for u, f in moved.terms), start)
    old = x.dim(dim)
    if len(old) != 1:
        raise _crossing(x)
    old[0].extent.find().solid = True
    dims = (*x.dims[:dim], new, *x.dims[dim + 1 :])
    return Value(dims, v.substitute_indices(x.expression, {old[0]: moved}), shape)


def _group(x: Value, dim: int, start: int, length: int, step: int) -> Value | None:
    """A slice that is one of the groups of its dimension."""
    whole = x.shape[dim]
    shape = (*x.shape[:dim], length, *x.shape[dim + 1 :])
    if step > 1 and whole == length * step and start < step:
        parts = v.regroup(x, (*x.shape[:dim], length, step, *x.shape[dim + 1 :]))
        (inner,) = parts.dim(dim + 1)
        dims = parts.dims[: dim + 1] + parts.dims[dim + 2 :]
        return Value(dims, v.substitute_indices(parts.expression, {inner: Index((), start)}), shape)
    if step == 1 and whole % length == 0 and start % length == 0:
        groups = v.regroup(x, (*x.shape[:dim], whole // length, length, *x.shape[dim + 1 :]))
        by: dict[Variable, Index] = {}
        index = start // length
        for variable in reversed(groups.dim(dim)):
            index, digit = divmod(index, variable.length)
            by[variable] = Index((), digit)
        dims = groups.dims[:dim] + groups.dims[dim + 1 :]
        return Value(dims, v.substitute_indices(groups.expression, by), shape)
    return None


def _crossing(x: Value) -> Exception:
    return v.Crossing(
        f"a slice of a dimension of {list(x.shape)} that is viewed in groups elsewhere does not "
        "end where a group ends."
    )


@operator("split", "split_with_sizes")
def _split(builder: Builder, node: fx.Node, x: Value, sizes: Any, dim: int = 0) -> list[Any]:
    dim %= len(x.shape)
    parts, start = [], 0
    lengths = [int(part.shape[dim]) for part in node.meta["val"]]
    for length in lengths:
        grouped = len(set(lengths)) == 1
        parts.append(strided_part(x, dim, start, length, grouped=grouped) if length else None)
        start += length
    return parts


@operator("flip")
def _flip(builder: Builder, node: fx.Node, x: Value, dims: Sequence[int]) -> Value:
    return Value(x.dims, v.substitute_indices(x.expression, reverse_dimensions(x, dims)), x.shape)


def reverse_dimensions(x: Value, dims: Sequence[int]) -> dict[Variable, Index]:
    """What to put in for the variables of dimensions to go backwards through them."""
    by = {}
    for d in dims:
        for variable in x.dim(d % len(x.shape)):
            by[variable] = Index(((variable, -1),), variable.length - 1)
    return by


@operator("repeat")
def _repeat(builder: Builder, node: fx.Node, x: Value, repeats: Sequence[int]) -> Value:
    shape = shape_of(node)
    x = builder.spread(x, shape, node)
    own = ((),) * (len(shape) - len(x.shape)) + x.dims
    outer = v.new_variables(repeats)
    return Value(tuple((*o, *i) for o, i in zip(outer, own, strict=True)), x.expression, shape)


@operator("constant_pad_nd")
def _pad(builder: Builder, node: fx.Node, x: Value, pads: Sequence[int], fill: Any = 0) -> Value:
    shape = shape_of(node)
    stored = builder.whole(x, node).renamed()
    dims, moved, inside = v.new_variables(shape), {}, list[Expression]()
    for d, n in enumerate(x.shape):
        before = pads[2 * (len(shape) - 1 - d)] if len(shape) - d <= len(pads) // 2 else 0
        if before or shape[d] != n:
            moved[d] = Index(Index.of(dims[d]).terms, -before)
            ends = number(0, INT64), number(n, INT64)
            inside.append(apply("between", at(moved[d]), *ends))
    if not inside:
        return x
    all_inside = inside[0]
    for other in inside[1:]:
        all_inside = apply("logical_and", all_inside, other)
    element = element_within(stored, dims, moved)
    filled = apply("where", all_inside, element, number(fill, x.dtype))
    return Value(dims, filled, shape)


@operator("slice_scatter")
def _slice_scatter(
    builder: Builder,
    node: fx.Node,
    x: Value,
    source: Value,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Value:
    """``x`` with a slice of it replaced."""
    dim %= len(x.shape)
    length = source.shape[dim]
    if not length:
        return x
    first = start or 0
    first = max(0, first + x.shape[dim] if first < 0 else first)
    x, stored = x.renamed(), builder.whole(source, node).renamed()
    place = Index.of(x.dims[dim])
    element = element_within(stored, x.dims, {dim: Index(place.terms, -first, step)})
    steps = (number(n, INT64) for n in (first, first + length * step, step))
    chosen = apply("pick_stepped", at(place), *steps, element, x.expression)
    return Value(x.dims, chosen, x.shape)


@operator("getitem")
def _getitem(builder: Builder, node: fx.Node, values: Sequence[Any], index: int) -> Any:
    return values[index]


@operator("cat")
def _cat(builder: Builder, node: fx.Node, parts: Sequence[Value], dim: int = 0) -> Value:
    shape, dtype = shape_of(node), type_of(node)
    dim %= len(shape)
    lengths = {part.shape[dim] for part in parts}
    if len(lengths) > 1 or len(parts) == 1:
        return _uneven_cat(builder, node, parts, dim)
    (length,) = lengths
    outer = Variable(Extent(len(parts)))
    dims = [*v.new_variables([*shape[:dim], length, *shape[dim + 1 :]])]
    chosen: Expression = number(0, dtype)
    for place, part in enumerate(parts):
        by: dict[Variable, Index] = {}
        stored = builder.stored(part, node).renamed()
        for own, theirs in zip(dims, stored.dims, strict=True):
            if own:
                by |= v.align_groups(own, theirs)
        piece = cast(v.substitute_indices(stored.expression, by), dtype)
        index = at(Index(((outer, 1),)))
        chosen = apply("pick", index, number(place, INT64), piece, chosen)
    dims[dim] = (outer, *dims[dim])
    return Value(tuple(dims), chosen, shape)


def _uneven_cat(builder: Builder, node: fx.Node, parts: Sequence[Value], dim: int) -> Value:
    shape, dtype = shape_of(node), type_of(node)
    dims = v.new_variables(shape)
    place = Index.of(dims[dim])
    chosen: Expression = number(0, dtype)
    start = 0
    for part in parts:
        stored = builder.whole(part, node).renamed()
        piece = cast(element_within(stored, dims, {dim: Index(place.terms, -start)}), dtype)
        chosen = apply("pick_from", at(place), number(start, INT64), piece, chosen)
        start += part.shape[dim]
    return Value(dims, chosen, shape)
