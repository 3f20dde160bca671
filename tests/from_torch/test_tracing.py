"""Functions are traced as if torch compiled them, and else as they run."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from distspmd import frontend
from distspmd.errors import UnsupportedProgram
from from_torch.kernels_in_numpy import Program


class Masks(nn.Module):
    """Makes its mask where nothing is compiled, as some models of `transformers` do."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None and not torch.compiler.is_compiling():
            mask = torch.ones(x.shape[1]).cumsum(0)
        return x * mask[None]  # type: ignore[index]


class Raises(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise ValueError("compiling" if torch.compiler.is_compiling() else "running")


def test_what_takes_another_way_when_compiled_is_traced_as_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = torch.randn(2, 3)
    (found,) = Program(monkeypatch).of(Masks(), x)
    assert torch.equal(found, Masks()(x))
    assert not torch.compiler.is_compiling()


def test_where_both_ways_fail_the_first_is_told() -> None:
    with pytest.raises(UnsupportedProgram, match="ValueError: compiling"):
        frontend.torch_module(Raises(), torch.randn(2))
    assert not torch.compiler.is_compiling()


class Converts(nn.Module):
    """Brings a layer of its own to a type that it may have, as routers of experts do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        self.inner = self.inner.to(x.dtype)
        found: Tensor = self.inner(x)
        return found


def test_a_conversion_in_a_forward_pass_that_changes_nothing_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, x = Converts(), torch.randn(2, 3)
    weight, convert = module.inner.weight, nn.Module._apply
    (found,) = Program(monkeypatch).of(module, x)
    torch.testing.assert_close(found, module(x))
    assert module.inner.weight is weight
    assert nn.Module._apply is convert


def test_a_conversion_that_changes_a_module_of_the_caller_is_refused() -> None:
    with pytest.raises(UnsupportedProgram, match="Linear, to another type or device"):
        frontend.torch_module(Converts(), torch.randn(2, 3, dtype=torch.float64))


def test_modules_are_traced_that_have_gradients_of_earlier_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, x = nn.Linear(3, 2), torch.randn(4, 3)
    module(x).sum().backward()
    (found,) = Program(monkeypatch).of(module, x)
    torch.testing.assert_close(found, module(x))
    assert module.weight.grad is not None


def test_a_step_by_hand_adds_to_the_gradients_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, x = nn.Linear(3, 2), torch.randn(4, 3)
    module.weight.grad = torch.ones(2, 3)
    same = copy.deepcopy(module)
    same.weight.grad = torch.ones(2, 3)

    def by_hand(of: nn.Linear) -> Callable[[Tensor], Tensor]:
        def step(x: Tensor) -> Tensor:
            loss = of(x).square().mean()
            loss.backward()
            with torch.no_grad():
                for parameter in of.parameters():
                    parameter -= 0.1 * parameter.grad
                    parameter.grad = None
            return loss

        return step

    (loss,), live = Program(monkeypatch).step(by_hand(module), x)
    torch.testing.assert_close(loss, by_hand(same)(x).detach())
    torch.testing.assert_close(live["weight"], same.weight.detach())


class Listens(nn.Module):
    """Enters a hook at its first call, as models of `transformers` do that collect layers."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.heard = nn.Linear(3, 3), False

    def forward(self, x: Tensor) -> Tensor:
        if not self.heard:
            self.inner.register_forward_hook(lambda module, inputs, output: 2 * output)
            self.heard = True
        found: Tensor = self.inner(x)
        return found


def test_hooks_of_a_traced_call_are_not_left_in_the_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module, x = Listens(), torch.randn(2, 3)
    (found,) = Program(monkeypatch).of(module, x)
    assert not module.heard
    assert not module.inner._forward_hooks
    assert torch.allclose(found, module(x))
