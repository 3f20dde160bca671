"""Each layer of torch.nn: results and gradients are those of torch, or it is refused by name."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree
from training.run_models import difference

from distspmd.errors import UnsupportedProgram
from from_torch.kernels_in_numpy import Program
from from_torch.layers import EVERY, REFUSED, layers_of_torch, made


def test_every_layer_has_a_case() -> None:
    assert sorted(EVERY) == layers_of_torch()
    assert REFUSED.keys() < EVERY.keys()


def gradients(module: nn.Module) -> Any:
    """A function of a layer and its gradients, by its first argument and its parameters."""

    def step(*inputs: Tensor) -> list[Tensor]:
        first, *others = inputs
        if first.is_floating_point():
            first = first.detach().requires_grad_()
        found = [x for x in pytree.tree_leaves(module(first, *others)) if x.requires_grad]
        wanted = [x for x in (first, *module.parameters()) if x.requires_grad]
        loss = sum((x.square().sum() for x in found), torch.zeros((), dtype=torch.float64))
        made = torch.autograd.grad(loss, wanted, allow_unused=True)
        return [loss, *(g for g in made if g is not None)]

    return step


QUICK = ("AvgPool2d", "AdaptiveMaxPool2d", "MultiLabelMarginLoss", "ReplicationPad2d", "Bilinear")
QUICK += ("MultiMarginLoss", "InstanceNorm2d", "RReLU", "Hardshrink", "AvgPool3d")
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in sorted(EVERY) if name not in QUICK]


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of names that are old
@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_a_layer_means_what_it_does_in_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of layers whose names are old, or that are empty
        module, inputs = made(name)
    program = Program(monkeypatch)
    if name in REFUSED:
        with pytest.raises(UnsupportedProgram, match=REFUSED[name][0]):
            program.of(module, *inputs)
        return
    same = copy.deepcopy(module)
    found, live = program.step(gradients(module), *inputs)
    wanted = gradients(same)(*inputs)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        assert difference(one, other) < 1e-8
    for key, buffer in same.named_buffers():
        if key in live:
            assert difference(live[key], buffer) < 1e-8, key
    module.eval()
    results = program.of(module, *inputs)
    with torch.no_grad():
        for one, other in zip(results, pytree.tree_leaves(module(*inputs)), strict=True):
            assert one.shape == other.shape
            assert difference(one, other) < 1e-8


def test_the_slope_of_a_hard_sigmoid_is_as_exact_as_that_of_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def step(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(nn.functional.hardsigmoid(x).sum(), x)[0]

    x = torch.linspace(-4, 4, 9, dtype=torch.float64)
    (found,), _ = Program(monkeypatch).step(step, x)
    assert found.equal(step(x))
