"""Pooling over windows that do not go together with convolutions: uneven ones, and of maxima.

Every function is a decomposition for the tracer; it answers NotImplemented if it is not covered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _places(length: int, parts: int) -> tuple[Tensor, Tensor]:
    """``[part, place]``: indices of the elements of each part of a line, and which count."""
    starts = [k * length // parts for k in range(parts)]
    ends = [-((-(k + 1) * length) // parts) for k in range(parts)]
    most = max(e - s for s, e in zip(starts, ends, strict=True))
    rows = [[min(s + n, length - 1) for n in range(most)] for s in starts]
    inside = [[s + n < e for n in range(most)] for s, e in zip(starts, ends, strict=True)]
    return torch.tensor(rows), torch.tensor(inside)


def adaptive_max_pool(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The maxima of parts of images, and their places in the whole image."""
    count = len(output_size)
    image, first = x.shape[-count:], x.dim() - count
    numbers = torch.arange(math.prod(image)).reshape(image)
    inside: Any = torch.ones((), dtype=torch.bool)
    for k, parts in enumerate(output_size):  # each dimension becomes [part, place]
        places, counts = _places(image[k], parts)
        x = x.index_select(first + 2 * k, places.reshape(-1))
        x = x.unflatten(first + 2 * k, places.shape)
        numbers = numbers.index_select(2 * k, places.reshape(-1)).unflatten(2 * k, places.shape)
        ones = [1] * (2 * count)
        ones[2 * k : 2 * k + 2] = places.shape
        inside = inside & counts.reshape(ones)
    order = [*range(0, 2 * count, 2), *range(1, 2 * count, 2)]
    lead = list(range(first))
    lines = torch.where(inside, x, -math.inf).permute(*lead, *(first + d for d in order))
    lines = lines.flatten(-count)
    numbers = numbers.permute(order).flatten(-count)
    most, place = lines.max(-1)
    chosen = numbers.expand(lines.shape).gather(-1, place.unsqueeze(-1)).squeeze(-1)
    return most, chosen


def adaptive_max_pool_backward(g: Tensor, x: Tensor, places: Tensor) -> Tensor:
    """The gradient of :func:`adaptive_max_pool`: at the places of the maxima."""
    return _at_places(g, x, places, 2)


def adaptive_max_pool3d_backward(g: Tensor, x: Tensor, places: Tensor) -> Tensor:
    """The same of volumes."""
    return _at_places(g, x, places, 3)


def _at_places(g: Tensor, x: Tensor, places: Tensor, count: int) -> Tensor:
    flat = torch.zeros_like(x).flatten(-count)
    return flat.scatter_add(-1, places.flatten(-count), g.flatten(-count)).reshape(x.shape)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.adaptive_max_pool2d.default: adaptive_max_pool,
    aten.adaptive_max_pool2d_backward.default: adaptive_max_pool_backward,
    aten.adaptive_max_pool3d.default: adaptive_max_pool,
    aten.adaptive_max_pool3d_backward.default: adaptive_max_pool3d_backward,
}
