"""Optimizers, schedulers and averages, three steps beside torch; kernels are evaluated by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import lr_scheduler
from torch.optim.swa_utils import AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint

from distspmd import frontend
from distspmd.errors import ArgumentError, UnsupportedProgram
from distspmd.execution.binding import binding_of
from distspmd.frontend.from_torch.optimizers import REFUSED
from from_torch.kernels_in_numpy import Program

Build = Callable[[Any], torch.optim.Optimizer]
Made = tuple[nn.Module, Callable[[Tensor], Tensor], Any]

OPTIMIZERS: dict[str, Build] = {
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.1, weight_decay=0.1),
    "Adadelta": lambda p: torch.optim.Adadelta(p, lr=0.5),
    "Adafactor": lambda p: torch.optim.Adafactor(p, lr=0.1, weight_decay=0.1),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1, maximize=True),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=0.1),
    "Muon": lambda p: torch.optim.Muon([x for x in p if x.ndim == 2], lr=0.1),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.1),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.9, centered=True),
    "Rprop": lambda p: torch.optim.Rprop(p, lr=0.1),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
}
"""All of ``torch.optim`` but what is refused."""


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(monkeypatch)


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()


def stepping(model: nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[Tensor], Tensor]:
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = (model(x) - 1).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def batches(count: int = 3) -> Iterator[Tensor]:
    torch.manual_seed(1)
    for _ in range(count):
        yield torch.randn(5, 4, dtype=torch.float64)


def same_as_torch(
    program: Program,
    build: Callable[[], Made],
    after: Callable[[Any], Any] = id,
    steps: int = 3,
) -> None:
    """Steps that are traced once change all tensors as torch does."""
    (module, step, more), (other, reference, its) = build(), build()
    call = program.calls(step, next(batches()))
    for x in batches(steps):
        (loss,) = call(x)
        np.testing.assert_allclose(loss, reference(x).detach(), rtol=1e-6)
        after(more)
        after(its)
    for (name, ours), theirs in zip(
        module.state_dict().items(), other.state_dict().values(), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9, err_msg=name)


def test_all_of_torch_is_in_the_table() -> None:
    known = {
        name
        for name, each in vars(torch.optim).items()
        if isinstance(each, type) and issubclass(each, torch.optim.Optimizer)
    }
    assert known - {"Optimizer"} == {*OPTIMIZERS, *REFUSED}


def by_tier(names: Iterable[str], first: Container[str]) -> list[Any]:
    """Those that are quick, and the others in the slow tier."""
    return [n if n in first else pytest.param(n, marks=pytest.mark.slow) for n in names]


@pytest.mark.parametrize(
    "name", by_tier(OPTIMIZERS, ("Adafactor", "AdamW", "Muon", "RAdam", "RMSprop"))
)
def test_three_steps_of_an_optimizer_are_those_of_torch(name: str, program: Program) -> None:
    def build() -> Made:
        model = net()
        optimizer = OPTIMIZERS[name](list(model.parameters()))
        return model, stepping(model, optimizer), optimizer

    same_as_torch(program, build)


WARM_UP = (0.0, 0.03, 0.06, 0.1, 0.09, 0.07, 0.05, 0.02, 0.005, 0.0)
RATES: dict[str, Sequence[float]] = {
    "warm-up and decay": WARM_UP,
    "zero": [0.0] * 10,
    "tiny": [1e-40] * 10,
    "large": [3.0] * 10,
    "zero in between": [0.1, 0.0] * 5,
}


class Worded(nn.Module):
    """A table with rows that no word picks, a frozen layer, and a layer that nobody calls."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(9, 4)
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.head = nn.Linear(4, 3)
        self.unused = nn.Linear(2, 2)

    def forward(self, words: Tensor) -> Tensor:
        """Scores of some words."""
        found: Tensor = self.head(torch.tanh(self.frozen(self.table(words))))
        return found


def rated(name: str, rates: Sequence[float], clears: bool, dtype: torch.dtype) -> Any:
    """A model, and steps with rates that are set before each."""
    model = Worded().to(dtype)
    optimizer = OPTIMIZERS[name](list(model.parameters()))

    def step(words: Tensor) -> Tensor:
        optimizer.zero_grad(set_to_none=clears)
        loss: Tensor = (model(words) - 1).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    def at(number: int) -> None:
        for group in optimizer.param_groups:
            group["lr"] = rates[number]

    return model, optimizer, step, at


def as_under(name: str, rates: str, program: Program, clears: bool, dtype: torch.dtype) -> None:
    """Compare ten steps with those of torch."""
    model, optimizer, step, at = rated(name, RATES[rates], clears, dtype)
    other, its, reference, there = rated(name, RATES[rates], clears, dtype)
    at(0)
    words = torch.tensor([[1, 3, 3], [5, 1, 0]])
    near = {"rtol": 1e-5, "atol": 1e-9} if dtype == torch.float64 else {"rtol": 1e-4, "atol": 1e-5}
    call = program.calls(step, words)
    for number in range(10):
        at(number)
        there(number)
        (loss,) = call(words)
        np.testing.assert_allclose(loss, reference(words).detach(), **near, err_msg=str(number))
    for (key, ours), theirs in zip(
        model.state_dict().items(), other.state_dict().values(), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, **near, err_msg=key)
    names = {id(p): key for key, p in model.named_parameters()}
    for mine, yours in zip(model.parameters(), other.parameters(), strict=True):
        for key, value in its.state.get(yours, {}).items():
            where = f"{key} of {names[id(mine)]}"
            np.testing.assert_allclose(optimizer.state[mine][key], value, **near, err_msg=where)


QUICK_RATES = {("Adam", "warm-up and decay"), ("AdamW", "zero"), ("Adamax", "zero in between")}
QUICK_RATES |= {("RAdam", "tiny"), ("NAdam", "large"), ("SGD", "warm-up and decay")}


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        pytest.param(n, r, marks=() if (n, r) in QUICK_RATES else pytest.mark.slow)
        for n in OPTIMIZERS
        for r in RATES
    ],
)
def test_ten_steps_under_any_rate_are_those_of_torch(
    name: str, rates: str, program: Program
) -> None:
    for clears in (True, False):
        as_under(name, rates, program, clears, torch.float64)


@pytest.mark.parametrize("name", by_tier(OPTIMIZERS, ("AdamW", "RAdam")))
def test_ten_steps_in_single_precision_are_those_of_torch(name: str, program: Program) -> None:
    as_under(name, "warm-up and decay", program, True, torch.float32)


def alternating(clears: bool) -> Made:
    """A step of two backward passes, of which the first reaches one layer only."""
    model = net()
    first = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.5)
    second = torch.optim.AdamW(model[2].parameters(), lr=0.1, weight_decay=0.5)

    def step(x: Tensor) -> Tensor:
        if clears:
            first.zero_grad()
        model[0](x).square().mean().backward()
        first.step()
        if clears:
            second.zero_grad()
        loss: Tensor = (model[2](x.tile(2)[:, :6]) - 1).square().mean()
        loss.backward()
        second.step()
        return loss

    return model, step, None


def test_a_second_backward_pass_may_reach_what_the_first_did_not(program: Program) -> None:
    same_as_torch(program, lambda: alternating(clears=True))


def test_a_gradient_that_only_later_calls_find_is_an_assumption(program: Program) -> None:
    _, step, _ = alternating(clears=False)
    x = next(batches())
    call = program.calls(step, x)
    call(x)
    with pytest.raises(ArgumentError, match=r"gradient of '2\.weight' was missing .* is there now"):
        call(x)


class Slow(torch.optim.Optimizer):
    """Wraps another optimizer, whose groups it has; parameters go half of the way."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        self.inner = inner
        super().__init__(inner.param_groups, inner.defaults)
        self.param_groups = inner.param_groups
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["exp_avg"] = p.detach().clone()

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        self.inner.step()
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state[p]["exp_avg"]
                kept.lerp_(p, 0.5)
                p.copy_(kept)


def test_an_optimizer_may_wrap_another_one(program: Program) -> None:
    def build() -> Made:
        model = net()
        optimizer = Slow(torch.optim.Adam(model.parameters(), lr=0.1))
        return model, stepping(model, optimizer), optimizer

    same_as_torch(program, build)


def test_two_optimizers_of_the_same_parameters_have_their_own_states(program: Program) -> None:
    def build() -> Made:
        model = net()
        first, second = (torch.optim.Adam(model.parameters(), lr=rate) for rate in (0.1, 0.03))

        def step(x: Tensor) -> Tensor:
            loss: Tensor = (model(x) - 1).square().mean()
            for optimizer in (first, second):
                optimizer.zero_grad()
                loss = (model(x) - 1).square().mean()
                loss.backward()
                optimizer.step()
            return loss

        return model, step, first

    same_as_torch(program, build)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_program_is_refused_by_name(name: str) -> None:
    model = net()
    step = stepping(model, getattr(torch.optim, name)(model.parameters()))
    with pytest.raises(UnsupportedProgram, match=f"{name} cannot be traced: it"):
        frontend.training_step(step, next(batches()))


SCHEDULERS: dict[str, Callable[[torch.optim.Optimizer], Any]] = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 1, 0.5),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [1, 2]),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, total_iters=2),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.5),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, 4),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 3),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2),
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, [lambda n: 0.5**n, lambda n: 0.9**n]),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda n: 0.5),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, 2),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, [0.1, 0.2], total_steps=4),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o), lr_scheduler.ExponentialLR(o, 0.5)], [1]
    ),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.LinearLR(o), lr_scheduler.ExponentialLR(o, 0.5)]
    ),
    "SWALR": lambda o: torch.optim.swa_utils.SWALR(o, 0.01, 2),
}


def in_groups(kind: str, schedule: Callable[[torch.optim.Optimizer], Any]) -> Made:
    """A model with two groups of parameters, the second frozen in part."""
    model = net()
    model[2].bias.requires_grad_(False)
    groups: list[dict[str, Any]] = [
        {"params": model[0].parameters(), "lr": 0.05},
        {"params": model[2].parameters(), "weight_decay": 0.2},
    ]
    optimizer: torch.optim.Optimizer
    if kind == "SGD":
        optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.8)
    else:
        optimizer = torch.optim.Adam(groups, lr=0.1)
    return model, stepping(model, optimizer), schedule(optimizer)


@pytest.mark.parametrize("name", by_tier(SCHEDULERS, ("LambdaLR", "OneCycleLR", "SWALR")))
def test_schedulers_change_what_the_program_reads(name: str, program: Program) -> None:
    same_as_torch(program, lambda: in_groups("SGD", SCHEDULERS[name]), lambda s: s.step())


@pytest.mark.parametrize("name", by_tier(["CyclicLR", "OneCycleLR"], ["CyclicLR"]))
def test_betas_may_be_cycled(name: str, program: Program) -> None:
    same_as_torch(program, lambda: in_groups("Adam", SCHEDULERS[name]), lambda s: s.step())


def test_a_plateau_is_left_by_the_loss(program: Program) -> None:
    def schedule(optimizer: torch.optim.Optimizer) -> Any:
        return lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)

    same_as_torch(program, lambda: in_groups("SGD", schedule), lambda s: s.step(1.0))


@pytest.mark.parametrize("kind", by_tier(["ema", "ema of each", "mean"], ["ema of each", "mean"]))
def test_averages_of_models_are_in_the_step(kind: str, program: Program) -> None:
    options: dict[str, Any] = {
        "ema": {"multi_avg_fn": get_ema_multi_avg_fn(0.9)},
        "ema of each": {"avg_fn": get_ema_avg_fn(0.9), "use_buffers": True},
        "mean": {},
    }[kind]

    def build() -> Made:
        model = net()
        model.append(nn.BatchNorm1d(3).double())
        averaged = AveragedModel(model, **options)
        inner = stepping(model, torch.optim.SGD(model.parameters(), lr=0.1))

        def step(x: Tensor) -> Tensor:
            loss = inner(x)
            averaged.update_parameters(model)
            return loss

        return averaged, step, None

    same_as_torch(program, build)


def test_an_optimizer_may_be_a_function(program: Program) -> None:
    def build() -> Made:
        model = net()
        momenta = [torch.zeros_like(p) for p in model.parameters()]
        kept = nn.ParameterList(momenta).requires_grad_(False)

        def step(x: Tensor) -> Tensor:
            loss = (model(x) - 1).square().mean()
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                torch._foreach_lerp_(list(kept), gradients, 0.1)
                for parameter, momentum in zip(model.parameters(), kept, strict=True):
                    parameter.sub_(0.1 * momentum.sign())
            return loss

        return model, step, None

    same_as_torch(program, build)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_of_both_kinds(reentrant: bool, program: Program) -> None:
    def build() -> Made:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            inner = checkpoint(model[1:], model[0](x), use_reentrant=reentrant)
            loss: Tensor = (inner - 1).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5, foreach=True)
            optimizer.step()
            return loss

        return model, step, None

    same_as_torch(program, build)


def test_what_torch_compiles_is_traced_as_it_is_written(program: Program) -> None:
    def build() -> Made:
        model = net()
        compiled: Any = torch.compile(model, backend="eager")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return model, stepping(compiled, optimizer), None

    same_as_torch(program, lambda: (*build()[:2], None))


def test_a_number_that_an_optimizer_decides_by_is_an_assumption() -> None:
    _, step, schedule = in_groups("SGD", SCHEDULERS["OneCycleLR"])
    sdfg = frontend.training_step(step, next(batches()))
    binding: Any = binding_of(sdfg)
    optimizer = schedule.optimizer
    optimizer.param_groups[0]["momentum"] = 0.5
    binding.arguments()
    optimizer.param_groups[0]["momentum"] = 0.0
    with pytest.raises(ArgumentError, match="whether 'momentum' of group 0"):
        binding.arguments()


class Replacing(torch.optim.Optimizer):
    """Momentum that is a new tensor after each step."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.1})
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["momentum"] = torch.zeros_like(p)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["momentum"] = 0.9 * self.state[p]["momentum"] + p.grad
                p.sub_(self.state[p]["momentum"], alpha=0.1)


def test_states_that_a_step_replaces_are_written(program: Program) -> None:
    def build() -> Made:
        model = net()
        optimizer = Replacing(model.parameters())
        return model, stepping(model, optimizer), optimizer

    same_as_torch(program, build)


class Returning(torch.optim.Optimizer):
    """Goes away from parameters, and comes back by handing their old memory over."""

    def __init__(self, parameters: Any, reads: bool = False) -> None:
        super().__init__(parameters, {"lr": 0.1, "reads": reads})
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["old"] = p.data

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if group["reads"]:
                    p.add_(self.state[p]["old"])
                self.state[p]["old"] = p.data.clone()
                p.mul_(3)
                p.data = self.state[p]["old"]
                p.sub_(p.grad, alpha=0.1)


def test_states_in_the_memory_of_a_parameter_get_their_own(program: Program) -> None:
    def build() -> Made:
        model = net()
        optimizer = Returning(model.parameters())
        return model, stepping(model, optimizer), optimizer

    same_as_torch(program, build)
    model = net()
    step = stepping(model, Returning(model.parameters(), reads=True))
    with pytest.raises(UnsupportedProgram, match="is in the memory of a parameter"):
        frontend.training_step(step, next(batches()))
