"""Convolutions and pooling of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_onnx.registry import operator


def _borders(
    x: Tensor,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int] | None,
    auto_pad: str,
) -> tuple[list[int], list[int]]:
    """Width of the border before and after each dimension of the images."""
    spatial = len(kernel)
    if auto_pad in ("NOTSET", "VALID"):
        pads = list(pads) if pads and auto_pad == "NOTSET" else [0] * (2 * spatial)
        return pads[:spatial], pads[spatial:]
    before, after = [], []
    for n, k, s, d in zip(x.shape[2:], kernel, strides, dilations, strict=True):
        whole = max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
        small, large = whole // 2, whole - whole // 2
        before.append(small if auto_pad == "SAME_UPPER" else large)
        after.append(large if auto_pad == "SAME_UPPER" else small)
    return before, after


def _bordered(x: Tensor, before: Sequence[int], after: Sequence[int], fill: float) -> Tensor:
    pads = [n for pair in zip(reversed(before), reversed(after), strict=True) for n in pair]
    return functional.pad(x, pads, value=fill) if any(pads) else x


def _least(dtype: torch.dtype) -> float:
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


@operator("Conv")
def _conv(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    spatial = x.dim() - 2
    strides, dilations = list(strides or [1] * spatial), list(dilations or [1] * spatial)
    before, after = _borders(x, w.shape[2:], strides, dilations, pads, auto_pad)
    if before != after:
        x, before = _bordered(x, before, after, 0.0), [0] * spatial
    if spatial not in (1, 2):
        raise UnsupportedProgram(
            f"Conv supports 1-D and 2-D inputs; this one has {spatial} spatial dimensions."
        )
    convolve: Any = functional.conv1d if spatial == 1 else functional.conv2d
    result: Tensor = convolve(x, w, bias, strides, before, dilations, group)
    return result


@operator("MaxPool")
def _max_pool(
    x: Tensor,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    spatial = len(kernel_shape)
    strides, dilations = list(strides or [1] * spatial), list(dilations or [1] * spatial)
    before, after = _borders(x, kernel_shape, strides, dilations, pads, auto_pad)
    if spatial != 2:
        raise UnsupportedProgram(
            f"MaxPool supports 2-D inputs; this one has {spatial} spatial dimensions."
        )
    if before != after or any(2 * b > k for b, k in zip(before, kernel_shape, strict=True)):
        x, before = _bordered(x, before, after, _least(x.dtype)), [0] * spatial
    found: Tensor = functional.max_pool2d(
        x, list(kernel_shape), strides, before, dilations, bool(ceil_mode)
    )
    return found


@operator("AveragePool")
def _average_pool(
    x: Tensor,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    spatial = len(kernel_shape)
    strides, dilations = list(strides or [1] * spatial), list(dilations or [1] * spatial)
    if spatial != 2 or ceil_mode:
        raise UnsupportedProgram("AveragePool supports 2-D inputs without ceil_mode.")
    before, after = _borders(x, kernel_shape, strides, dilations, pads, auto_pad)
    ones = torch.ones(x.shape[1], 1, *kernel_shape, dtype=x.dtype)

    def sums(images: Tensor) -> Tensor:
        images = _bordered(images, before, after, 0.0)
        return functional.conv2d(images, ones, None, strides, 0, dilations, x.shape[1])

    if count_include_pad or not any([*before, *after]):
        count = kernel_shape[0] * kernel_shape[1]
        return sums(x) / count
    return sums(x) / sums(torch.ones_like(x))


@operator("GlobalAveragePool")
def _global_average(x: Tensor) -> Tensor:
    return x.mean(list(range(2, x.dim())), True)


@operator("GlobalMaxPool")
def _global_maximum(x: Tensor) -> Tensor:
    return x.amax(list(range(2, x.dim())), True)
