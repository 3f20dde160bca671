"""Convolutions of any strides, borders, dilation and groups: results and gradients of torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional
from training.run_models import difference

from from_torch.kernels_in_numpy import Program

FORWARD = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


@st.composite
def layers(draw: st.DrawFn) -> tuple[nn.Module, Tensor]:
    """A convolution with windows that fit into its input."""
    count = draw(st.sampled_from([2, 1, 3]))
    groups = draw(st.sampled_from([1, 2, 4]))

    def numbers(least: int, most: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(least, most)) for _ in range(count))

    kernel, stride, padding, dilation = (
        numbers(*ends) for ends in ((1, 4), (1, 3), (0, 3), (1, 3))
    )
    inputs, outputs = 4, groups * draw(st.integers(1, 2))
    settings_of: dict[str, Any] = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
        "bias": draw(st.booleans()),
        "dtype": torch.float64,
    }
    sizes = numbers(1, 7)
    if draw(st.booleans()):
        more = [draw(st.integers(0, max(s, d) - 1)) for s, d in zip(stride, dilation, strict=True)]
        made = [
            (sizes[k] - 1) * stride[k] - 2 * padding[k] + dilation[k] * (kernel[k] - 1) + more[k]
            for k in range(count)
        ]
        assume(min(made) >= 0)
        kind, settings_of["output_padding"] = TRANSPOSED[count - 1], tuple(more)
    else:
        left = [sizes[k] + 2 * padding[k] - dilation[k] * (kernel[k] - 1) - 1 for k in range(count)]
        assume(min(left) >= 0)
        kind = FORWARD[count - 1]
    torch.manual_seed(draw(st.integers(0, 99)))
    layer = kind(inputs, outputs, kernel, **settings_of)
    return layer, torch.randn(draw(st.integers(1, 3)), inputs, *sizes, dtype=torch.float64)


def check(drawn: tuple[nn.Module, Tensor]) -> None:
    layer, x = drawn

    def step(x: Tensor) -> list[Tensor]:
        x = x.detach().requires_grad_()
        made = layer(x)
        return [made, *torch.autograd.grad(made.sin().sum(), (x, *layer.parameters()))]

    with pytest.MonkeyPatch.context() as patch:
        found, _ = Program(patch).step(step, x)
    for one, other in zip(found, step(x), strict=True):
        assert one.shape == other.shape
        assert difference(one, other) < 1e-9


@pytest.mark.parametrize("examples", [6, pytest.param(150, marks=pytest.mark.slow)])
def test_convolutions_and_their_gradients_are_those_of_torch(examples: int) -> None:
    settings(max_examples=examples, deadline=None)(given(layers())(check))()


def test_room_that_no_window_reaches_has_no_gradient() -> None:
    layer = nn.ConvTranspose2d(4, 1, 1, dilation=(1, 2), output_padding=(0, 1), dtype=torch.float64)
    check((layer, torch.randn(1, 4, 1, 1, dtype=torch.float64)))


def test_pixels_that_are_shuffled_between_convolutions_have_the_gradients_of_torch() -> None:
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 8, 3, padding=1), nn.PixelShuffle(2)
    layer = nn.Sequential(*layers, nn.Conv2d(2, 3, 3, padding=1)).double()
    check((layer, torch.randn(2, 3, 6, 6, dtype=torch.float64)))


def test_samples_of_a_grid_have_the_gradients_of_torch() -> None:
    class Sampled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.theta = nn.Parameter(torch.tensor([[0.8, 0.1, 0.0], [-0.2, 1.1, 0.1]]).double())

        def forward(self, x: Tensor) -> Tensor:
            theta = self.theta.expand(len(x), 2, 3)
            grid = functional.affine_grid(theta, [*x.shape[:2], 3, 5], align_corners=True)
            bent = functional.grid_sample(x, grid, "bilinear", "border", align_corners=True)
            return bent + functional.grid_sample(x, grid, mode="nearest", align_corners=False)

    torch.manual_seed(0)
    check((Sampled(), torch.randn(2, 2, 4, 6, dtype=torch.float64)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "grouped", "volume"])
def test_each_dimension_of_a_convolution_may_be_split(kind: str) -> None:
    call_on_ranks("from_torch.convolutions_on_ranks", f"every_split(comm, {kind!r})", 3)
