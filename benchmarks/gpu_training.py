"""A training step of a GPT for `gpu.py`: ours on ranks with a device each, and PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from training import GPT, step_of

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


def made(size: Size, place: str) -> tuple[Callable[..., Tensor], tuple[Tensor, Tensor]]:
    """A step of training, whose parameters are the same each time, and its batch."""
    torch.manual_seed(0)
    model = GPT(size.words, size.width, size.heads, size.length, size.layers).to(place)
    batch = torch.randint(0, size.words, (size.batch, size.length + 1)).to(place)
    return step_of(model, model), (batch[:, :-1].contiguous(), batch[:, 1:].flatten())


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
