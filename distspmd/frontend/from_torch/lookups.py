"""Searches, bags of rows, and reductions at indices, in terms of sums.

Every function is a decomposition for the tracer; it answers NotImplemented if it is not covered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def bucketize(x: Tensor, edges: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """For each element how many edges are below it, or also at it."""
    below = edges <= x.unsqueeze(-1) if right else edges < x.unsqueeze(-1)
    return below.sum(-1).to(torch.int32 if out_int32 else torch.int64)


def searchsorted(
    edges: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Any:
    """The same in lines of edges, one for each line of elements."""
    if sorter is not None:
        return NotImplemented
    right = right or side == "right"
    return bucketize(
        x, edges.unsqueeze(-2) if edges.dim() > 1 else edges, out_int32=out_int32, right=right
    )


def prod(x: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    """The last of the cumulative products."""
    if x.dim() == 0 or x.shape[dim] == 0:
        return NotImplemented
    found = aten.cumprod(x, dim, dtype=dtype)
    return found.narrow(dim, x.shape[dim] - 1, 1) if keepdim else found.select(dim, -1)


def prod_of_all(x: Tensor, *, dtype: torch.dtype | None = None) -> Any:
    """Of all elements in order."""
    return prod(x.reshape(-1), 0, dtype=dtype)


def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    """Sums and means of what comes to one place."""
    if reduce not in ("sum", "mean") or not x.is_floating_point() or x.dim() == 0:
        return NotImplemented
    ones = torch.ones_like(src)
    count = torch.zeros_like(x).scatter_add(dim, index, ones)
    base = x if include_self else torch.where(count > 0, 0.0, x)
    total = base.scatter_add(dim, index, src)
    if reduce == "sum":
        return total
    return total / (count + 1.0 if include_self else count.clamp(min=1.0))


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """Sums or means of the rows of bags, which begin at offsets."""
    if mode not in (0, 1) or scale_grad_by_freq or sparse or padding_idx >= 0:
        return NotImplemented
    starts = offsets[:-1] if include_last_offset else offsets
    places = torch.arange(indices.shape[0])
    bag = (starts <= places.unsqueeze(1)).sum(1) - 1
    rows = aten.embedding(weight, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    member = torch.arange(starts.shape[0]).unsqueeze(1) == bag
    shares = member.to(weight.dtype)
    if mode == 1:
        shares = shares / shares.sum(1, keepdim=True).clamp(min=1.0)
    sizes = member.sum(1)
    return shares @ rows, bag, sizes, sizes


def embedding_bag_backward(
    g: Tensor,
    indices: Tensor,
    _offsets: Tensor,
    bag: Tensor,
    sizes: Tensor,
    _places: Tensor,
    rows: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Any:
    """The gradient of :func:`embedding_bag` by its table."""
    if mode not in (0, 1) or scale_grad_by_freq or sparse or padding_idx >= 0:
        return NotImplemented
    if mode == 1:
        g = g / sizes.clamp(min=1).to(g.dtype).unsqueeze(1)
    each = aten.embedding(g, bag)
    if per_sample_weights is not None:
        each = each * per_sample_weights.unsqueeze(1)
    return aten.embedding_dense_backward(each, indices, rows, -1, False)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.bucketize.Tensor: bucketize,
    aten.searchsorted.Tensor: searchsorted,
    aten.prod.dim_int: prod,
    aten.prod.default: prod_of_all,
    aten.scatter_reduce.two: scatter_reduce,
    aten._embedding_bag.default: embedding_bag,
    aten._embedding_bag_forward_only.default: embedding_bag,
    aten._embedding_bag_backward.default: embedding_bag_backward,
}
