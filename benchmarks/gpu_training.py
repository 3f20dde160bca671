"""A training step of a GPT for `gpu.py`: ours on ranks with a device each, and PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import distspmd
from distspmd import frontend


@dataclass(frozen=True)
class Size:
    """Extents of a GPT and of its batch."""

    batch: int = 16
    length: int = 512
    width: int = 1024
    heads: int = 16
    layers: int = 6
    words: int = 32_000


SMALL = Size(batch=4, length=6, width=8, heads=2, layers=1, words=20)


class Block(nn.Module):
    """Causal attention and a perceptron, each behind a norm and beside what goes in."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.before, self.behind = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
        self.queries, self.keys, self.values, self.out = (
            nn.Linear(size.width, size.width) for _ in range(4)
        )
        inner = 4 * size.width
        self.perceptron = nn.Sequential(
            nn.Linear(size.width, inner), nn.GELU(), nn.Linear(inner, size.width)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        seen = self.before(x)
        of_heads = (batch, length, self.heads, width // self.heads)
        q, k, v = (
            made(seen).reshape(of_heads).transpose(1, 2)
            for made in (self.queries, self.keys, self.values)
        )
        heads = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(heads.transpose(1, 2).reshape(batch, length, width))
        return x + self.perceptron(self.behind(x))


class GPT(nn.Module):
    """Words and their places go in, scores of the next words come out."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.words = nn.Embedding(size.words, size.width)
        self.places = nn.Parameter(torch.randn(size.length, size.width) / 50)
        self.blocks = nn.Sequential(*(Block(size) for _ in range(size.layers)))
        self.norm = nn.LayerNorm(size.width)
        self.scores = nn.Linear(size.width, size.words)

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(self.norm(self.blocks(self.words(x) + self.places)))


def made(size: Size, place: str) -> tuple[Callable[..., Tensor], tuple[Tensor, Tensor]]:
    """A step of training, whose parameters are the same each time, and its batch."""
    torch.manual_seed(0)
    model = GPT(size).to(place)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batch = torch.randint(0, size.words, (size.batch, size.length + 1)).to(place)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        return loss

    return step, (batch[:, :-1].contiguous(), batch[:, 1:].contiguous())


def compiled(comm: Any, device: str, size: Size) -> tuple[Any, tuple[Tensor, ...]]:
    """The program of a step whose batch is split over all ranks, and what rank 0 passes.

    Parameters and states stay on the ranks between calls.
    """
    lowered, batch = None, ()
    if comm.rank == 0:
        step, batch = made(size, "cuda" if device == "cuda" else "cpu")
        sdfg = frontend.training_step(step, *batch)
        lowered = distspmd.lower(sdfg, frontend.data_parallel(comm.size))
    return distspmd.compile(lowered, comm, device=device), batch


def difference(comm: Any, device: str) -> float:
    """How far losses of a small step are from PyTorch's at most, on rank 0."""
    program, batch = compiled(comm, device, SMALL)
    with program:
        losses = [program(*batch) for _ in range(3)]
    if comm.rank:
        return 0.0
    step, batch = made(SMALL, "cpu")
    return max(abs(float(loss) - float(step(*batch))) for loss in losses)


def of_torch(compiles: bool, size: Size) -> Callable[[], None]:
    """A step of PyTorch on its GPU, which is waited for."""
    step, batch = made(size, "cuda")
    step = torch.compile(step) if compiles else step

    def call() -> None:
        step(*batch)
        torch.cuda.synchronize()

    return call
