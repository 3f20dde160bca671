"""Operators of ONNX that read and write at indices, take lines in order, or resize images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_onnx.registry import operator


def _indices(indices: Tensor, lengths: Sequence[int]) -> tuple[Tensor, ...]:
    """The index in each of the first dimensions; negative ones count from the end."""
    parts = indices.to(torch.int64).unbind(-1)
    return tuple(torch.where(i < 0, i + n, i) for i, n in zip(parts, lengths, strict=False))


@operator("GatherND")
def _gather_nd(x: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    if batch_dims:
        raise UnsupportedProgram("GatherND with batch_dims is not covered; without them it is.")
    return x[_indices(indices, x.shape)]


_SUMS = {"none": False, "add": True}


@operator("ScatterND")
def _scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, reduction: str = "none") -> Tensor:
    if reduction not in _SUMS:
        raise UnsupportedProgram(f"ScatterND that takes {reduction!r} is not covered; sums are.")
    return torch.index_put(x, _indices(indices, x.shape), updates, _SUMS[reduction])


@operator("ScatterElements")
def _scatter_elements(
    x: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "none"
) -> Tensor:
    if reduction not in _SUMS:
        raise UnsupportedProgram(
            f"ScatterElements that takes {reduction!r} is not covered; sums are."
        )
    indices = indices.to(torch.int64)
    indices = torch.where(indices < 0, indices + x.shape[axis], indices)
    write = torch.scatter_add if _SUMS[reduction] else torch.scatter
    return write(x, axis, indices, updates)


@operator("CumSum", numbers=("axis",))
def _cumsum(x: Tensor, axis: Any, exclusive: int = 0, reverse: int = 0) -> Tensor:
    dim = int(axis[0] if isinstance(axis, list) else axis)
    line = x.flip(dim) if reverse else x
    found = torch.cumsum(line, dim, dtype=x.dtype)
    if exclusive:
        found = found - line
    return found.flip(dim) if reverse else found


@operator("TopK", numbers=("k",))
def _top_k(
    x: Tensor, k: Any, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Tensor, Tensor]:
    count = int(k[0] if isinstance(k, list) else k)
    values, places = torch.sort(x, dim=axis, descending=bool(largest), stable=True)
    return values.narrow(axis, 0, count), places.narrow(axis, 0, count)


@operator("Resize", numbers=("roi", "scales", "sizes"))
def _resize(
    x: Tensor,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    **more: Any,
) -> Tensor:
    """What `interpolate` of torch is exported as: of images, whose batch and channels stay."""
    wanted = (
        [int(n) for n in sizes]
        if sizes
        else [int(n * s) for n, s in zip(x.shape, scales, strict=True)]
    )
    exact = not scales or all(n * s == m for n, s, m in zip(x.shape, scales, wanted, strict=True))
    kinds = {1: "linear", 2: "bilinear", 3: "trilinear"}
    settings: dict[str, Any] | None = None
    aligned = coordinate_transformation_mode == "align_corners"
    halves = coordinate_transformation_mode in ("half_pixel", "pytorch_half_pixel")
    if mode == "nearest" and (coordinate_transformation_mode, nearest_mode) == (
        "asymmetric",
        "floor",
    ):
        settings = {"mode": "nearest"}
    elif mode == "linear" and (aligned or halves):
        settings = {"mode": kinds.get(x.dim() - 2, ""), "align_corners": aligned}
    elif mode == "cubic" and (aligned or halves) and cubic_coeff_a == -0.75 and x.dim() == 4:
        settings = {"mode": "bicubic", "align_corners": aligned}
    plain = all(more.get(key) in (None, value) for key, value in _USUAL.items())
    single = halves and coordinate_transformation_mode == "pytorch_half_pixel" and 1 in wanted[2:]
    if settings is None or not exact or not plain or single or wanted[:2] != list(x.shape[:2]):
        raise UnsupportedProgram(
            f"Resize by {mode!r} with {coordinate_transformation_mode!r} from {list(x.shape)} to "
            f"{wanted} is not covered; what torch exports for `interpolate` is."
        )
    return functional.interpolate(x, wanted[2:], **settings)


_USUAL = {
    "antialias": 0,
    "axes": None,
    "exclude_outside": 0,
    "extrapolation_value": 0.0,
    "keep_aspect_ratio_policy": "stretch",
}
"""Attributes of Resize that change nothing when they have these values."""
