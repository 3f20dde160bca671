"""Operators beside torch: many small modules in one program, each with arguments of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import dace
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from distspmd import frontend
from distspmd.codegen.build import load_unlowered
from distspmd.execution.binding import binding_of

Function = Callable[[Tensor, Tensor], Tensor]


def grouped_and_sliced(x: Tensor) -> Tensor:
    return x.view(5, 2, 3).amax(2).sum(0) + (2 * x.view(5, 2, 3)).flatten(1)[:, 4:] * x[:, 1:3]


VIEWS: list[Function] = [
    lambda x, y: x[:, 1:5].sum(0),
    lambda x, y: x[:, 1::2].sum(1),
    lambda x, y: x[1:4, 2:] @ y[2:],
    lambda x, y: x.flip(1).sum(0),
    lambda x, y: x.flip(1) @ y,
    lambda x, y: x.flip(1).reshape(5, 2, 3).sum(1),
    lambda x, y: x[:, :2].sum() + x[:, 2:].sum(),
    lambda x, y: x.repeat(2, 3).view(2, 5, 18).sum(1),
    lambda x, y: x.unsqueeze(0).expand(3, 5, 6).sum(0),
    lambda x, y: functional.pad(x, (1, 2, 3, 0), value=2.0).amax(1),
    lambda x, y: functional.pad(x, (-1, 2)).sum(0),
    lambda x, y: functional.pad(x, (1, 1)) @ functional.pad(y, (0, 0, 1, 1)),
    lambda x, y: torch.cat([x[:, 4:], x[:, :1].flip(0), x[:, 1::3]], 1),
    lambda x, y: functional.pad(x[:, 1:].flip(1), (2, 1)),
    lambda x, y: functional.pad(x[2], (2, 1)) + functional.pad(y[1:, 2], (3, 1)),
    lambda x, y: torch.cat([p * k for k, p in enumerate(x.split([1, 3, 2], 1))], 1),
]
PLACES: list[Function] = [
    lambda x, y: x.exp().gather(1, y.long()[:5, :4].abs()),
    lambda x, y: x.gather(1, y.long()[:2, :3].abs()),
    lambda x, y: (2 * x).gather(0, y.long()[:1, :4].abs()),
    lambda x, y: y.t().gather(1, y.long()[:3, :2].abs()),
]
GROUPS: list[Function] = [
    lambda x, y: x.view(5, 2, 3).amax(2).sum() + x[:, 1:5].sum(0),
    lambda x, y: x.view(5, 2, 3).amax(2).sum(1) + x.view(5, 3, 2).amax(1).sum(1),
    lambda x, y: grouped_and_sliced(x.exp()),
    lambda x, y: x.reshape(3, 10).amax(1),
    lambda x, y: x.reshape(3, 10) @ torch.cat([y, y], 0)[:10],
    lambda x, y: x.t().reshape(3, 10).t() @ y[:3, :4].reshape(3, 4),
    lambda x, y: (2 * x.view(5, 2, 3)).flatten(1)[:, 4:] + x.reshape(15, 2)[5:10],
    lambda x, y: torch.cat([(2 * x.view(5, 2, 3)).flatten(1), y.t()[:5, :4]], 1),
    lambda x, y: functional.pad((x.view(5, 2, 3) + 1).flatten(1), (1, 1)),
    lambda x, y: (x.view(5, 2, 3).exp().flatten(1) + x.view(5, 3, 2).exp().flatten(1)).sum(0),
    lambda x, y: x.max(1)[0] + x.argmax(1) + x.min(1, keepdim=True)[1].sum(1),
    lambda x, y: x.argmin() + torch.where(x > 0, float("nan"), x).argmax(0),
    lambda x, y: (x > 0).to(torch.int64).argmax(1),
    lambda x, y: x.gather(1, (x[:3, :2] > 0).to(torch.int64)).sum(0),
    lambda x, y: x.gather(0, (y.t()[:1, :6] > 0).to(torch.int64)),
    lambda x, y: x.scatter_add(1, y.long()[:3, :2].abs(), y.exp()),
    lambda x, y: x.scatter_add(0, (y.t()[:1, :6] > 0).to(torch.int64), y.t()[:5, :6]),
    lambda x, y: x.scatter(1, x.argmin(1, keepdim=True), y[:5, :1]),
    lambda x, y: x.roll(2) + x.roll((1, -2), (0, 1)),
    lambda x, y: functional.max_pool2d(x[None, None], (2, 3), return_indices=True)[1],
    lambda x, y: functional.max_pool2d(y[None], 3, 1, 1, 2, return_indices=True)[1],
    lambda x, y: functional.max_pool2d(x[None] - torch.inf, 3, 2, 1, return_indices=True)[1],
    lambda x, y: x.slice_scatter(y.t()[:5, :2], 1, 1, 5, 2),
    lambda x, y: x.slice_scatter(y.t()[:5, :0], 1, 2, 2) + 1,
    lambda x, y: x.view(5, 2, 3).slice_scatter(y.t()[:5, :3].unsqueeze(1), 1, 1).sum(1),
]
DIVISIONS: list[Function] = [
    lambda x, y: x // y.t()[:5, :6],
    lambda x, y: torch.div(x, y.t()[:5, :6], rounding_mode="trunc"),
    lambda x, y: torch.remainder(x, y.t()[:5, :6]),
    lambda x, y: torch.fmod(x, y.t()[:5, :6]),
    lambda x, y: (4 * x).to(torch.int64) // -3,
    lambda x, y: (4 * x).to(torch.int32) % -3,
    lambda x, y: (4 * x).to(torch.int64).div(3, rounding_mode="trunc"),
    lambda x, y: (2 * x).round(),
    lambda x, y: (9 * x).to(torch.int32) << (40 * y.t()[:5, :6]).to(torch.int32),
    lambda x, y: (9 * x).to(torch.int32) >> (40 * y.t()[:5, :6]).to(torch.int32),
    lambda x, y: (9 * x).to(torch.int64) >> (40 * y.t()[:5, :6]).to(torch.int64),
]


def holed(x: Tensor) -> Tensor:
    """Some elements are no numbers."""
    return torch.where(x > 0.6, torch.nan, x)


def pooled(x: Tensor) -> tuple[Tensor, Tensor]:
    found, places = functional.max_pool2d(holed(x)[None, None], 3, 2, 1, return_indices=True)
    return found, places


NANS: list[Function] = [
    lambda x, y: holed(x).amax(1) + holed(x - 1).amin(1),
    lambda x, y: holed(x).amax() - holed(y).amin(0),
    lambda x, y: torch.maximum(holed(x), y[:5, :6]) - torch.minimum(y[:5, :6], holed(x)),
    lambda x, y: holed(x).clamp(-0.5, 0.5) + holed(x).clamp(min=0.1) * holed(x).clamp(max=0.2),
    lambda x, y: x.clamp(min=holed(y[:5, :6])).clamp(max=holed(y[1:, :6])),
    lambda x, y: x.clamp(min=torch.nan),
    lambda x, y: holed(x).relu() + functional.hardtanh(holed(x)) + functional.relu6(holed(x)),
    lambda x, y: holed(x - 1).softmax(1) + holed(x - 1).log_softmax(0),
    lambda x, y: pooled(x)[0],
    lambda x, y: pooled(x)[1],
    lambda x, y: holed(x).max(1)[0] + holed(x - 1).min(1)[0],
    lambda x, y: holed(x).max(1)[1] + holed(x).argmin(1),
]


def constants(x: Tensor) -> Tensor:
    x = x.clone()
    x[:, 1:3] = 0
    x[0] = torch.tensor([1.0, 2, 3, 4, 5, 6])
    x[x > 1] = -1.0
    return x


def replaced(x: Tensor, y: Tensor) -> Tensor:
    x = x.clone()
    x[y.long()[:4, 0].abs(), y.long()[:4, 1]] = y[2:, 2]
    return x


INDICES: list[Function] = [
    lambda x, y: x[y.long()[:, 0].abs()],
    lambda x, y: x[y.long()[:, 0].abs(), y.long()[:3, 1:2]],
    lambda x, y: x[:, y.long()[:2, :3]],
    lambda x, y: x.view(5, 2, 3)[y.long()[:4, 0], :, y.long()[:4, 1].abs()],
    lambda x, y: x.view(5, 2, 3)[:, :, torch.arange(2)],
    lambda x, y: x[torch.arange(5)[:, None], torch.arange(3) + 1],
    lambda x, y: x[torch.arange(5), y.long()[:5, 0]],
    lambda x, y: x[-torch.arange(1, 4)],
    lambda x, y: (x > 0)[y.long()[:, 0].abs()],
    lambda x, y: x.index_select(1, y.long()[0, :3].abs()),
    lambda x, y: x.index_add(0, y.long()[:4, 0].abs(), y[:4, :6]),
    lambda x, y: x.index_copy(0, torch.tensor([3, 0, 2]), y[:3, :6]),
    lambda x, y: x.index_fill(1, torch.tensor([3, 0, 2]), 2.5),
    lambda x, y: torch.index_put(x, (y.long()[:4, 0].abs(),), y[:4, :6], accumulate=True),
    lambda x, y: replaced(x, y),
    lambda x, y: constants(x),
    lambda x, y: x.scatter(1, y.long()[:4, :3].abs(), y[:5, :5]),
    lambda x, y: x.scatter(0, y.long()[:3, :4].abs(), 7.0),
    lambda x, y: x.scatter_reduce(1, y.long()[:4, :3].abs(), y[:5, :5], "sum"),
    lambda x, y: x.scatter_reduce(1, y.long()[:4, :3].abs(), y[:5, :5], "mean", include_self=False),
    lambda x, y: functional.embedding_bag(y.long()[:4, :3].abs(), x),
    lambda x, y: functional.embedding_bag(
        y.long()[:6, 0].abs(), x, torch.tensor([0, 2, 4]), mode="sum"
    ),
    lambda x, y: x.histc(4, -2, 2),
    lambda x, y: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])),
    lambda x, y: torch.searchsorted(y.sort(1)[0][:5], x, right=True),
    lambda x, y: x.as_strided((3, 4), (6, 2), 1),
    lambda x, y: x.t().as_strided((4, 2), (2, 3), 3),
    lambda x, y: x.unfold(1, 3, 2).sum(1) + x.diagonal(1)[:3].sum(),
    lambda x, y: x.repeat_interleave(2, 1),
]
ORDERS: list[Function] = [
    lambda x, y: x.cumsum(0) + (x > 0).cumsum(1),
    lambda x, y: x.view(5, 2, 3).cumprod(1),
    lambda x, y: holed(x).cummax(1)[0] + holed(x).cummin(0)[1],
    lambda x, y: x.round().cummax(0)[1] + x.cummin(1)[0],
    lambda x, y: holed(x).sort(0, descending=True)[0],
    lambda x, y: x.round().sort(stable=True, dim=1)[1],
    lambda x, y: x.t().argsort(0),
    lambda x, y: x.topk(2, 0)[0],
    lambda x, y: x.view(5, 2, 3).topk(2, largest=False)[1],
    lambda x, y: x.kthvalue(2, 0)[0] + x.quantile(0.3, 0),
    lambda x, y: x.prod(1) + x.prod(),
]
SIZES: list[Function] = [
    lambda x, y: functional.interpolate(x[None, None], (7, 9), mode="bilinear"),
    lambda x, y: functional.interpolate(
        x[None, None], scale_factor=1.7, mode="bilinear", align_corners=True
    ),
    lambda x, y: functional.interpolate(x[None, None], (7, 9), mode="bicubic"),
    lambda x, y: functional.interpolate(x[None], 9, mode="linear"),
    lambda x, y: functional.interpolate(x[None, None], (7, 4)),
    lambda x, y: functional.interpolate(x[None, None], (7, 4), mode="nearest-exact"),
    lambda x, y: functional.interpolate(x.view(1, 1, 5, 2, 3), (3, 4, 5), mode="trilinear"),
    lambda x, y: functional.adaptive_avg_pool2d(x[None, None], (3, 4)),
    lambda x, y: functional.adaptive_avg_pool3d(x.view(1, 1, 5, 2, 3), (2, 1, 2)),
]
FOURIER: list[Function] = [
    lambda x, y: torch.fft.rfft2(x, norm="ortho").abs(),
    lambda x, y: torch.fft.irfft(torch.fft.rfft(x) * 2, n=5),
    lambda x, y: torch.fft.irfft2(torch.fft.rfft2(y, norm="forward"), s=(6, 7)),
    lambda x, y: torch.fft.ifft(x, norm="ortho").imag + torch.fft.fft(x, n=9).real[:, :6],
    lambda x, y: torch.fft.fftshift(torch.fft.fft(x)).imag + torch.fft.fftfreq(6, 0.5),
    lambda x, y: torch.view_as_complex(x.view(5, 3, 2)) * torch.complex(y[:5, :3], y[:5, 3:6]),
    lambda x, y: torch.complex(x, y[:5, :6]).angle() + x.angle(),
    lambda x, y: torch.view_as_real(torch.polar(x.abs(), x).conj().resolve_conj()),
    lambda x, y: torch.fft.fft(x) @ torch.fft.fft(y[:, :6]).sgn(),
    lambda x, y: torch.fft.rfftfreq(6) + torch.fft.fft(x)[:, :4].exp().real,
]
SMALL: list[Function] = [
    lambda x, y: torch.addmv(x[:, 0], x, y[0, :6], beta=2) + x[:, 1],
    lambda x, y: torch.erfc(x) + torch.lgamma(y.t()[:5, :6].abs() + 1),
    lambda x, y: torch.fmax(holed(x), y[:5, :6]) + torch.fmin(y[:5, :6], holed(x)),
    lambda x, y: torch.copysign(x, y[:5, :6]) + torch.signbit(-0.0 * x),
    lambda x, y: torch.hypot(x, 0 * x) + torch.hypot(1e30 * x, y[:5, :6]) * 1e-30,
    lambda x, y: x.round(decimals=1) + x.ldexp(y.long()[:5, :6]),
    lambda x, y: holed(x).median(1, keepdim=True)[1],
    lambda x, y: x.median(0)[0] + y.median(),
    lambda x, y: x[torch.tril_indices(4, 3, 1)[0]].sum() + x[torch.triu_indices(5, 3)[1]],
    lambda x, y: x.diagonal_scatter(y[:5, 0]) + x.diagonal_scatter(y[:3, 1], -2),
    lambda x, y: x.repeat_interleave(torch.tensor([1, 0, 2, 1, 3]), 0, output_size=7),
    lambda x, y: (x - torch.where(x > 1, torch.inf, 0.0)).logcumsumexp(1),
]


class Many(nn.Module):
    """The results of all functions."""

    def __init__(self, functions: Sequence[Function]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        pairs = zip(self.functions, inputs[::2], inputs[1::2], strict=True)
        return tuple(function(x, y) for function, x, y in pairs)


@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize(
    "functions",
    [VIEWS, PLACES, GROUPS, DIVISIONS, NANS, INDICES, ORDERS, SIZES, FOURIER, SMALL],
    ids=[
        "views",
        "places",
        "groups",
        "divisions",
        "nans",
        "indices",
        "orders",
        "sizes",
        "fourier",
        "small",
    ],
)
def test_results_are_those_of_torch(functions: list[Function]) -> None:
    torch.manual_seed(3)
    inputs = [x for _ in functions for x in (torch.randn(5, 6), torch.randn(6, 7))]
    module = Many(functions)
    sdfg = frontend.torch_module(module, *inputs, name="many_functions")
    binding, run = binding_of(sdfg), load_unlowered(sdfg)
    assert binding is not None
    given = {n: binding.given(n, x) for n, x in zip(sdfg.arg_names, inputs, strict=True)}
    with dace.config.set_temporary("compiler", "allow_view_arguments", value=True):
        found = binding.returned(run(**binding.arguments(), **given))
    for place, (result, wanted) in enumerate(zip(found, module(*inputs), strict=True)):
        assert result.shape == wanted.shape, place
        assert torch.allclose(result, wanted, rtol=1e-5, atol=1e-5, equal_nan=True), place
