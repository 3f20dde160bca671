"""Small operators in terms of others: what torch's own table leaves out.

Every function is a decomposition for the tracer; it answers NotImplemented if it is not covered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def addmv(c: Tensor, a: Tensor, x: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """A vector and a product of a matrix with another."""
    found: Tensor = beta * c + alpha * (a * x).sum(1)
    return found


def fmax(a: Tensor, b: Tensor) -> Tensor:
    """The larger one; a number wins over none."""
    return torch.where(torch.isnan(b) | (a >= b), a, b)


def fmin(a: Tensor, b: Tensor) -> Tensor:
    """The smaller one; a number wins over none."""
    return torch.where(torch.isnan(b) | (a <= b), a, b)


def signbit(x: Tensor) -> Tensor:
    """Whether a number is negative; also a negative zero, whose reciprocal tells."""
    if not x.is_floating_point():
        return x < 0
    return torch.where(x == 0, 1 / x < 0, x < 0)


def copysign(x: Tensor, y: Any) -> Any:
    """The size of one number with the sign of another."""
    if not isinstance(y, Tensor) or not x.is_floating_point():
        return NotImplemented
    return torch.where(signbit(y), -x.abs(), x.abs())


def hypot(a: Tensor, b: Tensor) -> Tensor:
    """The length of a vector of two numbers, whose squares may be too large."""
    most, least = torch.maximum(a.abs(), b.abs()), torch.minimum(a.abs(), b.abs())
    share = torch.where(most == least, 1.0, least / most)
    return torch.where(most == 0, 0.0, most * (1 + share * share).sqrt())


def rounded(x: Tensor, *, decimals: int) -> Tensor:
    """To so many digits behind the point."""
    factor = 10.0 ** abs(decimals)
    return (x * factor).round() / factor if decimals >= 0 else (x / factor).round() * factor


def median(x: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The lower one of the middle elements along a dimension, and its place; the first NaN wins."""
    if x.dim() == 0:
        return NotImplemented
    values, places = aten.kthvalue(x, (x.shape[dim] + 1) // 2, dim, keepdim)
    if x.is_floating_point():
        holes = torch.isnan(x)
        some = holes.any(dim, keepdim)
        places = torch.where(some, holes.to(torch.int64).argmax(dim, keepdim), places)
        values = torch.where(some, torch.nan, values)
    return values, places


def median_of_all(x: Tensor) -> Tensor:
    """Of all elements."""
    found: Tensor = median(x.reshape(-1), 0)[0]
    return found


def indices_below(rows: int, columns: int, offset: int = 0, **settings: Any) -> Tensor:
    """Rows and columns of the elements up to a diagonal."""
    places = [(r, c) for r in range(rows) for c in range(min(columns, max(0, r + offset + 1)))]
    return _pairs(places, settings)


def indices_above(rows: int, columns: int, offset: int = 0, **settings: Any) -> Tensor:
    """Rows and columns of the elements from a diagonal on."""
    places = [(r, c) for r in range(rows) for c in range(max(0, r + offset), columns)]
    return _pairs(places, settings)


def _pairs(places: list[tuple[int, int]], settings: dict[str, Any]) -> Tensor:
    dtype = settings.get("dtype") or torch.int64
    return torch.tensor(places, dtype=dtype).reshape(-1, 2).t()


def diagonal_scatter(x: Tensor, source: Tensor, offset: int = 0, a: int = 0, b: int = 1) -> Tensor:
    """A tensor with another diagonal."""
    moved = x.movedim((a, b), (-2, -1))
    rows, columns = moved.shape[-2:]
    i, j = torch.arange(rows).unsqueeze(1), torch.arange(columns)
    last = max(0, source.shape[-1] - 1)
    if offset >= 0:
        spread = source.index_select(-1, torch.arange(rows).clamp(max=last)).unsqueeze(-1)
    else:
        spread = source.index_select(-1, torch.arange(columns).clamp(max=last)).unsqueeze(-2)
    return torch.where(j - i == offset, spread, moved).movedim((-2, -1), (a, b))


def repeated(repeats: Tensor, *, output_size: int | None = None) -> Any:
    """The number of each element, as often as it is repeated; how many there are must be known."""
    if output_size is None:
        return NotImplemented
    ends = repeats.to(torch.int64).cumsum(0)
    return (ends <= torch.arange(output_size).unsqueeze(1)).sum(1).to(repeats.dtype)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.addmv.default: addmv,
    aten.fmax.default: fmax,
    aten.fmin.default: fmin,
    aten.signbit.default: signbit,
    aten.copysign.Tensor: copysign,
    aten.hypot.default: hypot,
    aten.ldexp.Tensor: lambda x, n: x * torch.exp2(n.to(x.dtype)),
    aten.round.decimals: rounded,
    aten.median.dim: median,
    aten.median.default: median_of_all,
    aten.tril_indices.default: indices_below,
    aten.triu_indices.default: indices_above,
    aten.diagonal_scatter.default: diagonal_scatter,
    aten.repeat_interleave.Tensor: repeated,
}
