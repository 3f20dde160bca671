"""Reductions, normalisations, and products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from distspmd.frontend.from_onnx.registry import OPERATORS, Meaning, operator

_REDUCTIONS: dict[str, Callable[[Tensor, list[int], bool], Tensor]] = {
    "ReduceSum": lambda x, d, k: x.sum(d, k, dtype=x.dtype),
    "ReduceMean": lambda x, d, k: x.mean(d, k),
    "ReduceMax": lambda x, d, k: x.amax(d, k),
    "ReduceMin": lambda x, d, k: x.amin(d, k),
    "ReduceL1": lambda x, d, k: x.abs().sum(d, k, dtype=x.dtype),
    "ReduceL2": lambda x, d, k: (x * x).sum(d, k, dtype=x.dtype).sqrt(),
    "ReduceLogSum": lambda x, d, k: x.sum(d, k).log(),
    "ReduceLogSumExp": lambda x, d, k: torch.logsumexp(x, d, k),
    "ReduceSumSquare": lambda x, d, k: (x * x).sum(d, k, dtype=x.dtype),
}


def _reduction(function: Callable[[Tensor, list[int], bool], Tensor]) -> Meaning:
    def reduce(
        x: Tensor,
        axes: Sequence[int] | None = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Tensor:
        dims = [a % x.dim() for a in axes or ()]
        if not dims and noop_with_empty_axes:
            return function(x.unsqueeze(0), [0], False)
        return function(x, dims or list(range(x.dim())), bool(keepdims))

    return Meaning(reduce, ("axes",))


OPERATORS.update({name: _reduction(function) for name, function in _REDUCTIONS.items()})


@operator("Softmax")
def _softmax(x: Tensor, axis: int = -1) -> Tensor:
    return functional.softmax(x, axis)


@operator("LogSoftmax")
def _log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    return functional.log_softmax(x, axis)


def _place(x: Tensor, best: Tensor, axis: int, keepdims: int, select_last_index: int) -> Tensor:
    """The index of the first, or last, element that is the best one; a NaN is better than all."""
    found = (x == best) | (x != x)
    length = x.shape[axis]
    places = torch.arange(length).reshape(length, *(1,) * (x.dim() - 1 - axis % x.dim()))
    if select_last_index:
        return torch.where(found, places, -1).amax(axis, bool(keepdims))
    return torch.where(found, places, length).amin(axis, bool(keepdims))


@operator("ArgMax")
def _arg_max(x: Tensor, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _place(x, x.amax(axis, True), axis, keepdims, select_last_index)


@operator("ArgMin")
def _arg_min(x: Tensor, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _place(x, x.amin(axis, True), axis, keepdims, select_last_index)


@operator("LpNormalization")
def _lp_normalization(x: Tensor, axis: int = -1, p: int = 2) -> Tensor:
    norm = x.abs().sum(axis, True) if p == 1 else (x * x).sum(axis, True).sqrt()
    return torch.where(norm == 0, 0.0, x / norm)


@operator("LayerNormalization")
def _layer_norm(
    x: Tensor,
    scale: Tensor,
    bias: Tensor | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    outputs: int = 1,
) -> Any:
    dims = list(range(axis % x.dim(), x.dim()))
    mean = x.mean(dims, True)
    centred = x - mean
    inverse = (centred * centred).mean(dims, True).add(epsilon).rsqrt()
    whole = centred * inverse * scale
    return (whole if bias is None else whole + bias, mean, inverse)[:outputs]


@operator("RMSNormalization")
def _rms_norm(
    x: Tensor, scale: Tensor, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    dims = list(range(axis % x.dim(), x.dim()))
    return x * (x * x).mean(dims, True).add(epsilon).rsqrt() * scale


def _along_channels(tensor: Tensor, rank: int) -> Tensor:
    return tensor.reshape(1, -1, *(1,) * (rank - 2))


@operator("BatchNormalization")
def _batch_norm(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    outputs: int = 1,
) -> Any:
    running = mean, variance
    if training_mode:
        dims = [d for d in range(x.dim()) if d != 1]
        mean, variance = x.mean(dims), x.var(dims, correction=0)
    factor = scale * (variance + epsilon).rsqrt()
    rank = x.dim()
    found = (x - _along_channels(mean, rank)) * _along_channels(factor, rank)
    found = found + _along_channels(bias, rank)
    pairs = zip(running, (mean, variance), strict=True)
    after = [momentum * old + (1 - momentum) * new for old, new in pairs]
    return (found, *after)[:outputs]


@operator("InstanceNormalization")
def _instance_norm(x: Tensor, scale: Tensor, bias: Tensor, epsilon: float = 1e-5) -> Tensor:
    dims = list(range(2, x.dim()))
    centred = x - x.mean(dims, True)
    inverse = (centred * centred).mean(dims, True).add(epsilon).rsqrt()
    rank = x.dim()
    return centred * inverse * _along_channels(scale, rank) + _along_channels(bias, rank)


@operator("MatMul")
def _matmul(a: Tensor, b: Tensor) -> Tensor:
    return torch.matmul(a, b)


@operator("Gemm")
def _gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803
    transB: int = 0,  # noqa: N803
) -> Tensor:
    a, b = a.t() if transA else a, b.t() if transB else b
    if c is not None and alpha == beta == 1.0 and c.dim() == 1:
        return torch.addmm(c, a, b)
    product = a @ b
    product = product if alpha == 1.0 else product * alpha
    return product if c is None else product + (c if beta == 1.0 else c * beta)


@operator("Einsum")
def _einsum(*inputs: Tensor, equation: str) -> Tensor:
    return torch.einsum(equation, *inputs)
