"""A diffusion U-Net and networks over graphs, by presets: as torch, with the bytes of textbooks."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest
import torch
from dace import SDFG

import distspmd
from distspmd import frontend
from zoo.steps.run_steps import build
from zoo.steps.sweep import run

GRAPHS = ("gcn_weighted", "gat", "gin")
PRESETS = [
    ("data_parallel(2)", 2),
    ("data_parallel(3)", 3),
    ("zero(1, 2)", 2),
    ("zero(2, 3)", 3),
    ("fsdp(3)", 3),
    ("megatron(2)", 2),
]
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("preset", "ranks"), PRESETS)
@pytest.mark.parametrize("name", ["diffusion_unet", *GRAPHS])
def test_three_steps_are_those_of_torch(name: str, preset: str, ranks: int) -> None:
    found = run(name, preset, ranks=ranks, seconds=900)
    assert found["found"] == "right", found["said"]


@pytest.fixture(scope="module")
def unet() -> tuple[SDFG, list[int]]:
    """The step, and the bytes of each gradient."""
    example = build("diffusion_unet")
    (module,) = example.modules
    nbytes = [p.numel() * p.element_size() for p in module.parameters()]
    return frontend.training_step(example.step, *example.batches[0]), nbytes


def moved(sdfg: SDFG, schedule: Any) -> Counter[int]:
    """How often so many bytes move; not inputs and results, and no single numbers."""
    lowering = distspmd.lower(copy.deepcopy(sdfg), schedule)
    own = [m for m in lowering.memlets if not m.data.startswith("__return")]
    found = [m.solution.cost.nbytes for m in own if m.data not in sdfg.arg_names]
    single = 2 * (lowering.ranks - 1) * torch.float64.itemsize
    return Counter(nbytes for nbytes in found if nbytes > single)


@pytest.mark.parametrize("ranks", [2, 3])
def test_data_parallel_reduces_each_gradient_of_a_unet_once(
    unet: tuple[SDFG, list[int]], ranks: int
) -> None:
    """Biases of two branches that are added have one gradient."""
    sdfg, gradients = unet
    wanted = Counter(2 * (ranks - 1) * nbytes for nbytes in gradients)
    twice = Counter({2 * (ranks - 1) * 4 * torch.float64.itemsize: 2})
    assert moved(sdfg, frontend.data_parallel(ranks)) == wanted - twice


def test_zero_scatters_each_gradient_of_a_unet_and_gathers_each_parameter(
    unet: tuple[SDFG, list[int]],
) -> None:
    """Weights that are turned around for gradients of images are turned on all ranks."""
    sdfg, gradients = unet
    once = Counter(gradients)
    twice = Counter({4 * torch.float64.itemsize: 2})
    assert moved(sdfg, frontend.zero(1, 2)) == once + once - twice


def test_zero_with_tiles_that_are_uneven_moves_a_hundredth_more(
    unet: tuple[SDFG, list[int]],
) -> None:
    sdfg, gradients = unet
    found = moved(sdfg, frontend.zero(2, 3))
    assert sum(n * count for n, count in found.items()) < 1.01 * 4 * sum(gradients)
