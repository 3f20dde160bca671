"""A case of each operator of the core ATen set, on two matrices of 4 x 6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
Function = Callable[[Tensor, Tensor], Any]


def _image(x: Tensor) -> Tensor:
    return x.reshape(1, 2, 3, 4)


def _volume(x: Tensor) -> Tensor:
    return x.reshape(1, 2, 3, 2, 2)


def _integers(x: Tensor) -> Tensor:
    return (10 * x).to(torch.int64)


def _rows(x: Tensor) -> Tensor:
    """Indices between 0 and 3."""
    return _integers(x).abs() % 4


_UNARY = (
    *("abs", "alias", "asinh", "atan", "ceil", "clone", "cos", "cosh", "erf", "exp", "expm1"),
    *("floor", "gelu", "hardtanh", "elu", "isnan", "isinf", "leaky_relu", "logical_not", "neg"),
    *("reciprocal", "relu", "round", "sigmoid", "sign", "sin", "sinh", "tan", "tanh", "trunc"),
    *("mean", "sum", "prod", "argmax", "argmin", "amax", "amin", "any", "max", "min"),
)
_POSITIVE = ("log", "log10", "log1p", "log2", "rsqrt", "sqrt")
_INSIDE = ("acos", "asin", "atanh")
_BINARY = (
    *("add", "atan2", "copy", "div", "eq", "fmod", "ge", "gt", "le", "logical_and", "logical_or"),
    *("logical_xor", "lt", "maximum", "minimum", "mul", "ne", "remainder", "sub"),
)
_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
CASES: dict[str, Function] = {
    **{name: (lambda x, y, n=name: getattr(aten, n)(x)) for name in _UNARY},
    **{name: (lambda x, y, n=name: getattr(aten, n)(x.abs() + 0.1)) for name in _POSITIVE},
    **{name: (lambda x, y, n=name: getattr(aten, n)(x.sin() * 0.9)) for name in _INSIDE},
    **{name: (lambda x, y, n=name: getattr(aten, n)(x, y)) for name in _BINARY},
    **{name: (lambda x, y, n=name: getattr(aten, n)(_integers(x), _integers(y))) for name in _BITS},
    "acosh": lambda x, y: aten.acosh(x.abs() + 1),
    "bitwise_not": lambda x, y: aten.bitwise_not(_integers(x)),
    "pow": lambda x, y: aten.pow(x.abs() + 0.1, y),
    "clamp": lambda x, y: aten.clamp(x, -0.5, 0.5),
    "where": lambda x, y: aten.where(x > y, x, y),
    "_to_copy": lambda x, y: aten._to_copy(x, dtype=torch.int32),
    "fill": lambda x, y: aten.fill(x, 2.5),
    "masked_scatter": lambda x, y: aten.masked_scatter(x, y > 0, y),
    # made of numbers
    "arange": lambda x, y: x[0] + aten.arange(6),
    "full": lambda x, y: x + aten.full([4, 6], 2.0),
    "full_like": lambda x, y: aten.full_like(x, 3),
    "scalar_tensor": lambda x, y: x * aten.scalar_tensor(2.0),
    "empty": lambda x, y: aten.copy(aten.empty([4, 6]), x),
    "empty_strided": lambda x, y: aten.copy(aten.empty_strided([4, 6], [6, 1]), x),
    # views
    "as_strided": lambda x, y: aten.as_strided(x, [3, 2], [6, 2], 1),
    "cat": lambda x, y: aten.cat([x, y[:, :2]], 1),
    "diagonal": lambda x, y: aten.diagonal(x, 1),
    "expand": lambda x, y: aten.expand(x[:, None], [4, 3, 6]).sum(1),
    "flip": lambda x, y: aten.flip(x, [0, 1]),
    "permute": lambda x, y: aten.permute(_image(x), [3, 1, 0, 2]),
    "repeat": lambda x, y: aten.repeat(x, [2, 1, 2]),
    "select": lambda x, y: aten.select(x, 1, -2),
    "select_scatter": lambda x, y: aten.select_scatter(x, y[0], 0, 2),
    "slice": lambda x, y: aten.slice(x, 1, 1, 6, 2),
    "slice_scatter": lambda x, y: aten.slice_scatter(x, y[:, :2], 1, 1, 5, 2),
    "split_with_sizes": lambda x, y: list(aten.split_with_sizes(x, [1, 2, 3], 1)),
    "squeeze": lambda x, y: aten.squeeze(_image(x), [0]),
    "unsqueeze": lambda x, y: aten.unsqueeze(x, 1),
    "resize_": lambda x, y: aten.resize_(x.clone(), [3]),
    "view": lambda x, y: aten.view(x, [8, 3]),
    "constant_pad_nd": lambda x, y: aten.constant_pad_nd(x, [1, -1, 0, 2], 0.5),
    "reflection_pad1d": lambda x, y: aten.reflection_pad1d(x, [2, 1]),
    "reflection_pad2d": lambda x, y: aten.reflection_pad2d(_image(x), [1, 2, 0, 1]),
    "reflection_pad3d": lambda x, y: aten.reflection_pad3d(_volume(x), [1, 0, 1, 1, 2, 0]),
    "replication_pad2d": lambda x, y: aten.replication_pad2d(_image(x), [1, 2, 0, 1]),
    "replication_pad3d": lambda x, y: aten.replication_pad3d(_volume(x), [1, 0, 1, 1, 2, 0]),
    "col2im": lambda x, y: aten.col2im(x.reshape(1, 4, 6), [3, 4], [2, 2], [1, 1], [0, 0], [1, 1]),
    # reductions and products
    "var": lambda x, y: aten.var(x, [1], correction=1),
    "addmm": lambda x, y: aten.addmm(x[:, :4], x, y.t(), beta=2, alpha=3),
    "mm": lambda x, y: aten.mm(x, y.t()),
    "bmm": lambda x, y: aten.bmm(_image(x)[0], _image(y)[0].transpose(1, 2)),
    "_softmax": lambda x, y: aten._softmax(x, 1, False),
    "_log_softmax": lambda x, y: aten._log_softmax(x, 0, False),
    "cumsum": lambda x, y: aten.cumsum(x, 1),
    "sort": lambda x, y: aten.sort(x, 0, True),
    "topk": lambda x, y: aten.topk(x, 3, 1),
    "_cdist_forward": lambda x, y: aten._cdist_forward(x, y, 3.0, None),
    "_pdist_forward": lambda x, y: aten._pdist_forward(x, 2.0),
    "_fft_r2c": lambda x, y: aten._fft_r2c(x, [0, 1], 1, True).abs(),
    "_fft_c2r": lambda x, y: aten._fft_c2r(torch.complex(x, y), [0, 1], 2, 10),
    # indices
    "embedding": lambda x, y: aten.embedding(x, _rows(y)),
    "embedding_dense_backward": lambda x, y: aten.embedding_dense_backward(
        x, _rows(y)[:, 0], 4, -1, False
    ),
    "_embedding_bag": lambda x, y: aten._embedding_bag(
        x, _rows(y).reshape(-1), torch.tensor([0, 5, 9]), False, 1
    )[0],
    "gather": lambda x, y: aten.gather(x, 0, _rows(y)),
    "index": lambda x, y: aten.index(x, [_rows(y)[0], _rows(y)[1]]),
    "index_put": lambda x, y: aten.index_put(x, [_rows(y)[0]], y[0], True),
    "index_select": lambda x, y: aten.index_select(x, 1, _rows(y)[0]),
    "scatter": lambda x, y: aten.scatter(x, 0, _rows(y)[:2], y),
    "scatter_add": lambda x, y: aten.scatter_add(x, 1, _rows(y), y),
    "scatter_reduce": lambda x, y: [
        aten.scatter_reduce(x, 0, _rows(y), y, how, include_self=own)
        for how in ("sum", "mean", "amax", "amin")
        for own in (True, False)
    ],
    # windows
    "convolution": lambda x, y: aten.convolution(
        _image(x), y.reshape(2, 2, 2, 3), None, [1, 1], [0, 1], [1, 1], False, [0, 0], 1
    ),
    "convolution_backward": lambda x, y: list(
        aten.convolution_backward(
            _image(x)[:, :, :2],
            _image(x),
            y.reshape(2, 2, 2, 3),
            [2],
            [1, 1],
            [0, 1],
            [1, 1],
            False,
            [0, 0],
            1,
            [True, True, True],
        )
    ),
    "_adaptive_avg_pool2d": lambda x, y: aten._adaptive_avg_pool2d(_image(x), [2, 3]),
    "_adaptive_avg_pool2d_backward": lambda x, y: aten._adaptive_avg_pool2d_backward(
        _image(y)[:, :, :2, :3], _image(x)
    ),
    "_adaptive_avg_pool3d": lambda x, y: aten._adaptive_avg_pool3d(_volume(x), [2, 1, 2]),
    "adaptive_avg_pool1d": lambda x, y: aten.adaptive_avg_pool1d(x[None], [4]),
    "avg_pool1d": lambda x, y: aten.avg_pool1d(x[None], [3], [2], [1], True),
    "avg_pool2d": lambda x, y: aten.avg_pool2d(_image(x), [2, 3], [2, 2], [1, 1], True, False),
    "avg_pool2d_backward": lambda x, y: aten.avg_pool2d_backward(
        _image(y)[:, :, :2, :2], _image(x), [2, 2], [2, 2], [0, 0], True, True, None
    ),
    "avg_pool3d": lambda x, y: aten.avg_pool3d(_volume(x), [2, 2, 1], [1, 1, 1], [1, 0, 0]),
    "max_pool2d_with_indices": lambda x, y: list(
        aten.max_pool2d_with_indices(_image(x), [2, 2], [1, 2], [1, 1])
    ),
    "max_pool2d_with_indices_backward": lambda x, y: aten.max_pool2d_with_indices_backward(
        _image(y)[:, :, :2, :2],
        _image(x),
        [2, 3],
        [1, 1],
        [0, 0],
        [1, 1],
        False,
        aten.max_pool2d_with_indices(_image(x), [2, 3], [1, 1])[1],
    ),
    "max_pool3d_with_indices": lambda x, y: list(
        aten.max_pool3d_with_indices(_volume(x), [2, 1, 2], [1, 1, 1])
    ),
    "grid_sampler_2d": lambda x, y: aten.grid_sampler_2d(
        _image(x), y.reshape(1, 3, 4, 2).sin(), 0, 0, False
    ),
    "upsample_bilinear2d": lambda x, y: aten.upsample_bilinear2d(_image(x), [5, 7], False),
    "upsample_nearest2d": lambda x, y: aten.upsample_nearest2d(_image(x), [5, 8]),
    # norms
    "native_layer_norm": lambda x, y: aten.native_layer_norm(x, [6], y[0], y[1], 1e-5)[0],
    "native_layer_norm_backward": lambda x, y: list(
        aten.native_layer_norm_backward(
            y, x, [6], *aten.native_layer_norm(x, [6], None, None, 1e-5)[1:], y[0], y[1], [True] * 3
        )
    ),
    "native_group_norm": lambda x, y: aten.native_group_norm(x, y[0], y[1], 4, 6, 1, 2, 1e-5)[0],
    "native_group_norm_backward": lambda x, y: list(
        aten.native_group_norm_backward(
            y,
            x,
            *aten.native_group_norm(x, None, None, 4, 6, 1, 2, 1e-5)[1:],
            y[0],
            4,
            6,
            1,
            2,
            [True] * 3,
        )
    ),
    "_native_batch_norm_legit": lambda x, y: aten._native_batch_norm_legit(
        x, y[0], y[1], True, 0.1, 1e-5
    )[0],
    "_native_batch_norm_legit_no_training": lambda x, y: aten._native_batch_norm_legit_no_training(
        x, y[0], y[1], x[0], y[2].abs(), 0.1, 1e-5
    )[0],
}
CASES["_local_scalar_dense"] = lambda x, y: y * x[0, 0].item()
DRAWN = ("native_dropout", "rand", "randn")
"""Operators that draw numbers, which are not those of torch; `test_random` says what they are."""
REFUSED: dict[str, tuple[str, Function]] = {
    "nonzero": ("the shape depends on values", lambda x, y: aten.nonzero(x > 0)),
    "randperm": ("random orders are not drawn", lambda x, y: x[torch.randperm(4)]),
}
"""Operators that are refused, and why."""
SIZES = ("sym_is_contiguous", "sym_numel", "sym_size", "sym_storage_offset", "sym_stride")
"""Operators of sizes that are symbols; sizes are numbers while a program is traced."""


def core_operators() -> list[str]:
    """Names of all operators of the core ATen set."""
    found = set()
    for full in torch._C._dispatch_get_all_op_names():
        space, _, rest = full.partition("::")
        name, _, overload = rest.partition(".")
        packet = getattr(aten, name, None) if space == "aten" else None
        operator = getattr(packet, overload or "default", None)
        if torch.Tag.core in getattr(operator, "tags", ()):
            found.add(name)
    return sorted(found)
