"""Custom operators of torch, the functions of NumPy that are registered for them, and ranks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import distspmd
from distspmd import frontend

ROWS, WIDTH = 7, 5
STEPS = 3


@torch.library.custom_op("small::swish", mutates_args=())
def swish(x: Tensor, beta: float = 1.0) -> Tensor:
    return x * torch.sigmoid(beta * x)


@torch.library.custom_op("small::swish_backward", mutates_args=())
def swish_backward(gradient: Tensor, x: Tensor, beta: float) -> Tensor:
    s = torch.sigmoid(beta * x)
    return gradient * (s + beta * x * s * (1 - s))


@torch.library.custom_op("small::moments", mutates_args=())
def moments(x: Tensor, dim: int, *, ddof: int = 1) -> tuple[Tensor, Tensor]:
    return x.mean(dim), x.var(dim, correction=ddof)


@torch.library.custom_op("small::turned", mutates_args=())
def turned(x: Tensor, shifts: list[int]) -> Tensor:
    for shift in shifts:
        x = x + x.roll(shift, 0)
    return x


@torch.library.custom_op("small::relu", mutates_args=())
def relu(x: Tensor) -> Tensor:
    """What it is called says nothing of what it computes."""
    return x * x - 1


@torch.library.custom_op("small::weighted", mutates_args=())
def weighted(xs: list[Tensor], weights: Tensor | None = None) -> Tensor:
    total = sum(xs[1:], xs[0].clone())
    return total if weights is None else total * weights


@torch.library.custom_op("small::total", mutates_args=())
def total(x: Tensor) -> Tensor:
    return x.sum()


@torch.library.custom_op("small::running", mutates_args=())
def running(x: Tensor, decay: float) -> Tensor:
    rows = [x[0]]
    for n in range(1, x.shape[0]):
        rows.append(decay * rows[-1] + x[n])
    return torch.stack(rows)


for _like in (swish, turned, relu, running):
    _like.register_fake(lambda x, *_: torch.empty_like(x))
swish_backward.register_fake(lambda gradient, x, beta: torch.empty_like(x))
weighted.register_fake(lambda xs, weights=None: torch.empty_like(xs[0]))
total.register_fake(lambda x: x.new_empty(()))


@moments.register_fake
def _(x: Tensor, dim: int, *, ddof: int = 1) -> tuple[Tensor, Tensor]:
    shape = [n for d, n in enumerate(x.shape) if d != dim]
    return x.new_empty(shape), x.new_empty(shape)


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.beta = inputs[1]


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
    return swish_backward(gradient, *ctx.saved_tensors, ctx.beta), None


swish.register_autograd(_backward, setup_context=_keep)


class InNumPy:
    """What is registered, each under its own name."""

    @staticmethod
    def swish(x: Any, beta: float) -> Any:
        return x / (1 + np.exp(-beta * x))

    @staticmethod
    def swish_backward(gradient: Any, x: Any, beta: float) -> Any:
        s = 1 / (1 + np.exp(-beta * x))
        return gradient * (s + beta * x * s * (1 - s))

    @staticmethod
    def moments(x: Any, dim: int, *, ddof: int) -> Any:
        return np.mean(x, axis=dim), np.var(x, axis=dim, ddof=ddof)

    @staticmethod
    def turned(x: Any, shifts: list[int]) -> Any:
        for shift in shifts:
            x = x + np.roll(x, shift, axis=0)
        return x

    @staticmethod
    def relu(x: Any) -> Any:
        return x * x - 1

    @staticmethod
    def weighted(xs: list[Any], weights: Any) -> Any:
        found = 0 * xs[0]
        for x in xs:
            found += x
        return found if weights is None else found * weights

    @staticmethod
    def total(x: Any) -> Any:
        return np.sum(x)

    @staticmethod
    def running(x: Any, decay: float) -> Any:
        found = x.copy()
        for n in range(1, x.shape[0]):
            found[n] += decay * found[n - 1]
        return found


NAMES = [name for name in vars(InNumPy) if not name.startswith("_")]


def register(*names: str) -> None:
    """Register the functions, or some of them."""
    for name in names or NAMES:
        frontend.register_operator(f"small::{name}", getattr(InNumPy, name), replace=True)


class Reals(nn.Module):
    """All of these operators on real numbers; some of them twice, with other attributes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(WIDTH, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        hidden = swish(swish(self.first(x), 2.0), beta=-0.5)
        mean, variance = moments(hidden, 0)
        own, others = moments(hidden.T, 1, ddof=0)
        mixed = weighted([hidden, relu(hidden), hidden], variance + others)
        late = running(self.last(mixed), 0.5)
        return late, mean, own, torch.ops.small.total(late) * weighted([late])


class Wholes(nn.Module):
    """Some of them on integers."""

    def forward(self, x: Tensor) -> Tensor:
        return turned(relu(turned(x, [1, 2])), [3]) + total(x)


CASES = [(Reals, torch.float32), (Reals, torch.float64), (Wholes, torch.int64)]


def case(kind: type[nn.Module], dtype: torch.dtype) -> tuple[nn.Module, Tensor]:
    """A module, and what it is called with."""
    torch.manual_seed(1)
    module = kind()
    if dtype.is_floating_point:
        return module.to(dtype), torch.randn(ROWS, WIDTH, dtype=dtype)
    return module, torch.randint(-9, 9, (ROWS, WIDTH), dtype=dtype)


def forward(comm: Any) -> None:
    """Modules beside torch."""
    register()
    for kind, dtype in CASES:
        module, x = case(kind, dtype)
        sdfg = frontend.torch_module(module, x)
        lowering = distspmd.lower(sdfg, {"*": {"batch": "data"}}, mesh={"data": comm.size})
        with distspmd.compile(lowering, comm) as program:
            found = program(x) if comm.rank == 0 else program()
        if comm.rank == 0:
            expected = module(x)
            single = isinstance(expected, Tensor)
            mine, theirs = ([x] if single else [*x] for x in (found, expected))
            for a, b in zip(mine, theirs, strict=True):
                torch.testing.assert_close(a, b.detach(), rtol=1e-4, atol=1e-5)


def step_of(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """A step of training."""
    optimizer = torch.optim.Adam(module.parameters(), lr=0.1)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = module(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


class Deep(nn.Module):
    """A network of which an activation is an operator of its user."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(WIDTH, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(swish(swish(self.first(x)), beta=0.5))


def train(comm: Any) -> None:
    """Training beside torch; an operator that is registered anew makes another program."""
    register()
    module = Deep()
    reference = step_of(copy.deepcopy(module))
    step = frontend.partitioned(step_of(module), frontend.data_parallel(comm.size), comm)
    for _ in range(STEPS):
        x = torch.randn(ROWS, WIDTH)
        loss, expected = step(x) if comm.rank == 0 else step(), reference(x)
        if comm.rank == 0:
            assert not step.not_kept, step.not_kept
            torch.testing.assert_close(loss, expected.detach(), rtol=1e-4, atol=1e-6)
