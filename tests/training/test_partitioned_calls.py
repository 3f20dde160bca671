"""Steps and modules that are called as before, by all ranks: other batches, modes, settings."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from torch import Tensor, nn

from distspmd import frontend
from distspmd.errors import ArgumentError, ScheduleWarning
from distspmd.execution.binding import binding_of
from distspmd.frontend.from_torch.arguments import MemoryBinding
from distspmd.frontend.from_torch.partitioned import Given


def build() -> tuple[nn.Module, torch.optim.Optimizer, Callable[..., Tensor]]:
    """A module with buffers, its optimizer, and their step."""
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)
    )
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(x), y, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        return loss

    return module, optimizer, step


def batch(size: int) -> tuple[Tensor, Tensor]:
    return torch.randn(size, 6), torch.randint(0, 3, (size,))


def bound() -> tuple[nn.Module, torch.optim.Optimizer, MemoryBinding]:
    module, optimizer, step = build()
    binding = binding_of(frontend.training_step(step, *batch(4)))
    assert isinstance(binding, MemoryBinding)
    return module, optimizer, binding


def test_what_others_write_into_live_tensors_is_noticed() -> None:
    module, optimizer, binding = bound()
    names = sorted(binding.names)

    def changed() -> set[str]:
        binding.arguments()
        return {binding.live[name].name for name in binding.changed(names)}

    assert not changed()
    assert not changed()
    module.load_state_dict({k: v + 1 for k, v in module.state_dict().items()})
    assert changed() == set(module.state_dict())
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert changed() == {f"{name}.momentum_buffer" for name, _ in module.named_parameters()}
    assert not changed()


def test_calls_that_differ_in_shape_or_number_need_programs_of_their_own() -> None:
    def inner(x: dict[str, Tensor], scale: float) -> Tensor:
        return x["a"] * scale

    def key(size: int, scale: float) -> Any:
        given = Given.of(inner, ({"a": torch.ones(size)}, scale), {})
        assert given.function(*given.tensors).tolist() == [scale] * size
        return given.key

    assert key(3, 2.0) == key(3, 2.0)
    assert key(3, 2.0) != key(4, 2.0)
    assert key(3, 2.0) != key(3, 3.0)
    with pytest.raises(ArgumentError, match="called with a set"):
        Given.of(inner, ({1},), {})


def test_ranks_follow_batches_modes_settings_and_state_dicts() -> None:
    call_on_ranks("training.test_partitioned_calls", "follow(comm)", ranks=2)


def test_gradients_that_a_step_clears_at_its_end_are_not_added_to_those_of_the_next() -> None:
    call_on_ranks("training.test_partitioned_calls", "clear_at_the_end(comm)", 2)


def clear_at_the_end(comm: Any) -> None:
    """As many write it: backward, step, zero_grad."""

    def made() -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
        torch.manual_seed(0)
        module = nn.Linear(3, 2).double()
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)

        def step(x: Tensor) -> Tensor:
            loss: Tensor = module(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        return module, step

    (module, step), (other, reference) = made(), made()
    mine = step if comm.rank == 0 else None
    with frontend.partitioned(mine, frontend.data_parallel(2), comm) as call:
        for _ in range(4):
            x = torch.randn(4, 3, dtype=torch.float64)
            call(*([x] if mine else []))
            reference(x)
        call.collect()
    if comm.rank == 0:
        for p, q in zip(module.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(p, q)


def evaluate_few(evaluate: Any, other: nn.Module, root: bool) -> None:
    """Batches of which a rank has less, and one that all ranks compute alike."""
    for size in (3, 1):
        x = batch(size)[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ScheduleWarning)
            found = evaluate(x) if root else evaluate()
        if root:
            torch.testing.assert_close(found, other(x).detach(), rtol=1e-4, atol=1e-5)


def follow(comm: Any) -> None:
    """What a user does to a module between calls, beside torch on rank 0."""
    root = comm.rank == 0
    (module, optimizer, step), (other, its, reference) = build(), build()
    train = frontend.partitioned(step, frontend.fsdp(comm.size), comm)
    evaluate = frontend.partitioned(module, frontend.data_parallel(comm.size), comm)
    torch.manual_seed(3)

    def trained(size: int) -> None:
        given = batch(size)
        loss = train(*given) if root else train()
        if root:
            torch.testing.assert_close(loss, reference(*given).detach(), rtol=1e-4, atol=1e-5)

    for size in (8, 5, 8):  # the last batch of an epoch has fewer
        trained(size)
    assert len(train.programs) == 2
    for _ in range(2):
        x = batch(8)[0]
        module.eval(), other.eval()
        found = evaluate(x) if root else evaluate()
        if root:
            torch.testing.assert_close(found, other(x).detach(), rtol=1e-4, atol=1e-5)
        module.train(), other.train()
        trained(8)
    assert len(evaluate.programs) == 1
    module.eval(), other.eval()
    evaluate_few(evaluate, other, root)
    module.train(), other.train()
    if root:
        changed = {
            k: v + 0.1 if v.is_floating_point() else v for k, v in other.state_dict().items()
        }
        module.load_state_dict(changed), other.load_state_dict(changed)
    trained(8)
    made: list[int] = []
    for decay in (0.1, 0.2, 0.3):  # it was 0, and is a number that the program reads from now on
        optimizer.param_groups[0]["weight_decay"] = its.param_groups[0]["weight_decay"] = decay
        trained(8)
        made.append(len(train.programs))
    assert made == [3, 3, 3]
    train.collect()
    if root:
        for ours, theirs in zip(
            module.state_dict().values(), other.state_dict().values(), strict=True
        ):
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    train.close()
    evaluate.close()
