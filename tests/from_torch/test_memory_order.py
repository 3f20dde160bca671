"""Tensors that lie in memory in another order than their indices are taken as all others."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from distspmd import frontend
from distspmd.errors import ArgumentError
from distspmd.execution.binding import binding_of
from from_torch.kernels_in_numpy import Program


class Rotated(nn.Module):
    """A factor of LAPACK, whose columns follow each other; its momentum lies as it does."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linalg.qr(torch.randn(3, 3).double())[0])

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight).tanh()


def stepping(module: nn.Module) -> Callable[[Tensor], Tensor]:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = module(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    return step


def test_a_parameter_in_the_order_of_its_columns_is_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = Rotated()
    same, weight = copy.deepcopy(module), module.weight
    assert weight.stride() == (1, 3)
    step, wanted = stepping(module), stepping(same)
    x = torch.randn(4, 3).double()
    for each in (step, wanted):
        each(x)
    call = Program(monkeypatch).calls(step, x)
    for _ in range(2):
        (found,) = call(x)
        assert torch.allclose(found, wanted(x))
    assert module.weight is weight
    assert weight.is_contiguous()
    assert torch.allclose(weight, same.weight)


def test_memory_that_others_have_is_not_moved() -> None:
    theirs = torch.randn(2, 3)
    module = nn.Linear(2, 3, bias=False)
    module.weight = nn.Parameter(theirs.t())
    binding = binding_of(frontend.torch_module(module, torch.randn(4, 2)))
    assert binding is not None
    with pytest.raises(ArgumentError, match="its memory is that of other tensors"):
        binding.arguments()
    assert module.weight.data_ptr() == theirs.data_ptr()


def test_networks_and_images_in_channels_last(monkeypatch: pytest.MonkeyPatch) -> None:
    made = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))
    module = made.to(memory_format=torch.channels_last)
    image = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    assert not module[0].weight.is_contiguous()
    (found,) = Program(monkeypatch).of(module, image)
    assert torch.allclose(found, module(image), atol=1e-6)


def test_arguments_that_are_only_read_are_passed_in_any_order() -> None:
    class Writes(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            y += x
            return 2 * x

    binding = binding_of(frontend.torch_module(Writes(), torch.ones(2, 3), torch.ones(2, 3)))
    assert binding is not None
    turned = torch.arange(6.0).reshape(3, 2).t()
    for mine in (binding, binding.elsewhere()):
        assert (mine.given("x", turned) == turned.numpy()).all()
        with pytest.raises(ArgumentError, match="or the program writes it"):
            mine.given("y", turned)
