"""What ranks pass that do not hold an argument is what rank 0 passes, or it is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from conftest import call_on_ranks
from torch import Tensor, nn

import distspmd
from distspmd import frontend
from distspmd.errors import ArgumentError
from distspmd.execution.passed import Passed


@pytest.mark.parametrize(
    "value",
    [
        np.arange(200_000.0).reshape(2, -1).T,
        np.arange(6)[::2],
        np.ones((), np.float32),
        torch.arange(200_000.0).reshape(2, -1).T,
        torch.zeros(3, 0),
        torch.ones(3, dtype=torch.bfloat16, requires_grad=True),
        torch.ones(3, dtype=torch.complex64),
        torch.ones((), dtype=torch.bool),
    ],
)
def test_arrays_of_any_form_are_told_from_others(value: Any) -> None:
    told = Passed.of(value)
    assert told == Passed.of(value.clone() if isinstance(value, Tensor) else value.copy())
    assert told is not None
    if told.shape != (3, 0):
        assert told != Passed.of(
            torch.zeros_like(value) if isinstance(value, Tensor) else np.zeros_like(value)
        )
    assert told != Passed.of(value[None])


def test_of_other_values_nothing_is_told() -> None:
    assert Passed.of(3) is None
    assert Passed.of(np.array([None])) is None
    assert Passed.of(torch.ones(3, device="meta")) == Passed("float32", (3,))
    assert Passed.of(np.ones(3), looks_inside=False) == Passed("float64", (3,))


def test_a_shard_for_each_rank_is_refused_and_the_same_for_all_is_taken() -> None:
    call_on_ranks("execution.test_passed", "of_torch(comm)", 2)


def test_arrays_that_differ_are_refused_where_rank_0_holds_them() -> None:
    call_on_ranks("execution.test_passed", "of_numpy(comm)", 2)


def of_torch(comm: Any) -> None:
    """As scripts for DDP are written, and as scripts for all ranks are."""
    torch.manual_seed(0)
    module = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    def step(x: Tensor, scale: float) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = module(x).square().mean() * scale
        loss.backward()
        optimizer.step()
        return loss

    x = torch.randn(8, 3)
    with frontend.partitioned(step, frontend.data_parallel(2), comm) as train:
        shard = x[comm.rank :: 2]
        with pytest.raises(ArgumentError, match=r"rank 1 passes tensor 0 \(float32\[4, 3\]\), but"):
            train(shard, 1.0)
        with pytest.raises(ArgumentError, match=r"passes no such one.* whole batch on rank 0"):
            train(*((1.0,) if comm.rank == 0 else (x, 1.0)))
        same = train(x, 1.0)
        alone = train(x, 1.0) if comm.rank == 0 else train()
        assert comm.rank or alone < same


@distspmd.program(schedule={"y": (2,)})
def scaled(x: Any, y: Any) -> None:
    """A program that writes an argument."""
    y[:] = x * 2


def of_numpy(comm: Any) -> None:
    """Arrays that all ranks have, and those that each has for itself."""
    whole, out = np.arange(6.0), np.full(6, comm.rank, np.float64)
    with pytest.raises(ArgumentError, match=r"rank 1 passes 'x' \(float64\[6\]\), but rank 0 pass"):
        scaled(whole + comm.rank, out)
    with pytest.raises(ArgumentError, match=r"rank 0 passes float64\[6\]\. .*'distributed'"):
        scaled(whole if comm.rank == 0 else whole[:3], out)
    scaled(whole, out)
    scaled(whole + comm.rank, out)  # only the first call of a program looks
    scaled.close()
    scaled(whole if comm.rank == 0 else None, out if comm.rank == 0 else None)
    assert comm.rank or out.tolist() == (whole * 2).tolist()
