"""Numbers of 16 bits: stored so, computed in single precision, rounded where torch rounds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from torch import Tensor, nn

import distspmd
from distspmd import frontend
from distspmd.errors import UnsupportedProgram
from from_torch.kernels_in_numpy import Program

HALVES = [torch.bfloat16, torch.float16]
EPSILON = {torch.bfloat16: 2**-8, torch.float16: 2**-11}
"""By how much rounding changes a number."""


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(monkeypatch)


class Layer(nn.Module):
    """What transformers consist of."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(11, 8), nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words)
        q = self.norm(x).unflatten(-1, (2, 4)).transpose(1, 2)
        mixed = (q @ q.transpose(2, 3) / 2).softmax(-1) @ q
        x = x + mixed.transpose(1, 2).flatten(2)
        return x + self.down(nn.functional.gelu(self.up(x)))


def close(found: Tensor, wanted: Tensor, half: torch.dtype, factor: float = 4) -> bool:
    assert found.dtype == wanted.dtype
    off = (found.float() - wanted.float()).abs().max() / (1 + wanted.float().abs().max())
    return bool(off <= factor * EPSILON[half])


@pytest.mark.parametrize("half", HALVES)
def test_operators_round_as_torch_does(half: torch.dtype, program: Program) -> None:
    class Pointwise(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
            third = x * y + x / 3
            return third, (third - y).exp(), x.float() * y, (x > y).to(half), x.sum(0), x.t()

    x, y = torch.randn(5, 7).to(half), torch.randn(5, 7).to(half)
    for found, wanted in zip(program.of(Pointwise(), x, y), Pointwise()(x, y), strict=True):
        torch.testing.assert_close(found, wanted, rtol=EPSILON[half], atol=1e-30)


@pytest.mark.parametrize("half", HALVES)
def test_exact_operators_give_the_bits_of_torch(half: torch.dtype, program: Program) -> None:
    class Exact(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
            total = x + y
            return total, total - x, (x * y) * y, x.clamp(-0.1, 0.1), torch.cat((x, y)), -x / y

    x, y = torch.randn(9, 4).to(half), (torch.randn(9, 4) * 20).to(half)
    for found, wanted in zip(program.of(Exact(), x, y), Exact()(x, y), strict=True):
        assert torch.equal(found.view(torch.int16), wanted.view(torch.int16))


@pytest.mark.parametrize("half", HALVES)
def test_a_layer_of_halves_trains_as_in_torch(half: torch.dtype, program: Program) -> None:
    torch.manual_seed(0)
    module = Layer().to(half)
    same = copy.deepcopy(module)
    words = torch.randint(0, 11, (3, 5))
    (loss,), live = program.step(stepped(module), words)
    assert close(loss, stepped(same)(words), half)
    for name, parameter in same.named_parameters():
        assert live[name].dtype == half
        assert close(live[name], parameter, half)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.masked_fill(x > 0, -1e9),
        lambda x: torch.full_like(x, 1e9) + x,
        lambda x: nn.functional.pad(x, (1, 1), value=-1e9),
        lambda x: x.clamp(-1e9, 1e9),
    ],
)
def test_numbers_that_a_type_cannot_hold_are_refused_as_by_torch(
    write: Callable[[Tensor], Tensor], program: Program
) -> None:
    class Masked(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return write(x)

    x = torch.tensor([1.0, -2.0])
    with pytest.raises(RuntimeError, match="without overflow"):
        Masked()(x.half())
    with pytest.raises(UnsupportedProgram, match=r"float16, whose numbers end at 65504; torch"):
        program.of(Masked(), x.half())
    for fitting in (x, x.bfloat16()):
        (found,) = program.of(Masked(), fitting)
        assert torch.equal(found, Masked()(fitting))


def test_infinite_numbers_fit_all_types(program: Program) -> None:
    class Masked(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.masked_fill(x > 0, -torch.inf).masked_fill(x < 0, torch.finfo(x.dtype).min)

    x = torch.tensor([1.0, -2.0]).half()
    assert torch.equal(program.of(Masked(), x)[0], Masked()(x))


def test_autocast_is_traced_as_it_is(program: Program) -> None:
    torch.manual_seed(0)
    module = Layer()
    same = copy.deepcopy(module)
    words = torch.randint(0, 11, (3, 5))
    (loss,), live = program.step(cast_in(module), words)
    wanted = cast_in(same)(words)
    assert loss.dtype == wanted.dtype == torch.float32
    assert close(loss, wanted, torch.bfloat16)
    for name, parameter in same.named_parameters():
        assert live[name].dtype == torch.float32
        assert close(live[name], parameter, torch.bfloat16)


@pytest.mark.parametrize(
    "half", [torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.slow)]
)
def test_halves_train_on_ranks(half: torch.dtype) -> None:
    call_on_ranks("from_torch.test_precision", f"train(module.{half}, comm)", ranks=2)


def stepped(module: nn.Module) -> Callable[..., Tensor]:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)

    def step(words: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = module(words).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def cast_in(module: nn.Module) -> Callable[..., Tensor]:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    def step(words: Tensor) -> Tensor:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = module(words)
        loss = out.float().square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def train(half: torch.dtype, comm: Any) -> None:
    """Train a layer of halves on ranks, beside torch on rank 0."""
    torch.manual_seed(0)
    module = Layer().to(half)
    same = copy.deepcopy(module)
    step, reference = stepped(module), stepped(same)
    words = torch.randint(0, 11, (3, 5))

    def lowered() -> Any:
        return distspmd.lower(frontend.training_step(step, words), frontend.data_parallel(2))

    with distspmd.compile(lowered, comm) as program:
        for _ in range(3):
            loss = program(*([words] if comm.rank == 0 else []))
            if comm.rank == 0:
                assert close(loss, reference(words), half)
        program.collect()
    if comm.rank == 0:
        for ours, theirs in zip(module.parameters(), same.parameters(), strict=True):
            assert close(ours, theirs, half)
