"""Transposed and one-dimensional convolutions, and average pooling, as convolutions.

Each function is a decomposition for the tracer; it answers NotImplemented if the operator is
covered as it is, or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from distspmd.frontend.from_torch import resampling

aten = torch.ops.aten


def _plane(values: Sequence[int], fill: int) -> list[int]:
    """Settings of one dimension as those of two, of which the first has one element."""
    return [fill, *values]


def convolution(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """In one dimension that of images of height 1; transposed the gradient of another one."""
    if x.dim() == 3:
        two = (_plane(stride, 1), _plane(padding, 0), _plane(dilation, 1))
        flat = (x.unsqueeze(2), w.unsqueeze(2), bias)
        return aten.convolution(*flat, *two, transposed, _plane(output_padding, 0), groups).squeeze(
            2
        )
    if not transposed or x.dim() not in (4, 5):
        return NotImplemented
    count = x.dim() - 2
    lengths = [
        (x.shape[2 + k] - 1) * stride[k]
        - 2 * padding[k]
        + dilation[k] * (w.shape[2 + k] - 1)
        + output_padding[k]
        + 1
        for k in range(count)
    ]
    result = x.new_zeros((x.shape[0], w.shape[1] * groups, *lengths))
    settings = (stride, padding, dilation, False, [0] * count, groups)
    made, _, _ = aten.convolution_backward(x, result, w, None, *settings, [True, False, False])
    return made if bias is None else made + bias.view(1, -1, *[1] * count)


def convolution_backward(
    g: Tensor,
    x: Tensor,
    w: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    mask: Sequence[bool],
) -> Any:
    """The gradients of :func:`convolution`."""
    if x.dim() == 3:
        two = (_plane(stride, 1), _plane(padding, 0), _plane(dilation, 1))
        flat = (g.unsqueeze(2), x.unsqueeze(2), w.unsqueeze(2), bias_sizes)
        settings = (*two, transposed, _plane(output_padding, 0), groups, mask)
        to_x, to_w, to_bias = aten.convolution_backward(*flat, *settings)
        return (
            to_x.squeeze(2) if mask[0] else None,
            to_w.squeeze(2) if mask[1] else None,
            to_bias,
        )
    if not transposed or x.dim() not in (4, 5):
        return NotImplemented
    count = x.dim() - 2
    plain = (stride, padding, dilation, False, [0] * count, groups)
    to_x = to_w = None
    if mask[0]:
        to_x = aten.convolution(g, w, None, *plain)
        for k in range(2, 2 + count):  # output_padding may have room for a window more
            to_x = to_x if to_x.shape[k] == x.shape[k] else to_x.narrow(k, 0, x.shape[k])
    if mask[1]:
        _, to_w, _ = aten.convolution_backward(x, g, w, None, *plain, [False, True, False])
    return to_x, to_w, g.sum((0, *range(2, 2 + count))) if mask[2] else None


def _each(count: int, *settings: Any) -> list[list[int]]:
    """Settings as a number for each dimension."""
    found = [[s] if isinstance(s, int) else list(s) for s in settings]
    return [values * (count if len(values) == 1 else 1) for values in found]


def _windows(
    x: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool
) -> tuple[list[int], list[int], list[int]]:
    """Sizes and steps of windows, and the border on both sides in torch's order of `pad`.

    The last windows of `ceil_mode` begin inside of the image or its border, and reach further.
    """
    count = x.dim() - 2
    sizes, steps, border = _each(count, kernel_size, stride or kernel_size, padding)
    pads: list[int] = []
    for n, size, step, before in zip(x.shape[2:], sizes, steps, border, strict=True):
        over = n + 2 * before - size
        last = -(-over // step) if ceil_mode else over // step
        last -= last * step >= n + before
        pads = [before, before + max(0, last * step - over), *pads]
    return sizes, steps, pads


def _counts(
    x: Tensor,
    windows: tuple[list[int], list[int], list[int]],
    padding: Any,
    included: bool,
    divisor: int | None,
) -> Tensor | int:
    """What sums of windows are divided by: for each window the number of its elements."""
    sizes, steps, pads = windows
    (border,) = _each(x.dim() - 2, padding)
    plain = [b for before in reversed(border) for b in (before, before)]
    if divisor or (pads == plain and (included or not any(pads))):
        return divisor or math.prod(sizes)
    image = x.new_ones((1, 1, *x.shape[2:]))
    if included:  # a border counts, what is beyond it does not
        image = aten.constant_pad_nd(image, plain, 1.0)
        pads = [both - own for both, own in zip(pads, plain, strict=True)]
    image = aten.constant_pad_nd(image, pads, 0.0)
    none = [0] * len(sizes)
    counts: Tensor = aten.convolution(
        image, x.new_ones((1, 1, *sizes)), None, steps, none, [1] * len(sizes), False, none, 1
    )
    return counts


def avg_pool(
    x: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    of_volumes: bool = False,
) -> Any:
    """Means of windows: a convolution of each channel with ones."""
    if x.dim() == (4 if of_volumes else 3):
        one = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return avg_pool(x.unsqueeze(0), *one, of_volumes=of_volumes).squeeze(0)
    windows = _windows(x, kernel_size, stride, padding, ceil_mode)
    sizes, steps, pads = windows
    none = [0] * len(sizes)
    flat = aten.constant_pad_nd(x.reshape(-1, 1, *x.shape[2:]), pads, 0.0)
    ones, unit = x.new_ones((1, 1, *sizes)), [1] * len(sizes)
    sums = aten.convolution(flat, ones, None, steps, none, unit, False, none, 1)
    means = sums / _counts(x, windows, padding, count_include_pad, divisor_override)
    return means.reshape(*x.shape[:2], *means.shape[2:])


def avg_pool_backward(
    g: Tensor,
    x: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    *,
    of_volumes: bool = False,
) -> Any:
    """The gradient of :func:`avg_pool`."""
    if x.dim() == (4 if of_volumes else 3):
        one: Any = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        pair = g.unsqueeze(0), x.unsqueeze(0)
        return avg_pool_backward(*pair, *one, of_volumes=of_volumes).squeeze(0)
    windows = _windows(x, kernel_size, stride, padding, ceil_mode)
    sizes, steps, pads = windows
    none = [0] * len(sizes)
    shares = g.reshape(-1, 1, *g.shape[2:])
    shares = shares / _counts(x, windows, padding, count_include_pad, divisor_override)
    flat = aten.constant_pad_nd(x.reshape(-1, 1, *x.shape[2:]), pads, 0.0)
    plain = (steps, none, [1] * len(sizes), False, none, 1)
    ones = x.new_ones((1, 1, *sizes))
    to_x, _, _ = aten.convolution_backward(shares, flat, ones, None, *plain, [True, False, False])
    return aten.constant_pad_nd(to_x, [-n for n in pads], 0.0).reshape(x.shape)


def avg_pool3d(*args: Any, **kwargs: Any) -> Any:
    """:func:`avg_pool` of volumes."""
    return avg_pool(*args, **kwargs, of_volumes=True)


def avg_pool3d_backward(*args: Any, **kwargs: Any) -> Any:
    """:func:`avg_pool_backward` of volumes."""
    return avg_pool_backward(*args, **kwargs, of_volumes=True)


def _even_windows(x: Tensor, sizes: Sequence[int]) -> list[int] | None:
    """Sizes of windows that part an image evenly into so many; None: there are none."""
    image = x.shape[-2:]
    if x.dim() != 4 or any(n % m for n, m in zip(image, sizes, strict=True)):
        return None
    return [n // m for n, m in zip(image, sizes, strict=True)]


def adaptive_avg_pool2d(x: Tensor, output_size: Any) -> Any:
    """Means of windows that part the image evenly."""
    (sizes,) = _each(2, output_size)
    windows = _even_windows(x, sizes)
    if windows is None:
        return resampling.adaptive_avg_pool2d(x, sizes)
    (h, w), (k, m) = sizes, windows
    return x.reshape(*x.shape[:2], h, k, w, m).mean((3, 5))


def adaptive_avg_pool2d_backward(g: Tensor, x: Tensor) -> Any:
    """The gradient of :func:`adaptive_avg_pool2d`."""
    windows = _even_windows(x, g.shape[2:])
    if windows is None:
        return resampling.adaptive_avg_pool2d_backward(g, x)
    return _repeated(g / math.prod(windows), windows)


def _repeated(x: Tensor, times: Sequence[int]) -> Tensor:
    """Each pixel as many times."""
    (n, c, h, w), (k, m) = x.shape, times
    repeated = x.reshape(n, c, h, 1, w, 1).expand(n, c, h, k, w, m)
    return repeated.reshape(n, c, h * k, w * m)


def upsample_nearest2d(
    x: Tensor, output_size: Sequence[int], scales_h: Any = None, scales_w: Any = None
) -> Any:
    """Each pixel some number of times; the same for all, if it can be."""
    times = _even_windows(x.new_empty((1, 1, *output_size)), x.shape[2:]) if x.dim() == 4 else None
    if times is None:
        return resampling.upsample_nearest2d(x, output_size, scales_h, scales_w)
    return _repeated(x, times)


def upsample_nearest2d_backward(
    g: Tensor,
    output_size: Any,
    input_size: Sequence[int],
    scales_h: Any = None,
    scales_w: Any = None,
) -> Any:
    """The gradient of :func:`upsample_nearest2d`."""
    times = _even_windows(g, input_size[2:])
    if times is None:
        scales = (scales_h, scales_w)
        return resampling.upsample_nearest2d_backward(g, output_size, input_size, *scales)
    (n, c, h, w), (k, m) = input_size, times
    return g.reshape(n, c, h, k, w, m).sum((3, 5))


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    **resampling.DECOMPOSITIONS,
    aten.convolution.default: convolution,
    aten.convolution_backward.default: convolution_backward,
    aten.avg_pool2d.default: avg_pool,
    aten.avg_pool2d_backward.default: avg_pool_backward,
    aten.avg_pool3d.default: avg_pool3d,
    aten.avg_pool3d_backward.default: avg_pool3d_backward,
    aten._adaptive_avg_pool2d.default: adaptive_avg_pool2d,
    aten._adaptive_avg_pool2d_backward.default: adaptive_avg_pool2d_backward,
    aten.upsample_nearest2d.default: upsample_nearest2d,
    aten.upsample_nearest2d_backward.default: upsample_nearest2d_backward,
}
