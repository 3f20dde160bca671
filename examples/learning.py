"""What the examples of training share: train on ranks beside torch, print what moves, compare.

Each step runs under a schedule that is searched for, and then under the one that the example names.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from showing import on_device
from torch import Tensor, nn

import distspmd
from distspmd import frontend, launch
from distspmd.lowering import Lowering
from distspmd.runtime import launched_ranks

if TYPE_CHECKING:  # the ranks that run a program need no DaCe
    from dace import SDFG

STEPS = 3
Trained = tuple[nn.Module, torch.optim.Optimizer, Callable[..., Tensor]]


@dataclass(frozen=True)
class Training:
    """A model and its step, how they are partitioned, and how tensors stay on the ranks.

    Attributes:
        build: makes the module, its optimizer, and the step.
        batch: draws the arguments of the step.
        schedule: of the SDFG; a preset also says how tensors stay on the ranks.
    """

    build: Callable[[], Trained]
    batch: Callable[[], tuple[Tensor, ...]]
    schedule: distspmd.schedule.Patterns

    def lowered(self, step: Callable[..., Tensor]) -> tuple[SDFG, Lowering]:
        """The step, traced and lowered."""
        sdfg = frontend.training_step(step, *self.batch())
        lowering = distspmd.lower(sdfg, self.schedule)
        return lowering.sdfg, lowering

    def searched(self, step: Callable[..., Tensor]) -> tuple[SDFG, Lowering]:
        """The same where no space is named, and tensors stay on the ranks as the schedule says."""
        sdfg = frontend.training_step(step, *self.batch())
        held = frontend.resident(sdfg, **self.schedule.held)
        lowering = distspmd.lower(sdfg, ranks=self.schedule.mesh.size, arguments=held)
        return lowering.sdfg, lowering


def stepped(
    model: nn.Module,
    criterion: Callable[..., Tensor],
    kind: Callable[..., torch.optim.Optimizer],
    **settings: float,
) -> Trained:
    """A model and an optimizer of that kind with the usual step."""
    optimizer = kind(model.parameters(), **settings)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def made(build: Callable[[], Trained]) -> Trained:
    """A model with the parameters that all get."""
    torch.manual_seed(0)
    return build()


def show(training: Training, comm: Any, is_searched: bool = False) -> bool:
    """Train on all ranks; rank 0 prints what moves, and says whether it is what torch does."""
    module, _, step = made(training.build)
    same, _, reference = made(training.build)
    sdfg = None
    if comm.rank == 0:
        sdfg, lowering = (training.searched if is_searched else training.lowered)(step)
        print(f"nothing is named: {lowering.remarks[-1]}" if is_searched else training.schedule)
        for memlet in lowering.memlets:
            if memlet.solution.cost.nbytes:
                nbytes = f"{memlet.solution.cost.nbytes:,} bytes"
                print(f"  {memlet.data}: {memlet.steps}, {nbytes}")
    torch.manual_seed(1)
    farthest = 0.0
    with distspmd.compile(sdfg, comm) as program:
        for _ in range(STEPS):
            batch = training.batch() if comm.rank == 0 else ()
            loss = program(*batch)
            if comm.rank == 0:
                farthest = max(farthest, float((loss - reference(*batch)).abs()))
    if comm.rank == 0:
        pairs = zip(module.parameters(), same.parameters(), strict=True)
        farthest = max(farthest, *(float((a - b).abs().max()) for a, b in pairs))
        print(f"  {STEPS} steps, largest difference from torch {farthest:.1e}")
    return farthest < 1e-4


def main(file: str, training: Training, ranks: int = 4) -> None:
    """Train on ranks that this process starts; it ends with an error if something is wrong."""
    if launched_ranks() is None:
        sys.exit(
            launch([Path(file).resolve(), *sys.argv[1:]], ranks=ranks, env=on_device()).returncode
        )
    from mpi4py import MPI

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    right = [show(training, MPI.COMM_WORLD, is_searched) for is_searched in (True, False)]
    if not all(right):
        sys.exit("training differs from torch")
