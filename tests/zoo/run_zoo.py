"""All ranks run the named architectures, beside torch alone on rank 0; rank 0 says what differs.

`mpiexec -n 2 python -m zoo.run_zoo llama vit`, in `tests`; with `forward` or `step` before the
names one of the two.
"""

from __future__ import annotations

import copy
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from mpi4py import MPI
from torch import Tensor, nn
from training.run_models import difference

import distspmd
from distspmd import frontend
from zoo.architectures import Architecture, build

STEPS = 2


def step_of(module: nn.Module) -> Callable[..., Tensor]:
    """A training step, as users write it."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)

    def step(*inputs: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = module(*inputs).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def split(sdfg: Any, ranks: int) -> dict[str, dict[str, int]]:
    """A schedule that splits the first space that can be; all else follows."""
    if ranks == 1:
        return {}
    for space in distspmd.iteration_spaces(sdfg):
        for name, values in zip(space.parameters, space.ranges, strict=True):
            if (values.end - values.begin) / values.step >= ranks:
                return {space.name: {name: ranks}}
    return {}


def run(what: str, example: Architecture, comm: Any) -> str:
    """What differs from torch."""
    module, inputs, same = example.module, list(example.inputs), None
    precise = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in module.modules())
    if precise:  # few elements have a norm, which amplifies the rounding of single precision
        module = module.double()
        inputs = [x.double() if x.is_floating_point() else x for x in inputs]
    sdfg = None
    if comm.rank == 0:
        if what == "step":
            module.train()
            same = copy.deepcopy(module)
            function, reference = step_of(module), step_of(same)
            sdfg = frontend.training_step(function, *inputs, name="step")
        else:
            module.eval()
            reference = module
            sdfg = frontend.torch_module(module, *inputs)
        distspmd.lower(sdfg, split(sdfg, comm.size))
    worst = 0.0
    with distspmd.compile(sdfg, comm) as program:
        for _ in range(STEPS if what == "step" else 1):
            if comm.rank != 0:
                program()
                continue
            found = program(*inputs)
            with torch.set_grad_enabled(what == "step"):
                worst = max(worst, difference(found, reference(*inputs)))
            if same is not None:
                worst = max(worst, difference(module.state_dict(), same.state_dict()))
    return "" if worst < (1e-7 if precise else 2e-5) else f"{worst:.1e}"


def main(*arguments: str) -> None:
    """Run and report."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    kinds = [a for a in arguments if a in ("forward", "step")] or ["forward", "step"]
    comm = MPI.COMM_WORLD
    for name in arguments:
        for what in kinds:
            if name in kinds:
                continue
            begin = time.perf_counter()
            problem = run(what, build(name), comm)
            if comm.rank == 0:
                taken = time.perf_counter() - begin
                print(f"{name} {what}: {problem or 'right'} ({taken:.0f} s)", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
