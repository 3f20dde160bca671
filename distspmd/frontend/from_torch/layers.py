"""Layers and losses, and their gradients, for which torch has no decomposition of its own.

Every function is a decomposition for the tracer; it answers NotImplemented if it is not covered.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

# -- activations ----------------------------------------------------------------------------------


def shrink_backward(g: Tensor, x: Tensor, limit: float) -> Tensor:
    """The gradient of ``hardshrink`` and ``softshrink``: none between the limits."""
    return torch.where((x >= -limit) & (x <= limit), 0.0, g)


_SIXTH = torch.tensor(1 / 6, dtype=torch.float32).item()
"""As torch has it in double precision, too."""


def hardsigmoid_backward(g: Tensor, x: Tensor) -> Tensor:
    """The gradient of ``hardsigmoid``: a sixth within the limits."""
    return torch.where((x > -3) & (x < 3), g * _SIXTH, 0.0)


def rrelu(
    x: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Any:
    """Negative elements times what is drawn for each, or times the middle."""
    if generator is not None:
        return NotImplemented
    if not training:
        return torch.where(x >= 0, x, x * ((lower + upper) / 2)), noise
    drawn = torch.rand_like(x) * (upper - lower) + lower
    slopes = torch.where(x > 0, 1.0, drawn)
    return x * slopes, slopes


def rrelu_backward(
    g: Tensor,
    x: Tensor,
    noise: Tensor,
    lower: float,
    upper: float,
    training: bool,
    self_is_result: bool,
) -> Tensor:
    """The gradient of :func:`rrelu`."""
    if training and upper - lower > 1e-6:
        return g * noise
    return torch.where(x > 0, g, g * ((lower + upper) / 2))


def native_dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """What is kept of the elements, scaled, and a mask of it.

    Devices have it as one operator; its random numbers are those of the operators of the CPU.
    """
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return x * 0.0, torch.zeros_like(x, dtype=torch.bool)
    kept = aten.bernoulli.p(aten.empty_like(x), 1 - p)
    return x * (kept / (1 - p)), kept.to(torch.bool)


def native_dropout_backward(g: Tensor, kept: Tensor, scale: float) -> Tensor:
    """The gradient of :func:`native_dropout`."""
    return g * (kept.to(g.dtype) * scale)


# -- products and norms ---------------------------------------------------------------------------


def trilinear(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    expand_a: Sequence[int],
    expand_b: Sequence[int],
    expand_c: Sequence[int],
    summed: Sequence[int],
    unrolled: int = 1,
) -> Tensor:
    """A sum of products of three tensors, as in a bilinear layer."""

    def widened(x: Tensor, places: Sequence[int]) -> Tensor:
        for place in sorted(places):
            x = x.unsqueeze(place)
        return x

    product = widened(a, expand_a) * widened(b, expand_b) * widened(c, expand_c)
    return product.sum(list(summed)) if summed else product


def weight_norm_backward(
    g: Tensor, v: Tensor, length: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """The gradients of a weight by its direction and its length."""
    others = [d for d in range(v.dim()) if d != dim]
    along = (g * v).sum(others, keepdim=True) / norms
    return length / norms * (g - v * along / norms), along


# -- distances ------------------------------------------------------------------------------------


def _norms(difference: Tensor, p: float) -> Tensor:
    size = difference.abs()
    if p == 0:
        return (size != 0).to(difference.dtype).sum(-1)
    if math.isinf(p):
        return size.amax(-1)
    if p == 1:
        return size.sum(-1)
    found: Tensor = (size * size).sum(-1).sqrt() if p == 2 else (size**p).sum(-1) ** (1 / p)
    return found


def _by_difference(g: Tensor, difference: Tensor, found: Tensor, p: float) -> Tensor:
    """The gradient of norms by what they are of, zero where a norm is."""
    g, found = g.unsqueeze(-1), found.unsqueeze(-1)
    if p == 0:
        return torch.zeros_like(difference)
    direction = difference.sign()
    if p == 1:
        return g * direction
    if math.isinf(p):
        return g * direction * (difference.abs() == found)
    safe = torch.where(found == 0, 1.0, found)
    share = difference / safe if p == 2 else direction * (difference.abs() / safe) ** (p - 1)
    return torch.where(found == 0, 0.0, g * share)


def cdist(a: Tensor, b: Tensor, p: float, mode: int | None = None) -> Tensor:
    """Distances of all rows of one matrix from all rows of another."""
    return _norms(a.unsqueeze(-2) - b.unsqueeze(-3), p)


def cdist_backward(g: Tensor, a: Tensor, b: Tensor, p: float, found: Tensor) -> Tensor:
    """The gradient of :func:`cdist` by the first matrix."""
    return _by_difference(g, a.unsqueeze(-2) - b.unsqueeze(-3), found, p).sum(-2)


def _pairs(x: Tensor) -> Tensor:
    pairs = list(itertools.combinations(range(x.shape[0]), 2))
    first, second = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).unbind(1)
    return x[first] - x[second]


def pdist(x: Tensor, p: float = 2.0) -> Any:
    """Distances of all pairs of rows."""
    return _norms(_pairs(x), p) if x.shape[0] > 1 else NotImplemented


# -- losses ---------------------------------------------------------------------------------------


def multi_margin_backward(
    g: Tensor,
    x: Tensor,
    target: Tensor,
    p: float,
    margin: float,
    weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    """The gradient of ``multi_margin_loss`` by its input."""
    rows, classes = torch.atleast_2d(x), torch.atleast_1d(target).unsqueeze(1)
    distance = margin - rows.gather(1, classes) + rows
    other = torch.arange(rows.shape[1]) != classes
    slope = torch.where((distance > 0) & other, p * distance.clamp(min=0) ** (p - 1), 0.0)
    if weight is not None:
        slope = slope * weight[classes]
    slope = torch.where(other, slope, -slope.sum(1, keepdim=True)) / rows.shape[1]
    if reduction == 1:
        slope = slope / rows.shape[0]
    shares = g.reshape(-1, 1) if reduction == 0 else g
    found: Tensor = (slope * shares).reshape(x.shape)
    return found


def multilabel_margin_backward(
    g: Tensor, x: Tensor, target: Tensor, reduction: int, is_target: Tensor
) -> Tensor:
    """The gradient of ``multilabel_margin_loss`` by its input; targets end at the first -1."""
    rows, classes = torch.atleast_2d(x), torch.atleast_2d(target)
    count = rows.shape[1]
    place = torch.arange(count)
    end = torch.where(classes == -1, place, count).amin(1, keepdim=True)
    counts = place < end
    own = torch.where(counts, classes, 0)
    distance = 1 - rows.gather(1, own).unsqueeze(2) + rows.unsqueeze(1)
    others = (torch.atleast_2d(is_target) == 0).unsqueeze(1)
    active = ((distance > 0) & counts.unsqueeze(2) & others).to(x.dtype) / count
    slope = active.sum(1) - torch.zeros_like(rows).scatter_add(1, own, active.sum(2))
    if reduction == 1:
        slope = slope / rows.shape[0]
    shares = g.reshape(-1, 1) if reduction == 0 else g
    found: Tensor = (slope * shares).reshape(x.shape)
    return found


# -- borders --------------------------------------------------------------------------------------


def replication_backward(g: Tensor, x: Tensor, padding: Sequence[int]) -> Tensor:
    """The gradient of a border that repeats the outermost elements."""
    count = len(padding) // 2
    for k in range(count):
        dim, length = x.dim() - 1 - k, x.shape[x.dim() - 1 - k]
        places = torch.arange(-padding[2 * k], length + padding[2 * k + 1]).clamp(0, length - 1)
        shape = [*g.shape[:dim], length, *g.shape[dim + 1 :]]
        g = g.new_zeros(shape).index_add(dim, places, g)
    return g


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The elements of a source in order, where a mask holds."""
    mask, x = torch.broadcast_tensors(mask, x)
    place = mask.reshape(-1).to(torch.int64).cumsum(0) - 1
    found = source.reshape(-1)[place.clamp(0, source.numel() - 1)].reshape(x.shape)
    return torch.where(mask, found, x)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.hardsigmoid_backward.default: hardsigmoid_backward,
    aten.hardshrink_backward.default: shrink_backward,
    aten.softshrink_backward.default: shrink_backward,
    aten.rrelu_with_noise_functional.default: rrelu,
    aten.rrelu_with_noise_backward.default: rrelu_backward,
    aten.native_dropout.default: native_dropout,
    aten.native_dropout_backward.default: native_dropout_backward,
    aten._trilinear.default: trilinear,
    aten._weight_norm_interface_backward.default: weight_norm_backward,
    aten._cdist_forward.default: cdist,
    aten._cdist_backward.default: cdist_backward,
    aten._pdist_forward.default: pdist,
    aten.multi_margin_loss_backward.default: multi_margin_backward,
    aten.multilabel_margin_loss_backward.default: multilabel_margin_backward,
    aten.replication_pad1d_backward.default: replication_backward,
    aten.replication_pad2d_backward.default: replication_backward,
    aten.replication_pad3d_backward.default: replication_backward,
    aten.masked_scatter.default: masked_scatter,
}
