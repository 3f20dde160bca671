"""Views: only indices change."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

from torch import fx

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.operators.aten_registry import (
    INT64,
    combine,
    element_within,
    fitting,
    number,
    operator,
    shape_of,
    type_of,
)
from distspmd.frontend.tensor_ir import indices as v
from distspmd.frontend.tensor_ir.indices import Extent, Index, Value, Variable, at
from distspmd.frontend.tensor_ir.kernels import Builder, operator_of, refuse


@operator("view", "_unsafe_view", "reshape")
def _view(builder: Builder, node: fx.Node, x: Value, shape: Sequence[int]) -> Value:
    return builder.viewed(x, shape_of(node), node)


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


@operator("as_strided")
def _as_strided(
    builder: Builder,
    node: fx.Node,
    x: Value,
    size: Sequence[int],
    stride: Sequence[int],
    offset: int | None = None,
) -> Value:
    """Elements at places in memory, which torch's own tensor of the operand tells."""
    memory = node.args[0].meta["val"]  # type: ignore[union-attr]
    size, stride = tuple(map(int, size)), tuple(map(int, stride))
    if not offset and size == x.shape and _steps(size, stride) == _steps(size, memory.stride()):
        return x
    order = sorted(range(len(x.shape)), key=lambda d: (-memory.stride(d), d))
    dense = [math.prod(x.shape[e] for e in order[n + 1 :]) for n in range(len(order))]
    steps = [memory.stride(d) for d in order]
    ordered = tuple(x.shape[d] for d in order)
    if _steps(ordered, dense) != _steps(ordered, steps) or memory.storage_offset():
        raise refuse(node, ["views of whole tensors"])
    line = builder.joined(
        Value(tuple(x.dims[d] for d in order), x.expression, ordered), len(order), node
    )
    new = v.new_variables(size)
    terms = [(u, s) for dim, s in zip(new, stride, strict=True) for u in dim]
    by = {u: Index(tuple(terms), offset or 0) for u in line.dim(0)}
    for u in line.dim(0):
        u.extent.find().solid = True
    return Value(new, v.substitute_indices(line.expression, by), size)


@operator("as_strided_scatter")
def _as_strided_scatter(
    builder: Builder,
    node: fx.Node,
    x: Value,
    source: Value,
    size: Sequence[int],
    stride: Sequence[int],
    offset: int | None = None,
) -> Value:
    """All elements in memory replaced by those of another tensor, in the order of its strides."""
    memory = node.args[0].meta["val"]  # type: ignore[union-attr]
    order = sorted(range(len(size)), key=lambda d: (-int(stride[d]), d))
    ordered = tuple(source.shape[d] for d in order)
    dense = [math.prod(ordered[n + 1 :]) for n in range(len(order))]
    steps = [int(stride[d]) for d in order]
    whole = math.prod(ordered) == math.prod(x.shape) and memory.is_contiguous()
    if offset or not whole or _steps(ordered, dense) != _steps(ordered, steps):
        raise refuse(node, ["as_strided_scatter into all of a tensor"])
    moved = Value(tuple(source.dims[d] for d in order), source.expression, ordered)
    return builder.viewed(moved, x.shape, node)


def _steps(size: Sequence[int], stride: Sequence[int]) -> list[int]:
    """Strides of dimensions in which there are steps."""
    return [s for n, s in zip(size, stride, strict=True) if n != 1]


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
    return _at(x, dim, index % x.shape[dim], shape_of(node))


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
    if length and (grouped or len(x.dim(dim)) > 1):
        with contextlib.suppress(v.Crossing):  # it has to stay whole
            found = _group(x, dim, start, length, step)
            if found is not None:
                return found
    if not length:
        nothing = {u: Index() for u in x.dim(dim)}
        dims = (*x.dims[:dim], *v.new_variables([0]), *x.dims[dim + 1 :])
        return Value(dims, v.substitute_indices(x.expression, nothing), shape)
    old, *inner = x.dim(dim)
    block = math.prod(u.length for u in inner)
    if inner and (step != 1 or start % block or length % block):
        raise _crossing(x)
    (new,) = v.new_variables([length // block])
    moved = Index(tuple((u, f * step) for u, f in Index.of(new).terms), start // block)
    old.extent.find().solid = True
    dims = (*x.dims[:dim], (*new, *inner), *x.dims[dim + 1 :])
    return Value(dims, v.substitute_indices(x.expression, {old: moved}), shape)


def _group(x: Value, dim: int, start: int, length: int, step: int) -> Value | None:
    """A slice that is one of the groups of its dimension."""
    whole = x.shape[dim]
    shape = (*x.shape[:dim], length, *x.shape[dim + 1 :])
    if step > 1 and whole == length * step and start < step:
        parts = v.regroup(x, (*x.shape[:dim], length, step, *x.shape[dim + 1 :]))
        return _at(parts, dim + 1, start, shape)
    if step == 1 and whole % length == 0 and start % length == 0:
        groups = v.regroup(x, (*x.shape[:dim], whole // length, length, *x.shape[dim + 1 :]))
        return _at(groups, dim, start // length, shape)
    return None


def _at(x: Value, dim: int, index: int, shape: Sequence[int]) -> Value:
    """One place of a dimension."""
    by: dict[Variable, Index] = {}
    for variable in reversed(x.dim(dim)):
        index, digit = divmod(index, variable.length)
        by[variable] = Index((), digit)
    rest = x.dims[:dim] + x.dims[dim + 1 :]
    return Value(rest, v.substitute_indices(x.expression, by), tuple(shape))


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
    filled = apply("where", all_inside, element, fitting(node, fill, x.dtype))
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
    with contextlib.suppress(v.Crossing):
        found = _group_replaced(builder, node, x, source, dim, first, step)
        if found is not None:
            return found
    x, stored = x.renamed(), builder.whole(source, node).renamed()
    place = Index.of(x.dims[dim])
    element = element_within(stored, x.dims, {dim: Index(place.terms, -first, step)})
    steps = (number(n, INT64) for n in (first, first + length * step, step))
    chosen = apply("pick_stepped", at(place), *steps, element, x.expression)
    return Value(x.dims, chosen, x.shape)


def _group_replaced(
    builder: Builder, node: fx.Node, x: Value, source: Value, dim: int, first: int, step: int
) -> Value | None:
    """``x`` with one of the groups of a dimension replaced; None: the slice is no group."""
    length, whole = source.shape[dim], x.shape[dim]
    if step != 1 or whole % length or first % length or length == whole:
        return None
    groups = v.regroup(x, (*x.shape[:dim], whole // length, length, *x.shape[dim + 1 :]))
    shape = tuple(1 if d == dim else n for d, n in enumerate(groups.shape))
    dims = tuple(() if d == dim else source.dims[d - (d > dim)] for d in range(len(shape)))
    part = Value(dims, builder.spread(source, groups.shape, node).expression, shape)
    number_of = number(first // length, INT64)

    def build(index: Expression, new: Expression, old: Expression) -> Expression:
        return apply("pick", index, number_of, new, old)

    replaced = v.pointwise(build, [v.element_index(groups, dim), part, groups], groups.shape)
    return v.regroup(replaced, x.shape)


@operator("diagonal")
def _diagonal(
    builder: Builder, node: fx.Node, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    """``x[i, i + offset]``, as the last dimension."""
    length = shape_of(node)[-1]
    first, second = dim1 % len(x.shape), dim2 % len(x.shape)
    (new,) = v.new_variables([length])
    place = Index.of(new)
    by = _one_variable(x, first, Index(place.terms, max(0, -offset)))
    by |= _one_variable(x, second, Index(place.terms, max(0, offset)))
    rest = [d for d in range(len(x.shape)) if d not in (first, second)]
    dims = (*(x.dims[d] for d in rest), new)
    return Value(dims, v.substitute_indices(x.expression, by), shape_of(node)).renamed()


@operator("unfold")
def _unfold(builder: Builder, node: fx.Node, x: Value, dim: int, size: int, step: int) -> Value:
    """Windows along a dimension, whose elements are the last one."""
    if not x.shape:
        raise refuse(node, ["unfold of a dimension"])
    dim %= len(x.shape)
    shape = shape_of(node)
    outer, inner = v.new_variables([shape[dim], size])
    terms = [*((u, step) for u in outer), *((u, 1) for u in inner)]
    by = _one_variable(x, dim, Index(tuple(terms)))
    dims = (*x.dims[:dim], outer, *x.dims[dim + 1 :], inner)
    return Value(dims, v.substitute_indices(x.expression, by), shape)


def _one_variable(x: Value, dim: int, index: Index) -> dict[Variable, Index]:
    """What to put in for the one variable of a dimension, which is not split any more."""
    leaves = x.dim(dim)
    if len(leaves) > 1:
        raise v.Crossing(f"a dimension of {list(x.shape)} is viewed in groups elsewhere.")
    for leaf in leaves:
        leaf.extent.find().solid = True
    return dict.fromkeys(leaves, index)


@operator("getitem")
def _getitem(builder: Builder, node: fx.Node, values: Sequence[Any], index: int) -> Any:
    return values[index]


@operator("cat")
def _cat(builder: Builder, node: fx.Node, parts: Sequence[Value], dim: int = 0) -> Value:
    shape, dtype = shape_of(node), type_of(node)
    dim %= len(shape)
    parts = [part for part in parts if math.prod(part.shape)] or parts[:1]
    if len(parts) == 1:
        return combine(builder, node, parts, lambda e: e, dtype)
    lengths = {part.shape[dim] for part in parts}
    if len(lengths) > 1:
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
