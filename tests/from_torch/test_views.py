"""Chains of views beside torch: whatever groups dimensions are viewed in, elements are the same."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lowering.on_paper import problems
from torch import Tensor, nn
from training.models import Rotary

import distspmd
from distspmd import frontend
from from_torch.kernels_in_numpy import Program

View = Callable[[Tensor], Tensor]
ELEMENTS = 400
"""Of a tensor, beyond which it is not repeated."""


def reshapes(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    left, new = math.prod(shape), list[int]()
    while left > 1 and len(new) < 4:
        new.append(draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0])))
        left //= new[-1]
    new.append(left)
    return lambda x: x.reshape(new)


def permutes(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    order = draw(st.permutations(range(len(shape))))
    return lambda x: x.permute(order)


def slices(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    dim = draw(st.integers(0, len(shape) - 1))
    begin = draw(st.integers(0, shape[dim] - 1))
    end = draw(st.integers(begin + 1, shape[dim]))
    step = draw(st.integers(1, 3))
    return lambda x: x[(slice(None),) * dim + (slice(begin, end, step),)]


def selects(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    dim = draw(st.integers(0, len(shape) - 1))
    place = draw(st.integers(0, shape[dim] - 1))
    return lambda x: x.select(dim, place)


def expands(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    dim, times = draw(st.integers(0, len(shape))), draw(st.integers(1, 3))
    new = (*shape[:dim], times, *shape[dim:])
    return lambda x: x.unsqueeze(dim).expand(new)


def repeats(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    dim, times = draw(st.integers(0, len(shape) - 1)), draw(st.integers(1, 3))
    return lambda x: x.repeat_interleave(times, dim)


def flips(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    dim = draw(st.integers(0, len(shape) - 1))
    return lambda x: x.flip(dim)


def rotates(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    place = draw(st.integers(0, shape[-1]))
    return lambda x: torch.cat([-x[..., place:], x[..., :place]], -1)


def squares(draw: st.DrawFn, shape: tuple[int, ...]) -> View:
    return lambda x: x * x + 1


KINDS = (reshapes, permutes, slices, selects, expands, repeats, flips, rotates, squares)


@st.composite
def chains(draw: st.DrawFn, shape: tuple[int, ...]) -> list[View]:
    found: list[View] = []
    x = torch.zeros(shape)
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(KINDS))
        if kind is not reshapes and x.dim() == 0:
            continue
        if kind in (expands, repeats) and x.numel() > ELEMENTS:
            continue
        found.append(kind(draw, tuple(x.shape)))
        x = found[-1](x)
    return found


class Chains(nn.Module):
    """Two chains of views of a parameter, and what they give together."""

    def __init__(self, shape: tuple[int, ...], first: list[View], second: list[View]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(shape, dtype=torch.float64))
        self.first, self.second = first, second

    def forward(self, x: Tensor) -> Tensor:
        one, other = self.weight, self.weight * x
        for view in self.first:
            one = view(one)
        for view in self.second:
            other = view(other)
        mixed = one.reshape(-1)[: other.numel()]
        other = other.reshape(-1)[: mixed.numel()]
        product = mixed * other + (self.weight.sin() * x).reshape(-1)[0]
        return product.reshape(self._shape(product.numel())).sum(0)

    @staticmethod
    def _shape(count: int) -> tuple[int, int]:
        rows = next(n for n in range(math.isqrt(count), 0, -1) if count % n == 0)
        return rows, count // rows


@st.composite
def modules(draw: st.DrawFn) -> Chains:
    shape = draw(st.sampled_from([(2, 6, 4), (12,), (3, 8), (2, 2, 3, 2), (4, 6), (5, 4)]))
    torch.manual_seed(draw(st.integers(0, 3)))
    return Chains(shape, draw(chains(shape)), draw(chains(shape)))


def step_of(module: nn.Module) -> Callable[[Tensor], Tensor]:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = module(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("examples", [10, pytest.param(150, marks=pytest.mark.slow)])
def test_chains_of_views_have_the_elements_and_gradients_of_torch(examples: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        program = Program(patch)

        @settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(modules())
        def check(module: Chains) -> None:
            x = torch.randn_like(module.weight).detach()
            same = copy.deepcopy(module)
            (loss,), live = program.step(step_of(module), x)
            torch.testing.assert_close(loss, step_of(same)(x).detach())
            torch.testing.assert_close(live["weight"], same.weight.detach())

        check()


def test_heads_of_turned_queries_that_share_keys_are_split() -> None:
    torch.manual_seed(0)
    sdfg = frontend.torch_module(Rotary(16, 4, 2), torch.randn(3, 5, 16))
    lowering = distspmd.lower(sdfg, {"bmm": {"h": 2, "s": 2}})
    assert not list(problems(lowering))
    moved = {memlet.data for memlet in lowering.memlets if memlet.solution.cost.nbytes}
    assert not {name for name in moved if name.startswith(("q_mm", "k_mm", "v_mm", "bmm"))}
