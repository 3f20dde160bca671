"""Images of other sizes: each dimension times a matrix of weights, which indices give.

Every function is a decomposition for the tracer. The gradient takes the transposed matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._decomp.decompositions import _grid_sampler_2d

aten = torch.ops.aten

Weights = Callable[[Tensor, int, int], Tensor]
"""Of a tensor (for its type), the old and the new length: ``[new, old]``."""


def _along(x: Tensor, dim: int, matrix: Tensor) -> Tensor:
    """A dimension times a matrix ``[new, old]``."""
    return torch.movedim(torch.movedim(x, dim, -1) @ matrix.t(), -1, dim)


def _resampled(x: Tensor, sizes: Sequence[int], weights: Sequence[Weights]) -> Tensor:
    """The last dimensions in other sizes."""
    first = x.dim() - len(sizes)
    for n, (size, weight) in enumerate(zip(sizes, weights, strict=True)):
        x = _along(x, first + n, weight(x, x.shape[first + n], size))
    return x


def _gradient(g: Tensor, sizes: Sequence[int], weights: Sequence[Weights]) -> Tensor:
    """The gradient of :func:`_resampled` by what had these sizes."""
    first = g.dim() - len(sizes)
    for n, (size, weight) in enumerate(zip(sizes, weights, strict=True)):
        g = _along(g, first + n, weight(g, size, g.shape[first + n]).t())
    return g


def _single(x: Tensor, value: float) -> float:
    """A number as torch has it beside elements of a type."""
    return float(np.float32(value)) if x.dtype != torch.float64 else value


def _counts(x: Tensor, length: int) -> Tensor:
    return torch.arange(length, dtype=x.dtype)


def _ratio(x: Tensor, old: int, new: int, scale: float | None) -> float:
    return _single(x, 1.0 / scale if scale else old / new)


def _taps(x: Tensor, old: int, taps: Sequence[tuple[Tensor, Any]]) -> Tensor:
    """Weights at places."""
    columns = _counts(x, old)
    total = None
    for place, weight in taps:
        inside = place.clamp(0, old - 1)
        part = torch.where(columns == inside.unsqueeze(1), weight.unsqueeze(1), 0.0)
        total = part if total is None else total + part
    assert total is not None
    return total


def _linear(align: bool, scale: float | None) -> Weights:
    def weights(x: Tensor, old: int, new: int) -> Tensor:
        if align:
            place = _counts(x, new) * _single(x, (old - 1) / (new - 1) if new > 1 else 0.0)
        else:
            place = (_counts(x, new) + 0.5) * _ratio(x, old, new, scale) - 0.5
            place = place.clamp(min=0.0)
        low = place.floor().clamp(max=old - 1)
        part = place - low
        return _taps(x, old, [(low, 1 - part), (low + 1, part)])

    return weights


def _cubic(align: bool, scale: float | None) -> Weights:
    sharpness = -0.75

    def near(t: Tensor) -> Tensor:
        return ((sharpness + 2) * t - (sharpness + 3)) * t * t + 1

    def far(t: Tensor) -> Tensor:
        return ((sharpness * t - 5 * sharpness) * t + 8 * sharpness) * t - 4 * sharpness

    def weights(x: Tensor, old: int, new: int) -> Tensor:
        if align:
            place = _counts(x, new) * _single(x, (old - 1) / (new - 1) if new > 1 else 0.0)
        else:
            place = (_counts(x, new) + 0.5) * _ratio(x, old, new, scale) - 0.5
        low = place.floor()
        t = place - low
        taps = [(low - 1, far(t + 1)), (low, near(t)), (low + 1, near(1 - t))]
        return _taps(x, old, [*taps, (low + 2, far(2 - t))])

    return weights


def _nearest(exact: bool, scale: float | None) -> Weights:
    def weights(x: Tensor, old: int, new: int) -> Tensor:
        places = _counts(x, new)
        place = ((places + 0.5 if exact else places) * _ratio(x, old, new, scale)).floor()
        return _taps(x, old, [(place, torch.ones_like(place))])

    return weights


def _means(x: Tensor, old: int, new: int) -> Tensor:
    """Means of windows as even as they may be."""
    rows, columns = torch.arange(new).unsqueeze(1), torch.arange(old)
    begin, end = rows * old // new, ((rows + 1) * old + new - 1) // new
    inside = (columns >= begin) & (columns < end)
    return torch.where(inside, 1.0 / (end - begin).to(x.dtype), 0.0)


def _sizes(x: Tensor, sizes: Any, rank: int) -> list[int]:
    own = [sizes] * rank if isinstance(sizes, int) else list(sizes)
    return [x.shape[n - rank] if size is None else size for n, size in enumerate(own)]


def _upsampling(make: Callable[[Any, float | None], Weights], rank: int, aligned: bool) -> Any:
    """The operator and its gradient, whose scales come last."""

    def weights(align: Any, scales: Sequence[float | None]) -> list[Weights]:
        own = [*scales, *(None for _ in range(rank))][:rank]
        return [make(align, scale) for scale in own]

    def forward(x: Tensor, sizes: Sequence[int], *settings: Any) -> Tensor:
        align, scales = (settings[0], settings[1:]) if aligned else (False, settings)
        return _resampled(x, list(sizes), weights(align, scales))

    def backward(g: Tensor, sizes: Any, before: Sequence[int], *settings: Any) -> Tensor:
        align, scales = (settings[0], settings[1:]) if aligned else (False, settings)
        return _gradient(g, list(before[2:]), weights(align, scales))

    return forward, backward


def _adaptive(rank: int) -> Any:
    def forward(x: Tensor, sizes: Any) -> Tensor:
        return _resampled(x, _sizes(x, sizes, rank), [_means] * rank)

    def backward(g: Tensor, x: Tensor) -> Tensor:
        return _gradient(g, list(x.shape[-rank:]), [_means] * rank)

    return forward, backward


adaptive_avg_pool2d, adaptive_avg_pool2d_backward = _adaptive(2)
upsample_nearest2d, upsample_nearest2d_backward = _upsampling(
    lambda _, scale: _nearest(False, scale), 2, aligned=False
)


def _table() -> dict[Any, Callable[..., Any]]:
    found: dict[Any, Callable[..., Any]] = {}
    kinds: list[tuple[str, Any, bool]] = [
        ("nearest{}d", lambda _, scale: _nearest(False, scale), False),
        ("_nearest_exact{}d", lambda _, scale: _nearest(True, scale), False),
    ]
    for name, make, aligned in kinds:
        for rank in (1, 2, 3):
            own = name.format(rank)
            own = f"_upsample{own}" if own.startswith("_") else f"upsample_{own}"
            forward, backward = _upsampling(make, rank, aligned)
            found[getattr(aten, own).default] = forward
            found[getattr(aten, f"{own}_backward").default] = backward
    for name, make, rank in (
        ("linear1d", _linear, 1),
        ("bilinear2d", _linear, 2),
        ("trilinear3d", _linear, 3),
        ("bicubic2d", _cubic, 2),
    ):
        forward, backward = _upsampling(make, rank, aligned=True)
        found[getattr(aten, f"upsample_{name}").default] = forward
        found[getattr(aten, f"upsample_{name}_backward").default] = backward
    forward, backward = _adaptive(3)
    found[aten._adaptive_avg_pool3d.default] = forward
    found[aten._adaptive_avg_pool3d_backward.default] = backward
    return found


DECOMPOSITIONS = _table()


def grid_sample(
    x: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """What ``torch.nn.functional.grid_sample`` does, of operators that all have derivatives."""
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    chosen = modes.index(mode), paddings.index(padding_mode)
    found: Tensor = _grid_sampler_2d(x, grid, *chosen, bool(align_corners))
    return found
