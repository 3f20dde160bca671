"""Mixtures of experts on ranks, of a batch too short to be split: words are added up.

Hidden units do not move, and the numbers are those of torch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from torch import Tensor, nn
from torch.nn import functional

import distspmd
from distspmd import frontend
from distspmd.frontend.operators import OPERATORS

BATCH, LENGTH, WIDTH, HIDDEN, CHOSEN, RANKS = 2, 8, 16, 24, 2, 4
WORDS = BATCH * LENGTH
TOKENS = 2 * (RANKS - 1) * WORDS * WIDTH * 8
"""Bytes of an all-reduce of all words in double precision, at all ranks together."""
Act = Callable[[Tensor], Tensor]


def rows_of(ends: Tensor) -> list[slice]:
    """The rows of each expert."""
    ends_of = ends.tolist()
    return [slice(a, b) for a, b in zip([0, *ends_of[:-1]], ends_of, strict=True)]


for _name in ("grouped_mm_fallback", "grouped_mm_fallback_backward"):
    OPERATORS[f"distspmd_tests::{_name}"] = OPERATORS[f"transformers::{_name}"]


@torch.library.custom_op("distspmd_tests::grouped_mm_fallback", mutates_args=())
def grouped_mm_fallback(x: Tensor, w: Tensor, offs: Tensor) -> Tensor:
    """The rows of each expert by its matrix: the operator of `transformers`, in any type."""
    return torch.cat([x[rows] @ w[n] for n, rows in enumerate(rows_of(offs))])


@torch.library.custom_op("distspmd_tests::grouped_mm_fallback_backward", mutates_args=())
def grouped_mm_fallback_backward(
    x: Tensor, w: Tensor, offs: Tensor, g: Tensor
) -> tuple[Tensor, Tensor]:
    rows = rows_of(offs)
    to_x = torch.cat([g[own] @ w[n].T for n, own in enumerate(rows)])
    return to_x, torch.stack([x[own].T @ g[own] for own in rows])


@grouped_mm_fallback.register_fake
def _(x: Tensor, w: Tensor, offs: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], w.shape[2])


@grouped_mm_fallback_backward.register_fake
def _(x: Tensor, w: Tensor, offs: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(w)


def _backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, None]:
    return (*grouped_mm_fallback_backward(*ctx.saved_tensors, g), None)


grouped_mm_fallback.register_autograd(
    _backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
)


class Mixture(nn.Module):
    """Words in the order of their experts, products by groups, and back, as models do it."""

    def __init__(
        self,
        experts: int,
        act: Act,
        *,
        bias: bool = False,
        norm: bool = False,
        after: Act = nn.Identity(),  # noqa: B008 (it has no state)
    ) -> None:
        super().__init__()
        self.after = after
        self.count, self.act, self.norm = experts, act, norm
        self.gate = nn.Linear(WIDTH, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, WIDTH, 2 * HIDDEN) * 0.2)
        self.down = nn.Parameter(torch.randn(experts, HIDDEN, WIDTH) * 0.2)
        self.bias = nn.Parameter(torch.randn(experts, HIDDEN)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, WIDTH)
        shares, chosen = self.gate(flat).softmax(-1).topk(CHOSEN, dim=-1)
        expert, order = chosen.reshape(-1).sort(stable=True)
        counts = torch.histc(expert.float(), bins=self.count, min=0, max=self.count - 1)
        ends = counts.cumsum(0, dtype=torch.int32)
        gate, up = grouped_mm_fallback(flat[order // CHOSEN], self.up, ends).chunk(2, dim=-1)
        hidden = self.act(gate) * up
        if self.bias is not None:
            hidden = hidden + self.bias[expert]
        if self.norm:
            hidden = hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + 1e-6)
        made = self.after(grouped_mm_fallback(hidden, self.down, ends))
        made = made * shares.reshape(-1)[order][:, None]
        back = torch.empty_like(order)
        back[order] = torch.arange(order.shape[0])
        return made[back].view(-1, CHOSEN, WIDTH).sum(1).view_as(x)


class Layer(nn.Module):
    """A mixture between two products that all ranks have."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__()
        self.first, self.mixture = nn.Linear(WIDTH, WIDTH), Mixture(*args, **keywords)
        self.last = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.last(x + self.mixture(x))


class Scattered(Mixture):
    """The same with results that are added where their words are."""

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, WIDTH)
        shares, chosen = self.gate(flat).softmax(-1).topk(CHOSEN, dim=-1)
        expert, order = chosen.reshape(-1).sort(stable=True)
        counts = torch.histc(expert.float(), bins=self.count, min=0, max=self.count - 1)
        ends = counts.cumsum(0, dtype=torch.int32)
        words = order // CHOSEN
        gate, up = grouped_mm_fallback(flat[words], self.up, ends).chunk(2, dim=-1)
        made = grouped_mm_fallback(self.act(gate) * up, self.down, ends)
        made = made * shares.reshape(-1)[order][:, None]
        return torch.zeros_like(flat).index_add(0, words, made).view_as(x)


def build(experts: int = 4, act: Act = functional.silu, **keywords: Any) -> tuple[Layer, Any]:
    torch.manual_seed(0)
    layer = Layer(experts, act, **keywords).double()
    return layer, step_of(layer)


def scattered() -> tuple[Layer, Any]:
    layer, _ = build()
    layer.mixture = Scattered(4, functional.gelu).double()
    return layer, step_of(layer)


def step_of(layer: nn.Module, make: Any = torch.optim.SGD, **settings: Any) -> Any:
    optimizer = make(layer.parameters(), **(settings or {"lr": 0.05, "momentum": 0.9}))

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = functional.mse_loss(layer(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def batch(count: int = BATCH) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    shape = count, LENGTH, WIDTH
    return tuple(torch.randn(shape, generator=generator).double() for _ in range(2))  # type: ignore[return-value]


def moved(step: Any, ranks: int = RANKS) -> list[int]:
    """Bytes of what moves between ranks, but arguments, from the most; plans are proved."""
    sdfg = frontend.training_step(step, *batch())
    lowering = distspmd.lower(sdfg, frontend.experts(ranks))
    found = [m for m in lowering.memlets if m.solution.plan.redistribution.source.partial]
    others = {m.data for m in lowering.memlets} - {m.data for m in found}
    assert others <= {*sdfg.arg_names, "optimizer_0_lr"}
    for memlet in found:
        distspmd.verify(memlet.solution.plan)
    return sorted((m.solution.cost.nbytes for m in found), reverse=True)


SHARES = TOKENS * CHOSEN // WIDTH
"""Bytes of the gradient of what a word gives to each of its experts."""


@pytest.mark.parametrize(
    "make",
    [
        build,
        lambda: build(act=functional.gelu),
        scattered,
    ],
)
def test_words_are_reduced_once_each_way_and_hidden_units_never(make: Any) -> None:
    assert moved(make()[1]) == [TOKENS, TOKENS, SHARES]


def test_code_that_makes_other_than_zero_of_zero_reads_values() -> None:
    assert moved(build(after=torch.cos)[1])[:2] == [CHOSEN * TOKENS, TOKENS]


def test_a_bias_of_each_expert_is_added_to_values() -> None:
    hidden = TOKENS * CHOSEN * HIDDEN // WIDTH
    first, second, third, *_ = moved(build(bias=True)[1])
    assert first >= second >= hidden, "both halves of what a bias is added to"
    assert third == TOKENS, "and nothing of their gradients"


def test_experts_train_as_torch_does_also_where_a_rank_has_none() -> None:
    call_on_ranks("training.test_experts", "train(comm, ['plain', 'cosine'])", 3)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_experts_train_as_torch_does(ranks: int) -> None:
    call_on_ranks("training.test_experts", "train(comm, list(module.MODELS))", ranks)


MODELS: dict[str, Callable[[], tuple[Layer, Any]]] = {
    "plain": lambda: build(4),
    "cosine": lambda: build(5, after=torch.cos),
    "bias": lambda: build(5, bias=True),
    "norm": lambda: build(7, torch.tanh, norm=True),
    "sigmoid": lambda: build(6, torch.sigmoid),
    "scattered": scattered,
}
"""4 experts on 3 ranks leave one with nothing."""


def train(comm: Any, names: list[str]) -> None:
    """Three steps on ranks, beside torch on rank 0."""
    for name in names:
        layer, step = MODELS[name]()
        with torch.no_grad():
            layer.mixture.gate.weight[0] -= 5.0  # hardly a word chooses the first
        same = copy.deepcopy(layer)
        reference = step_of(same)
        program = distspmd.compile(
            lambda step=step: distspmd.lower(
                frontend.training_step(step, *batch()), frontend.experts(comm.size)
            ),
            comm,
        )
        with program:
            for _ in range(3):
                loss = program(*(batch() if comm.rank == 0 else ()))
                if comm.rank == 0:
                    torch.testing.assert_close(loss, reference(*batch()), rtol=1e-10, atol=1e-12)
            program.collect()
        if comm.rank == 0:
            for ours, theirs in zip(layer.parameters(), same.parameters(), strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)
