"""Convolutions and their gradients on ranks, split along each of their dimensions in turn."""

from __future__ import annotations

from typing import Any

import torch
from mpi4py import MPI
from torch import Tensor, nn
from training.run_models import difference

import distspmd
from distspmd import frontend
from distspmd.nodes import contraction

LAYERS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "plain": (lambda: nn.Conv2d(7, 10, 3, stride=2, padding=1), (5, 7, 20, 17)),
    "grouped": (lambda: nn.Conv2d(8, 12, (3, 5), padding=2, dilation=(2, 1), groups=2),
                (4, 8, 13, 14)),
    "volume": (lambda: nn.Conv3d(4, 6, (2, 3, 3), stride=(1, 2, 1)), (3, 4, 6, 11, 12)),
}  # fmt: skip


def every_split(comm: MPI.Comm, kind: str) -> None:
    """Each space of a contraction with each parameter over all ranks, beside torch."""
    make, shape = LAYERS[kind]
    torch.manual_seed(0)
    layer, x = make(), torch.randn(shape)

    def step(x: Tensor) -> list[Tensor]:
        x = x.detach().requires_grad_()
        made = layer(x)
        return [made, *torch.autograd.grad(made.sin().sum(), (x, *layer.parameters()))]

    sdfg = frontend.training_step(step, x, name=f"convolution_{kind}")
    spaces = [s for s in distspmd.iteration_spaces(sdfg) if "convolution" in s.name]
    splits: list[dict[str, Any]] = [
        {space.name: {parameter: comm.size}}
        for space in spaces
        if isinstance(space.node, contraction.Contraction) and not space.node.expression
        for parameter in space.parameters
    ]
    wanted, packed = step(x), 0
    for split in splits:
        sdfg = distspmd.lower(sdfg, split).sdfg
        packed += _is_packed(sdfg)
        with distspmd.compile(sdfg, comm) as program:
            found = program(x) if comm.rank == 0 else program()
        sdfg = frontend.training_step(step, x, name=f"convolution_{kind}")
        if comm.rank == 0:
            for one, other in zip(found, wanted, strict=True):
                assert difference(one, other) < 1e-5, split
    assert len(splits) > 10
    assert packed > len(splits) / 2


def _is_packed(sdfg: Any) -> bool:
    chosen = [
        contraction.fastest_implementation(node, state)
        for node, state in sdfg.all_nodes_recursive()
        if isinstance(node, contraction.Contraction)
    ]
    return contraction.PACKED in chosen
