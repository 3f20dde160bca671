"""The partitioned examples: bytes between ranks against the textbook's, and results as torch's."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from conftest import UNOPTIMISED
from torch import nn

import distspmd
from distspmd import frontend
from distspmd.frontend.tensor_ir.identifiers import identifier
from distspmd.runtime.launch.mpiexec import launch
from training.models import Tied, speak

MODULES = ("data_parallel", "zero", "tensor_parallel", "hybrid")


@pytest.fixture(scope="module")
def examples(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    sys.path.insert(0, str(request.config.rootpath / "examples"))
    yield {name: importlib.import_module(name) for name in (*MODULES, "learning")}
    sys.path.pop(0)


def calls(examples: dict[str, Any], name: str) -> tuple[Any, dict[str, list[tuple[str, int]]]]:
    """Of each array the calls that move it, with the bytes that all ranks receive."""
    training = examples[name].EXAMPLE
    _, _, step = examples["learning"].made(training.build)
    sdfg, lowering = training.lowered(step)
    found: dict[str, list[tuple[str, int]]] = {}
    for memlet in lowering.memlets:
        if memlet.solution.cost.nbytes:
            call = memlet.steps, memlet.solution.cost.nbytes
            found.setdefault(memlet.data, []).append(call)
    return sdfg, found


def sizes(examples: dict[str, Any], name: str) -> dict[str, int]:
    """Bytes of each parameter."""
    module, _, _ = examples["learning"].made(examples[name].EXAMPLE.build)
    return {identifier(key): 4 * p.numel() for key, p in module.named_parameters()}


def test_data_parallel_reduces_each_gradient_once(examples: dict[str, Any]) -> None:
    _, found = calls(examples, "data_parallel")
    ranks = examples["data_parallel"].RANKS
    reduced = sorted(
        nbytes for name, moves in found.items() for call, nbytes in moves if "backward" in name
    )
    whole = sizes(examples, "data_parallel").values()
    assert reduced == sorted(2 * (ranks - 1) * nbytes for nbytes in whole)  # operands, and sums
    made = {call for name, moves in found.items() for call, _ in moves if "backward" in name}
    assert made <= {"all_reduce", "reduce_scatter + all_gather"}
    others = {name for name in found if "backward" not in name}
    assert others == {
        "x",
        "y",
        "optimizer_0_lr",
        "sum_2",
        "sum_3",
    }


def test_zero_scatters_sums_of_gradients_and_gathers_parameters(examples: dict[str, Any]) -> None:
    sdfg, found = calls(examples, "zero")
    ranks = examples["zero"].RANKS
    whole = sizes(examples, "zero")
    assert set(whole) == set(frontend.parameters(sdfg))
    gathered = {name: [n for _, n in found.pop(name)] for name in whole}
    assert gathered == {name: [(ranks - 1) * nbytes] for name, nbytes in whole.items()}
    summed = [found.pop(name) for name in list(found) if "backward" in name]
    scattered = [[("reduce_scatter", (ranks - 1) * nbytes)] for nbytes in whole.values()]
    assert sorted(summed) == sorted(scattered)
    assert set(found) == {"x", "y", "optimizer_0_lr", "sum_2", "sum_3"}  # no states, no activations


def test_tensor_parallel_reduces_twice_a_layer_and_way(examples: dict[str, Any]) -> None:
    module = examples["tensor_parallel"]
    _, found = calls(examples, "tensor_parallel")
    whole = 4 * module.BATCH * module.LENGTH * module.WIDTH
    sums = ("out_addmm", "down_addmm", "up_mm_backward", "qkv_mm_backward")
    assert {name: [n for _, n in found.pop(name)] for name in sums} == {
        name: [2 * (module.RANKS - 1) * whole] for name in sums
    }
    assert set(found) == {"x", "y", "optimizer_0_lr"}


def test_a_hybrid_reduces_activations_in_groups_and_gradients_between_them(
    examples: dict[str, Any],
) -> None:
    module, layer = examples["hybrid"], examples["tensor_parallel"]
    _, found = calls(examples, "hybrid")
    activations = 4 * layer.BATCH * layer.LENGTH * layer.WIDTH
    sums = ("out_addmm", "down_addmm", "up_mm_backward", "qkv_mm_backward")
    assert {name: found.pop(name) for name in sums} == {
        name: [("all_reduce", 2 * (module.RANKS - 1) * activations)] for name in sums
    }
    split = {"qkv_weight", "qkv_bias", "out_weight", "up_weight", "up_bias", "down_weight"}
    held = [
        nbytes * (1 if name in split else module.RANKS)  # by all ranks of a group together
        for name, nbytes in sizes(examples, "hybrid").items()
    ]
    summed = [found.pop(name) for name in list(found) if "backward" in name]
    moved = [[("all_reduce", 2 * (module.GROUPS - 1) * n)] for n in held]
    assert sorted(summed) == sorted(moved)
    assert set(found) == {"x", "y", "optimizer_0_lr", "sum_2"}


def of_gradients(build: Any, batch: Any, space: str, ranks: int) -> tuple[list[int], list[int]]:
    """Bytes of each array of the operands of gradients, and those of the parameters."""
    torch.manual_seed(0)
    module, step = build()
    sdfg = frontend.training_step(step, *batch)
    lowering = distspmd.lower(sdfg, {space: {"b": ranks}}, arguments=frontend.resident(sdfg))
    found = []
    for memlet in lowering.memlets:
        distspmd.verify(memlet.solution.plan)
        source = memlet.solution.plan.redistribution.source
        if source.partial and source.extents != (1,):
            found.append(memlet.solution.cost.nbytes)
    moved = 2 * (ranks - 1)  # operands to who combines them, and sums to all
    return sorted(found), sorted(moved * 4 * p.numel() for p in module.parameters())


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_table_that_is_the_head_is_reduced_once(ranks: int) -> None:
    words = torch.randint(0, 11, (8, 4))

    def build() -> Any:
        module = Tied(11, 8)
        return module, speak(module, torch.optim.AdamW(module.parameters()))

    found, textbook = of_gradients(build, (words, words), "hidden_addmm", ranks)
    assert found == textbook


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("clipped", [False, True])
def test_micro_batches_are_reduced_once(ranks: int, clipped: bool) -> None:
    def build() -> Any:
        module = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 5))
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)

        def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            losses = []
            for part, wanted in zip(x.chunk(2), y.chunk(2), strict=True):
                losses.append(nn.functional.mse_loss(module(part), wanted) / 2)
                losses[-1].backward()
            if clipped:
                nn.utils.clip_grad_norm_(module.parameters(), 0.1)
            optimizer.step()
            return sum(losses)

        return module, step

    batch = torch.randn(8, 8), torch.randn(8, 5)
    found, textbook = of_gradients(build, batch, "t_0_addmm", ranks)
    assert found == textbook


@pytest.mark.parametrize(
    "modules",
    [
        ["hybrid"],
        pytest.param(
            ["data_parallel", "zero", "tensor_parallel"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_examples_train_as_torch_does(
    modules: list[str], request: pytest.FixtureRequest
) -> None:
    folder = str(request.config.rootpath / "examples")
    code = (
        f"import sys, importlib; sys.path.insert(0, {folder!r})\n"
        "from mpi4py import MPI\n"
        "from learning import show\n"
        f"modules = map(importlib.import_module, {modules!r})\n"
        "right = [show(module.EXAMPLE, MPI.COMM_WORLD) for module in modules]\n"
        "assert all(right), right\n"
    )
    launch(["-c", code], ranks=4, timeout=900, capture=True, env=UNOPTIMISED).check()
