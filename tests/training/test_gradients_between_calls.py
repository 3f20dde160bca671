"""Gradients that one function leaves and another one takes: as torch has them, call by call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as they write it

from distspmd import frontend

CALLS = 10


class Model(nn.Module):
    """A perceptron with a layer that is frozen, and parameters that nothing uses."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(5, 7), nn.Linear(7, 4)
        self.middle = nn.Linear(7, 7).requires_grad_(False)
        self.unused = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.down(torch.tanh(self.middle(torch.tanh(self.up(x)))))
        return found


@dataclass
class Loop:
    """What a script has: two functions, and what it does outside between their calls."""

    model: nn.Module
    backward: Callable[[Tensor, Tensor], Tensor]
    update: Callable[[], Any]
    between: Callable[[int], Any]
    """With the number of the call, ahead of it."""


def made(name: str) -> Loop:  # noqa: C901 - functions in a row
    """The loop of a name, from the same values each time."""
    torch.manual_seed(0)
    model = Model().double()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, weight_decay=0.3)

    def backward(x: Tensor, y: Tensor) -> Tensor:
        loss = F.cross_entropy(model(x), y) / 3
        loss.backward()
        return loss.detach()

    def update() -> Tensor:
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.3)
        optimizer.step()
        optimizer.zero_grad()
        return norm

    def begin(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        return backward(x, y)

    def silent() -> None:
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    def step_only() -> None:
        optimizer.step()

    def nothing(number: int) -> None:
        pass

    def clear(number: int) -> None:
        if number % 3 == 1:
            model.zero_grad()

    def zero(number: int) -> None:
        if number % 3 == 1:
            optimizer.zero_grad(set_to_none=False)

    def clear_one(number: int) -> None:
        if number % 3 == 2:
            model.up.weight.grad = None

    def freeze(number: int) -> None:
        model.up.requires_grad_(number % 4 != 2)

    return {
        "added up over calls": Loop(model, backward, update, nothing),
        "cleared where backward begins": Loop(model, begin, step_only, nothing),
        "zeros stay": Loop(model, backward, silent, nothing),
        "cleared outside": Loop(model, backward, step_only, clear),
        "zeros from outside": Loop(model, backward, update, zero),
        "one cleared outside": Loop(model, backward, update, clear_one),
        "frozen for a while": Loop(model, backward, update, freeze),
    }[name]


LOOPS = (
    *("added up over calls", "cleared where backward begins", "zeros stay", "cleared outside"),
    *("zeros from outside", "one cleared outside", "frozen for a while"),
)


def schedule_of(name: str, ranks: int) -> Any:
    kind, _, stage = name.partition(" ")
    if kind == "zero":
        return frontend.zero(int(stage), ranks)
    return getattr(frontend, kind)(ranks)


def alike(mine: nn.Module, other: nn.Module, said: Any, gradients: bool = True) -> None:
    """The same parameters, and the same gradients, or none."""
    for (name, x), y in zip(mine.named_parameters(), other.parameters(), strict=True):
        told = lambda m, name=name: f"{said}: {name}: {m}"  # noqa: E731
        torch.testing.assert_close(x, y, rtol=1e-7, atol=1e-9, msg=told)
        if gradients:
            assert (x.grad is None) == (y.grad is None), (said, name, x.grad, y.grad)
            if x.grad is not None:
                torch.testing.assert_close(x.grad, y.grad, rtol=1e-7, atol=1e-9, msg=told)


def train(names: str, schedule: str, comm: Any) -> None:
    """Ten calls of loops on all ranks, and beside them those of torch on rank 0."""
    for name in names.split(", "):
        mine, other = made(name), made(name)
        entries = schedule_of(schedule, comm.size)
        generator = torch.Generator().manual_seed(3)
        with (
            frontend.partitioned(mine.backward, entries, comm) as backward,
            frontend.partitioned(mine.update, entries, comm) as update,
        ):
            for number in range(CALLS):
                x = torch.randn(6, 5, dtype=torch.float64, generator=generator)
                y = torch.randint(0, 4, (6,), generator=generator)
                if number and not schedule.startswith("data"):
                    backward.collect(), update.collect()  # whose memory is written from outside
                mine.between(number), other.between(number)
                loss, wanted = backward(x, y), other.backward(x, y)
                if comm.rank == 0:
                    assert float(loss) == pytest.approx(float(wanted), rel=1e-7), (name, number)
                if number % 3 == 2:
                    norm, wanted = update(), other.update()
                    if comm.rank == 0 and wanted is not None:
                        assert float(norm) == pytest.approx(float(wanted), rel=1e-7), (name, number)
                if number % 2:
                    backward.collect(), update.collect()
                    if comm.rank == 0:
                        alike(mine.model, other.model, (name, number))
        if comm.rank == 0:
            alike(mine.model, other.model, name)


@pytest.mark.parametrize(
    ("names", "schedule", "ranks"),
    [
        ("added up over calls, cleared where backward begins", "data_parallel", 2),
        ("zeros from outside", "zero 1", 2),
        *(
            pytest.param(", ".join(LOOPS), schedule, ranks, marks=pytest.mark.slow)
            for schedule in ("data_parallel", "zero 1", "zero 2", "zero 3", "megatron")
            for ranks in (1, 2, 3)
        ),
    ],
)
def test_gradients_between_calls_are_those_of_torch(names: str, schedule: str, ranks: int) -> None:
    module = "training.test_gradients_between_calls"
    call_on_ranks(module, f"train({names!r}, {schedule!r}, comm)", ranks)
