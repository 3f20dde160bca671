"""Each operator of the core ATen set: its results are those of torch, or it is refused by name."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from distspmd import frontend
from distspmd.errors import UnsupportedProgram
from from_torch.core_operators import CASES, DRAWN, REFUSED, SIZES, Function, core_operators
from from_torch.kernels_in_numpy import Program


class Of(nn.Module):
    """A function of two tensors."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor) -> object:
        return self.function(x, y)


def matrices() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    x, y = torch.randn(2, 4, 6, dtype=torch.float64)
    return x, y


def test_every_core_operator_has_a_case() -> None:
    assert sorted([*CASES, *REFUSED, *DRAWN, *SIZES]) == core_operators()


QUICK = ("scatter_reduce", "_cdist_forward", "masked_scatter", "isinf", "resize_", "_pdist_forward")
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in CASES if name not in QUICK]


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_an_operator_means_what_it_does_in_torch(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = matrices()
    found = Program(monkeypatch).of(Of(CASES[name]), x, y)
    wanted = pytree.tree_leaves(CASES[name](x, y))
    for one, other in zip(found, wanted, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(name: str) -> None:
    with pytest.raises(UnsupportedProgram, match=name):
        frontend.torch_module(Of(REFUSED[name][1]), *matrices())
