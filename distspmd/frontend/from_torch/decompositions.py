"""Operators of ATen in terms of other operators, so that few remain to be covered."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._library.simple_registry import singleton
from torch.utils._python_dispatch import _disable_current_modes

from distspmd.frontend.from_torch import layers, lookups, small, windows
from distspmd.frontend.from_torch.fitting_numbers import checked
from distspmd.frontend.from_torch.pooling import DECOMPOSITIONS

aten = torch.ops.aten

_MORE = [
    *(aten.native_layer_norm, aten.native_layer_norm_backward),
    *(aten._softmax, aten._softmax_backward_data),
    *(aten._log_softmax, aten._log_softmax_backward_data),
    *(aten.gelu, aten.gelu_backward, aten.threshold_backward, aten.hardtanh_backward),
    *(aten.nll_loss_forward, aten.nll_loss_backward, aten.mse_loss, aten.mse_loss_backward),
    *(aten._native_batch_norm_legit, aten._native_batch_norm_legit_functional),
    *(
        aten.native_batch_norm,
        aten.native_batch_norm_backward,
        aten._native_batch_norm_legit_no_training,
    ),
    *(aten.addcmul, aten.addcdiv, aten.lerp, aten.sigmoid_backward, aten.tanh_backward),
    *(aten.silu, aten.silu_backward, aten.elu, aten.elu_backward, aten.leaky_relu),
    *(aten.leaky_relu_backward, aten.softplus, aten.softplus_backward, aten.huber_loss),
    *(aten.native_group_norm, aten.native_group_norm_backward, aten.rsub, aten.clamp_min),
    *(aten.smooth_l1_loss, aten.smooth_l1_loss_backward, aten.binary_cross_entropy),
    *(aten.masked_fill, aten.baddbmm, aten.addbmm, aten.norm, aten.linalg_vector_norm),
    *(
        aten.slice_backward,
        aten.select_backward,
        aten.std,
        aten.grid_sampler_2d,
        aten.zeros_like,
        aten.ones_like,
    ),
]
_KEPT = (aten.embedding_dense_backward,)


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """The table for the tracer."""
    table = dict(core_aten_decompositions())
    table.update(get_decompositions(_MORE))
    for packet in _KEPT:
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    table.update(DECOMPOSITIONS)
    for more in (lookups, layers, small, windows):
        table.update(more.DECOMPOSITIONS)
    table[aten.var_mean.correction] = _var_mean
    table[aten.var.correction] = lambda *a, **k: _var_mean(*a, **k)[0]
    table[aten.mean.dim] = _mean
    table[aten._safe_softmax.default] = _safe_softmax
    table[aten.roll.default] = _roll
    table[aten.fft_fftfreq.default] = _frequencies
    table[aten.fft_rfftfreq.default] = _frequencies_of_real
    table[aten.hardtanh.default] = lambda x, low=-1.0, high=1.0: aten.clamp(x, low, high)
    table[aten.native_group_norm.default] = _group_norm
    table[aten.mean.default] = lambda x, **k: _mean(x, None, **k)
    table[aten.view.default] = _view
    table[CHECK] = lambda *_, **__: None
    return {operator: checked(operator, decomposition) for operator, decomposition in table.items()}


CHECK = aten._linalg_check_errors.default
"""Looks at what LAPACK reports, and raises an error; in a program, results do so themselves."""


@contextlib.contextmanager
def matrices_are_not_checked() -> Iterator[None]:
    """Torch keeps this operator in its order among others, which pure graphs do not have."""
    known = singleton.find(CHECK.name()).effect
    before = known._effect
    known._effect = None
    try:
        yield
    finally:
        known._effect = before


def _view(x: torch.Tensor, shape: Sequence[int]) -> Any:
    """A copy where there is no view: what is decomposed may lie otherwise in memory."""
    if x.is_contiguous():
        return NotImplemented
    with _disable_current_modes():
        same = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
        with contextlib.suppress(RuntimeError):
            same.view(shape)
            return NotImplemented
    return x.clone(memory_format=torch.contiguous_format).view(shape)


def _dims(x: torch.Tensor, dims: Sequence[int] | None) -> list[int]:
    return [d % x.dim() for d in dims] if dims else list(range(x.dim()))


def _mean(
    x: torch.Tensor,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    dims = _dims(x, dim)
    total = aten.sum.dim_IntList(x, dims, keepdim, dtype=dtype)
    mean: torch.Tensor = total / math.prod(x.shape[d] for d in dims)
    return mean


def _group_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    batch: int,
    channels: int,
    places: int,
    groups: int,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """As torch's, without its concern for the order in memory."""
    grouped = x.reshape(batch, groups, channels // groups * places)
    variance, mean = _var_mean(grouped, [2], correction=0, keepdim=True)
    scale = aten.rsqrt(variance + eps)
    result = ((grouped - mean) * scale).reshape(x.shape)
    each = (1, channels, *(1 for _ in x.shape[2:]))
    if weight is not None:
        result = result * weight.reshape(each)
    if bias is not None:
        result = result + bias.reshape(each)
    return result, mean.squeeze(2), scale.squeeze(2)


def _roll(x: torch.Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> torch.Tensor:
    """The end in front of the rest."""
    if not dims:
        return _roll(x.reshape(-1), shifts, [0]).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        place = -shift % max(1, x.shape[dim])
        if place:
            x = torch.cat(
                [x.narrow(dim, place, x.shape[dim] - place), x.narrow(dim, 0, place)], dim
            )
    return x


def _frequencies(n: int, d: float = 1.0, **settings: Any) -> torch.Tensor:
    """Of the elements of a Fourier transform: from zero up, and then from the least one."""
    settings.setdefault("dtype", torch.get_default_dtype())
    places = torch.arange(n, **_known(settings))
    found: torch.Tensor = torch.where(places < (n + 1) // 2, places, places - n) / (n * d)
    return found


def _frequencies_of_real(n: int, d: float = 1.0, **settings: Any) -> torch.Tensor:
    settings.setdefault("dtype", torch.get_default_dtype())
    found: torch.Tensor = torch.arange(n // 2 + 1, **_known(settings)) / (n * d)
    return found


def _known(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {"dtype": settings["dtype"] or torch.get_default_dtype()}


def _safe_softmax(x: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Zero where nothing is let through: there the largest is no number to subtract."""
    x = x if dtype is None else x.to(dtype)
    highest = aten.amax(x, [dim], True)
    powers = aten.exp(x - highest)
    shares = powers / aten.sum.dim_IntList(powers, [dim], True)
    nothing = highest == -math.inf
    result: torch.Tensor = aten.where(nothing, aten.scalar_tensor(0.0, dtype=x.dtype), shares)
    return result


def _var_mean(
    x: torch.Tensor,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = 1,
    keepdim: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    dims = _dims(x, dim)
    count = math.prod(x.shape[d] for d in dims)
    mean = _mean(x, dims, True)
    square = (x - mean) * (x - mean)
    over = max(0.0, count - (1 if correction is None else correction))
    variance = aten.sum.dim_IntList(square, dims, keepdim) / over
    return variance, mean if keepdim else aten.squeeze.dims(mean, dims)
