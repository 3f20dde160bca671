"""Custom operators before and behind views, sums and each other, with results of all types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import distspmd
from distspmd import frontend

Function = Callable[..., Any]


def operator(name: str, fake: Function, like: Function) -> Callable[[Function], Any]:
    """Make a function an operator, for which another one is registered."""

    def made(function: Function) -> Any:
        found = torch.library.custom_op(f"among::{name}", function, mutates_args=())
        found.register_fake(fake)
        frontend.register_operator(f"among::{name}", like)
        return found

    return made


@operator("halved", torch.empty_like, lambda x: x / 2)
def halved(x: Tensor) -> Tensor:
    return x / 2


@operator("scaled", lambda x, s: torch.empty_like(x), lambda x, s: x * s)
def scaled(x: Tensor, s: Tensor) -> Tensor:
    return x * s


@operator("table", torch.empty, lambda n: np.arange(n).astype(np.float32) * 2)
def table(n: int) -> Tensor:
    return torch.arange(n).float() * 2


def until_small_in_numpy(x: Any) -> Any:
    halvings = 0
    while np.max(np.abs(x)) > 0.1:
        x = x / 2
        halvings += 1
    return x, np.full((1,), halvings)


@operator(
    "until_small",
    lambda x: (torch.empty_like(x), x.new_empty((1,), dtype=torch.int64)),
    until_small_in_numpy,
)
def until_small(x: Tensor) -> tuple[Tensor, Tensor]:
    halvings, x = 0, x.clone()
    while x.abs().max() > 0.1:
        x = x / 2
        halvings += 1
    return x, torch.tensor([halvings])


def places_in_numpy(x: Any) -> Any:
    return x > 0, np.argmax(x, axis=1)


@operator(
    "places",
    lambda x: (
        torch.empty_like(x, dtype=torch.bool),
        x.new_empty(x.shape[:1], dtype=torch.int64),
    ),
    places_in_numpy,
)
def places(x: Tensor) -> tuple[Tensor, Tensor]:
    return x > 0, x.argmax(1)


def solved_in_numpy(x: Any) -> Any:
    return np.sort(x, axis=0), np.linalg.solve(x[:3, :3] + 4 * np.eye(3, dtype=x.dtype), x[:3])


@operator("solved", lambda x: (torch.empty_like(x), x.new_empty((3, x.shape[1]))), solved_in_numpy)
def solved(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sort(0)[0], torch.linalg.solve(x[:3, :3] + 4 * torch.eye(3), x[:3])


def heads(x: Tensor) -> Tensor:
    return halved(x).view(7, 2, 3).permute(1, 0, 2)


CASES: dict[str, Function] = {
    "views": lambda x: heads(x) @ heads(halved(x)).mT,
    "a part of a view": lambda x: halved(halved(x).reshape(-1))[3:20:2],
    "dimensions of one element": lambda x: halved(halved(x[:, :1])[:1]) + 1,
    "a scalar": lambda x: scaled(x, halved(x.sum())),
    "data decide how often": lambda x: until_small(x * 3)[0] * 2 + until_small(x)[1],
    "a result that nobody uses": lambda x: until_small(x)[0] + 1,
    "no operand": lambda x: x + table(6),
    "conditions and places": lambda x: torch.where(places(x)[0], x, 0.0) + places(x)[1][:, None],
    "numbers of 16 bits": lambda x: halved(x.bfloat16()) + 1,
    "complex numbers": lambda x: halved(torch.complex(x, x)),
    "an operand twice": lambda x: scaled(x, x) + scaled(halved(x), x[0, 0]),
    "equations": lambda x: solved(solved(x)[0])[1] + solved(x)[0][:3],
    "nothing else": halved,
    "two orders": lambda x: torch.stack([halved(x), halved(x.T.contiguous()).T]),
}


class Calls(nn.Module):
    """Calls a function."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def run(comm: Any) -> None:
    """Each of them under a schedule that is searched for, beside torch."""
    torch.manual_seed(0)
    x = torch.randn(7, 6)
    for name, function in CASES.items():
        lowering = None
        if comm.rank == 0:
            sdfg = frontend.torch_module(Calls(function), x)
            lowering = distspmd.lower(sdfg, ranks=comm.size)
        with distspmd.compile(lowering, comm) as program:
            found = program(x) if comm.rank == 0 else program()
        if comm.rank == 0:
            torch.testing.assert_close(found, function(x), rtol=1e-4, atol=1e-5, msg=name)
