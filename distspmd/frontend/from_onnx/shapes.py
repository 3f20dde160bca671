"""Operators that move elements, or create them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_onnx.registry import operator
from distspmd.frontend.from_onnx.types import torch_type


@operator("Shape")
def _shape(x: Tensor, start: int = 0, end: int | None = None) -> Tensor:
    return torch.tensor(list(x.shape)[start:end], dtype=torch.int64)


@operator("Size")
def _size(x: Tensor) -> Tensor:
    return torch.tensor(x.numel(), dtype=torch.int64)


@operator("Reshape", numbers=("shape",))
def _reshape(x: Tensor, shape: Sequence[int], allowzero: int = 0) -> Tensor:
    if not allowzero:
        shape = [x.shape[d] if n == 0 else n for d, n in enumerate(shape)]
    return x.reshape(tuple(shape))


@operator("Flatten")
def _flatten(x: Tensor, axis: int = 1) -> Tensor:
    axis = axis % len(x.shape) if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@operator("Transpose")
def _transpose(x: Tensor, perm: Sequence[int] | None = None) -> Tensor:
    return x.permute(list(range(x.dim()))[::-1] if perm is None else list(perm))


@operator("Squeeze", numbers=("axes",))
def _squeeze(x: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    if axes is None:
        axes = [d for d, n in enumerate(x.shape) if n == 1]
    return x.squeeze(tuple(axes))


@operator("Unsqueeze", numbers=("axes",))
def _unsqueeze(x: Tensor, axes: Sequence[int]) -> Tensor:
    rank = x.dim() + len(axes)
    for axis in sorted(a % rank for a in axes):
        x = x.unsqueeze(axis)
    return x


@operator("Expand", numbers=("shape",))
def _expand(x: Tensor, shape: Sequence[int]) -> Tensor:
    return x.expand(torch.broadcast_shapes(tuple(x.shape), tuple(shape)))


@operator("Concat")
def _concat(*inputs: Tensor, axis: int) -> Tensor:
    filled = [x for x in inputs if x.shape[axis]]
    return torch.cat(filled, axis) if filled else inputs[0]


@operator("Split", numbers=("split",))
def _split(
    x: Tensor,
    split: Sequence[int] | None = None,
    axis: int = 0,
    num_outputs: int | None = None,
    outputs: int = 1,
) -> Any:
    if split is None:
        largest = -(-x.shape[axis] // (num_outputs or outputs))
        split = [largest] * (x.shape[axis] // largest)
        if sum(split) < x.shape[axis]:
            split.append(x.shape[axis] - sum(split))
    return torch.split(x, list(split), axis)


@operator("Slice", numbers=("starts", "ends", "axes", "steps"))
def _slice(
    x: Tensor,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
) -> Tensor:
    axes = axes or range(len(starts))
    for start, end, axis, step in zip(starts, ends, axes, steps or [1] * len(starts), strict=True):
        places = range(*slice(start, end, step).indices(x.shape[axis]))
        if step < 0:  # no view of torch goes backwards
            x = x.flip([axis])
            last = x.shape[axis] - 1
            places = range(last - places.start, last - places.stop, -step)
        index: list[Any] = [slice(None)] * x.dim()
        index[axis] = slice(places.start, places.stop, places.step)
        x = x[tuple(index)]
    return x


@operator("Gather")
def _gather(x: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    axis %= x.dim()
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    table = x.movedim(axis, 0).reshape(x.shape[axis], -1)
    found = functional.embedding(_positive(indices, x.shape[axis]), table)
    found = found.reshape((*indices.shape, *rest))
    chosen = list(range(indices.dim()))
    others = list(range(indices.dim(), found.dim()))
    return found.permute(others[:axis] + chosen + others[axis:])


@operator("GatherElements")
def _gather_elements(x: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    return torch.gather(x, axis, _positive(indices, x.shape[axis]))


def _positive(indices: Tensor, length: int) -> Tensor:
    indices = indices.to(torch.int64)
    return torch.where(indices < 0, indices + length, indices)


@operator("ConstantOfShape", numbers=("shape",))
def _constant_of_shape(shape: Sequence[int], value: Tensor | None = None) -> Tensor:
    if value is None:
        return torch.zeros(tuple(shape))
    return torch.full(tuple(shape), value.item(), dtype=value.dtype)


@operator("Range", numbers=("start", "limit", "delta"), as_tensors=True)
def _range(start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    return torch.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


@operator("Tile", numbers=("repeats",))
def _tile(x: Tensor, repeats: Sequence[int]) -> Tensor:
    return x.repeat(tuple(repeats))


@operator("Pad", numbers=("pads", "axes"))
def _pad(
    x: Tensor,
    pads: Sequence[int],
    value: Any = None,
    axes: Sequence[int] | None = None,
    mode: str = "constant",
) -> Tensor:
    if mode != "constant":
        raise UnsupportedProgram(f"the mode {mode!r} is not covered; 'constant' is.")
    axes = [a % x.dim() for a in axes] if axes is not None else list(range(x.dim()))
    for place, axis in enumerate(axes):
        before, after = pads[place], pads[place + len(axes)]
        index: list[Any] = [slice(None)] * x.dim()
        index[axis] = slice(max(-before, 0), x.shape[axis] - max(-after, 0))
        parts = [_filled(x, axis, before, value), x[tuple(index)], _filled(x, axis, after, value)]
        x = torch.cat([part for part in parts if part.shape[axis]], axis)
    return x


def _filled(x: Tensor, axis: int, length: int, value: Tensor | None) -> Tensor:
    shape = [max(length, 0) if d == axis else n for d, n in enumerate(x.shape)]
    return torch.zeros(shape, dtype=x.dtype) if value is None else value.reshape(()).expand(shape)


@operator("OneHot", numbers=("depth",))
def _one_hot(indices: Tensor, depth: Any, values: Tensor, axis: int = -1) -> Tensor:
    length = int(depth[0] if isinstance(depth, list) else depth)
    axis %= indices.dim() + 1
    places = torch.arange(length).reshape((length,) + (1,) * (indices.dim() - axis))
    hit = _positive(indices, length).unsqueeze(axis) == places
    return torch.where(hit, values[1], values[0])


@operator("Trilu", numbers=("k",))
def _trilu(x: Tensor, k: Any = 0, upper: int = 1) -> Tensor:
    k = int(k[0] if isinstance(k, list) else k)
    rows = torch.arange(x.shape[-2]).unsqueeze(1)
    columns = torch.arange(x.shape[-1])
    kept = columns >= rows + k if upper else columns <= rows + k
    return torch.where(kept, x, torch.zeros((), dtype=x.dtype))


@operator("EyeLike")
def _eye_like(x: Tensor, dtype: int | None = None, k: int = 0) -> Tensor:
    rows = torch.arange(x.shape[-2]).unsqueeze(1)
    hit = torch.arange(x.shape[-1]) == rows + k
    return hit.to(x.dtype if dtype is None else torch_type(dtype))


@operator("DepthToSpace")
def _depth_to_space(x: Tensor, blocksize: int, mode: str = "DCR") -> Tensor:
    n, c, h, w = x.shape
    b, rest = blocksize, c // blocksize**2
    if mode == "DCR":
        parts = x.reshape(n, b, b, rest, h, w).permute(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(n, rest, b, b, h, w).permute(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, rest, h * b, w * b)


@operator("SpaceToDepth")
def _space_to_depth(x: Tensor, blocksize: int, mode: str = "DCR") -> Tensor:
    if mode != "DCR":
        raise UnsupportedProgram(f"the mode {mode!r} is not covered; 'DCR' is.")
    n, c, h, w = x.shape
    b = blocksize
    parts = x.reshape(n, c, h // b, b, w // b, b).permute(0, 3, 5, 1, 2, 4)
    return parts.reshape(n, c * b * b, h // b, w // b)
