"""What ``item`` reads while a step is traced: numbers of which the program knows the tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from distspmd import frontend
from distspmd.errors import UnsupportedProgram
from distspmd.execution.binding import binding_of
from distspmd.runtime.calls.missing_result import missing_result
from from_torch.kernels_in_numpy import Program


def described(x: Tensor) -> dict[str, Any]:
    """Results as published code returns them: numbers beside tensors."""
    loss = x.square().mean()
    value = loss.item()
    return {
        "loss": value,
        "percent": 100 * value / 3 - 1,
        "positive": (x > 0).sum().item(),
        "centred": x - value,
        "weighed": [loss * value, -abs(value)],
        "told": (len(x), None, "mean"),
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_that_are_returned_are_those_of_torch(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.tensor([0.25, -1.5, 2.0, 7.5], dtype=dtype)
    program = Program(monkeypatch)
    sdfg = frontend.training_step(described, x)
    results, _ = program.run(sdfg, [x])
    wanted = described(x)
    found = binding_of(sdfg).returned([each.numpy() for each in results])
    assert found.keys() == wanted.keys()
    for key in ("loss", "percent", "positive"):
        assert type(found[key]) is type(wanted[key])
        assert found[key] == pytest.approx(wanted[key], rel=1e-15)
    assert found["centred"].equal(wanted["centred"])
    assert found["weighed"][0].equal(wanted["weighed"][0])
    assert found["weighed"][0].dtype == dtype
    assert found["weighed"][1] == wanted["weighed"][1]
    assert found["told"] == (4, None, "mean")
    there = missing_result("described", "on rank 0", 1)
    others = binding_of(sdfg).returned([there] * len(results))
    assert others["loss"] is there
    assert others["told"] == (4, None, "mean")


def test_no_gradient_goes_through_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(rewards: Tensor) -> Tensor:
        value = critic(rewards).sum()
        loss = (rewards - value.item()).sum() * value
        critic.zero_grad()
        loss.backward()
        return critic.weight.grad.clone()

    critic = nn.Linear(3, 1).double()
    x = torch.tensor([0.5, -2.0, 4.0], dtype=torch.float64)
    (found,), _ = Program(monkeypatch).step(step, x)
    torch.testing.assert_close(found, step(x))


class Clock(nn.Module):
    """Reads a time, and then changes it."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.time = nn.Parameter(torch.full((), 3, dtype=dtype), requires_grad=False)

    def forward(self, x: Tensor) -> tuple[float, Tensor]:
        before = self.time.item()
        self.time.mul_(5)
        return before, x * before - self.time


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_a_number_is_the_value_at_the_time_of_reading(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    before, found = Program(monkeypatch).of(Clock(dtype), x)
    assert before == 3
    torch.testing.assert_close(found, 3 * x - 15)


class Counting(nn.Module):
    """Keeps what it has read."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.last = nn.Parameter(torch.ones(3)), 0.0

    def forward(self, x: Tensor) -> Tensor:
        x = x * self.scale + self.last
        self.last = x.sum().item()
        return x


SEEN: list[float] = []
TOTAL = [0.0]


def adds(x: Tensor) -> Tensor:
    TOTAL[0] += x.sum().item()
    return x * 2


def appends(x: Tensor) -> Tensor:
    SEEN.append(x.sum().item())
    return x * 2


@pytest.mark.parametrize("function", [adds, appends])
def test_numbers_do_not_stay_in_objects_of_python(function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedProgram, match="keeps a value that it reads from a tensor in"):
        frontend.training_step(function, torch.ones(3))
    assert not SEEN
    assert TOTAL == [0.0]


def test_a_number_that_a_module_keeps_for_its_next_call_is_refused() -> None:
    module = Counting()
    with pytest.raises(UnsupportedProgram, match=r"does something else|keeps 'last'"):
        frontend.torch_module(module, torch.ones(3))
    assert module.last == 0.0
