"""Gradient scalers: a step that overflows is taken back, and the scale follows, as in torch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from torch import Tensor, nn
from torch.amp import GradScaler

import distspmd
from distspmd import frontend
from distspmd.errors import ArgumentError, UnsupportedProgram
from distspmd.frontend.from_torch.kept_programs import KeptProgram
from from_torch.kernels_in_numpy import Program

OPTIMIZERS: list[Callable[..., torch.optim.Optimizer]] = [
    lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    lambda parameters: torch.optim.AdamW(parameters, lr=0.01, fused=True),
]
HUGE = 1e30
"""A factor of the input with which gradients of single precision are not finite."""


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(monkeypatch)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))


def scaled(
    module: nn.Module,
    make: Callable[..., torch.optim.Optimizer] = OPTIMIZERS[0],
    clip: bool = False,
    **settings: Any,
) -> tuple[Callable[[Tensor], Tensor], torch.optim.Optimizer, GradScaler]:
    """A step whose gradients are scaled, its optimizer and its scaler."""
    optimizer = make(module.parameters())
    scaler = GradScaler("cpu", init_scale=2.0**6, growth_interval=2, **settings)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = module(x).square().mean()
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(module.parameters(), 0.05)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return step, optimizer, scaler


def inputs() -> list[Tensor]:
    """Those with which the third and the fourth of seven steps overflow."""
    torch.manual_seed(1)
    return [torch.randn(5, 4) * (HUGE if n in (2, 3) else 1) for n in range(7)]


def check_equal(ours: Any, theirs: Any) -> None:
    """Parameters, states, and the scaler after a step."""
    for a, b in zip(ours[0].parameters(), theirs[0].parameters(), strict=True):
        torch.testing.assert_close(a, b)
    for a, b in zip(ours[0].parameters(), theirs[0].parameters(), strict=True):
        for key, value in theirs[1].state[b].items():
            torch.testing.assert_close(ours[1].state[a][key], value)
    assert ours[2].state_dict() == theirs[2].state_dict()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of NumPy, as is meant here
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("make", OPTIMIZERS, ids=["SGD", "AdamW", "fused"])
@pytest.mark.parametrize("clip", [False, True], ids=["", "clipped"])
def test_steps_that_overflow_are_not_done(
    make: Callable[..., torch.optim.Optimizer], clip: bool, program: Program
) -> None:
    module = network()
    same = copy.deepcopy(module)
    step, *others = scaled(module, make, clip)
    reference, *theirs = scaled(same, make, clip)
    call = program.calls(step, inputs()[0])
    scales = []
    for x in inputs():
        (loss,) = call(x)
        torch.testing.assert_close(loss, reference(x), equal_nan=True)
        check_equal((module, *others), (same, *theirs))
        scales.append(others[1].get_scale())
    assert scales == [64, 128, 64, 32, 32, 64, 64]


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_a_scale_that_cannot_grow_stays(program: Program) -> None:
    module = network()
    step, _, scaler = scaled(module, growth_factor=2.0**100)
    call = program.calls(step, torch.ones(5, 4))
    for _ in range(4):
        call(torch.zeros(5, 4))
    assert scaler.get_scale() == 2.0**106
    assert scaler._get_growth_tracker() == 0


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_of_two_optimizers_the_one_that_overflows_alone_does_not_step(program: Program) -> None:
    made = []
    for _ in range(2):
        models = network(), network()
        owners = [torch.optim.Adam(m.parameters(), lr=0.01) for m in models]
        scaler = GradScaler("cpu", init_scale=2.0**6, growth_interval=2)
        made.append((models, owners, scaler))

    def stepped(models: Any, owners: Any, scaler: GradScaler) -> Callable[..., Tensor]:
        def step(x: Tensor, y: Tensor) -> Tensor:
            for optimizer in owners:
                optimizer.zero_grad()
            losses = [model(z).square().mean() for model, z in zip(models, (x, y), strict=True)]
            scaler.scale(losses[0] + losses[1]).backward()
            for optimizer in owners:
                scaler.step(optimizer)
            scaler.update()
            return losses[0].detach()

        return step

    call = program.calls(stepped(*made[0]), *inputs()[:2])
    reference = stepped(*made[1])
    fine, huge = inputs()[1], inputs()[2]
    for given in ((fine, fine), (fine, huge), (huge, fine), (fine, fine)):
        torch.testing.assert_close(call(*given)[0], reference(*given), equal_nan=True)
        for number in range(2):
            ours, theirs = ((m[number], o[number], s) for m, o, s in made)
            check_equal(ours, theirs)


def test_a_scaler_that_is_disabled_does_nothing(program: Program) -> None:
    module = network()
    same = copy.deepcopy(module)
    step, _, scaler = scaled(module, enabled=False)
    call = program.calls(step, inputs()[0])
    reference = scaled(same, enabled=False)[0]
    torch.testing.assert_close(call(inputs()[0])[0], reference(inputs()[0]))
    assert scaler.state_dict() == {}


def test_settings_of_a_scaler_are_compared_at_each_call(program: Program) -> None:
    step, _, scaler = scaled(network())
    call = program.calls(step, inputs()[0])
    scaler.set_backoff_factor(0.25)
    with pytest.raises(ArgumentError, match=r"'backoff_factor' of the scaler 'scaler' was 0\.5"):
        call(inputs()[0])


def test_a_scaler_must_be_updated_where_it_scales(program: Program) -> None:
    module = network()
    optimizer, scaler = torch.optim.SGD(module.parameters(), lr=0.1), GradScaler("cpu")

    def step(x: Tensor) -> Tensor:
        loss = module(x).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        return loss

    with pytest.raises(UnsupportedProgram, match=r"does not end with scaler\.update\(\)"):
        program.step(step, inputs()[0])
    assert not scaler._per_optimizer_states


def test_the_value_of_a_scale_is_read_at_each_call(program: Program) -> None:
    def watched(module: nn.Module) -> Callable[[Tensor], Tensor]:
        step, _, scaler = scaled(module)
        return lambda x: step(x).detach() * scaler.get_scale()

    mine, theirs = network(), network()
    theirs.load_state_dict(mine.state_dict())
    x = inputs()[0]
    call, reference = program.calls(watched(mine), x), watched(theirs)
    for _ in range(3):
        torch.testing.assert_close(call(x)[0], reference(x))


def test_programs_are_found_again_whatever_the_scale_is() -> None:
    step, _, scaler = scaled(network())

    def found() -> KeptProgram:
        return KeptProgram.of(step, inputs()[:1], (), device=None)

    key = found().key
    assert key, found().reason
    frontend.training_step(step, inputs()[0])  # which makes the tensors of the scaler
    traced = found().key
    scaler.load_state_dict({**scaler.state_dict(), "scale": 7.0, "_growth_tracker": 1})
    assert found().key == traced
    scaler.set_growth_interval(5)
    assert found().key not in (key, traced)


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_scaled_steps_train_on_ranks(ranks: int) -> None:
    call_on_ranks("from_torch.test_scalers", "train(comm)", ranks=ranks)


def train(comm: Any) -> None:
    """Steps by their batch, of which some overflow on one rank alone, beside torch on rank 0."""
    module, same = network(), network()
    step, *others = scaled(module, OPTIMIZERS[1])
    reference, *theirs = scaled(same, OPTIMIZERS[1])

    def lowered() -> Any:
        sdfg = frontend.training_step(step, inputs()[0])
        return distspmd.lower(sdfg, frontend.data_parallel(comm.size))

    with distspmd.compile(lowered, comm) as compiled:
        for x in inputs():
            x[2:] = x[2:].clamp(-3, 3)
            loss = compiled(*([x] if comm.rank == 0 else []))
            if comm.rank == 0:
                torch.testing.assert_close(loss, reference(x), equal_nan=True)
        compiled.collect()
    if comm.rank == 0:
        check_equal((module, *others), (same, *theirs))
        assert others[1].get_scale() == 64
