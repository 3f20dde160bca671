"""A second start finds the program of the first, without a trace, and trains as torch does."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from typing import Any

import torch
from conftest import call_on_ranks
from torch import Tensor, nn

from distspmd import frontend
from distspmd.cache.folders import cache_folder

STEPS = 3


def build(scale: float, salt: str) -> tuple[Callable[[Tensor], Tensor], nn.ModuleList]:
    """A step that has noise, a buffer, a constant and a gradient that stays."""
    torch.manual_seed(0)
    # A bias before a norm has no gradient but rounding, of which AdamW makes whole steps.
    first = nn.Linear(6, 8, bias=False)
    module = nn.Sequential(first, nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))
    head = nn.Linear(3, 3)
    both = nn.ModuleList([module, head])
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)

    def step(x: Tensor) -> Tensor:
        assert salt
        optimizer.zero_grad()
        weights = torch.tensor([1.0, 2.0, 3.0])
        loss: Tensor = (both[1](both[0](x)) * weights).square().mean() * scale
        loss.backward()
        optimizer.step()
        return loss

    return step, both


def start(comm: Any, salt: str, found: int) -> None:
    """Train with a program that is found or not, and with another one, beside torch."""
    for scale, is_found in ((2.0, found), (3.0, 0)) if found else ((2.0, 0),):
        step, module = build(scale, salt) if comm.rank == 0 else (None, None)
        train = frontend.partitioned(step, frontend.zero(1, comm.size), comm)
        reference, other = build(scale, salt)
        torch.manual_seed(1)
        for _ in range(STEPS):
            x = torch.randn(8, 6)
            loss, expected = train(x) if comm.rank == 0 else train(), reference(x)
            if comm.rank == 0:
                assert not train.not_kept, train.not_kept
                assert train.found == is_found
                torch.testing.assert_close(loss, expected.detach(), rtol=1e-4, atol=1e-5)
        train.collect()
        if comm.rank == 0:
            for mine, theirs in zip(module.parameters(), other.parameters(), strict=True):
                torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)
            for mine, theirs in zip(module[1].parameters(), other[1].parameters(), strict=True):
                torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-4)
        train.close()


def test_a_second_start_finds_the_program_of_the_first() -> None:
    entries, salt = cache_folder() / "steps", uuid.uuid4().hex
    before = set(entries.glob("*"))
    try:
        call_on_ranks("training.test_kept_programs", f"start(comm, {salt!r}, 0)", ranks=2)
        call_on_ranks("training.test_kept_programs", f"start(comm, {salt!r}, 1)", ranks=2)
    finally:
        for folder in set(entries.glob("*")) - before:
            shutil.rmtree(folder, ignore_errors=True)
