"""All ranks run the named architectures, beside torch alone on rank 0; rank 0 says what differs.

`mpiexec -n 2 python -m zoo.run_zoo llama vit`, in `tests`; with `forward` or `step` before the
names one of the two; with `data_parallel` or `megatron` by this preset, else the first space that
can be split is. Said are the seconds to trace, lower and compile, of all and of the processor.
"""

from __future__ import annotations

import copy
import itertools
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from mpi4py import MPI
from torch import Tensor, nn
from training.run_models import difference

import distspmd
from distspmd import frontend
from zoo.registry import Architecture, build

STEPS = 2
PRESETS = {"data_parallel": frontend.data_parallel, "megatron": frontend.megatron}


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


def nudged(module: nn.Module) -> nn.Module:
    """A copy whose parameters differ in their last bits."""
    other = copy.deepcopy(module)
    with torch.no_grad():
        for parameter in other.parameters():
            bit = torch.finfo(parameter.dtype).eps
            parameter.mul_(1 + 0.9 * bit * torch.randn_like(parameter).sign())
    return other


def split(sdfg: Any, ranks: int) -> dict[str, dict[str, int]]:
    """A schedule that splits the first space that can be; all else follows."""
    if ranks == 1:
        return {}
    for space in distspmd.iteration_spaces(sdfg):
        for name, values in zip(space.parameters, space.ranges, strict=True):
            if (values.end - values.begin) / values.step >= ranks:
                return {space.name: {name: ranks}}
    return {}


def seconds() -> tuple[float, float]:
    """That have passed, and that the processor has worked for this process and its compilers."""
    used = os.times()
    return used.elapsed, used.user + used.system + used.children_user + used.children_system


def run(
    what: str, preset: str, example: Architecture, comm: Any
) -> tuple[str, int | None, list[float]]:
    """What differs from torch, in how many calls, and the seconds to trace, lower and compile.

    Later calls than that are not judged: torch itself then makes something else of parameters that
    differ in their last bits. The number is None where all are.
    """
    module, inputs, same = example.module, list(example.inputs), None
    precise = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in module.modules())
    if precise:  # few elements have a norm, which amplifies the rounding of single precision
        module = module.double()
        inputs = [x.double() if x.is_floating_point() else x for x in inputs]
    module.train(what == "step")
    if what == "step":
        same, begun = copy.deepcopy(module), copy.deepcopy(module)
        function, reference = step_of(module), step_of(same)
    else:
        reference = module

    def lowering() -> distspmd.lowering.Lowering:
        if what == "step":
            sdfg = frontend.training_step(function, *inputs, name="step")
        else:
            sdfg = frontend.torch_module(module, *inputs)
        schedule = PRESETS[preset](comm.size) if preset else split(sdfg, comm.size)
        return distspmd.lower(sdfg, schedule)

    worst: list[float] = []
    limit, begin = 1e-7 if precise else 2e-5, seconds()
    with distspmd.compile(lowering, comm) as program:
        taken = [after - before for before, after in zip(begin, seconds(), strict=True)]
        for _ in range(STEPS if what == "step" else 1):
            found = program(*(inputs if comm.rank == 0 else ()))
            if what == "step":
                program.collect()  # presets keep parameters on the ranks, the module has old ones
            if comm.rank != 0:
                continue
            with torch.set_grad_enabled(what == "step"):
                worst.append(difference(found, reference(*inputs)))
            if same is not None:
                worst[-1] = max(worst[-1], difference(module.state_dict(), same.state_dict()))
    limits = [limit] * len(worst)
    if same is not None and max(worst, default=0) >= limit:
        limits = [max(limit, each) for each in roundings(begun, inputs)]
    wrong = [each for each, most in zip(worst, limits, strict=False) if each >= most]
    judged = len(limits) if len(limits) < len(worst) else None
    return f"{max(wrong):.1e}" if wrong else "", judged, taken


def roundings(module: nn.Module, inputs: list[Tensor]) -> list[float]:
    """What each step may differ by: ten times what torch does after a change of less than an ulp.

    The list ends before the first step, behind the first, after which that is not little.
    """
    other, found = nudged(module), []
    step, again = step_of(module), step_of(other)
    for _ in range(STEPS):
        step(*inputs)
        again(*inputs)
        found.append(10 * difference(other.state_dict(), module.state_dict()))
    few = next((n for n, most in enumerate(found) if most > 1e-2), STEPS)
    return [min(1e-2, most) for most in found[: max(few, 1)]]


def main(*arguments: str) -> None:
    """Run and report."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    kinds = [a for a in arguments if a in ("forward", "step")] or ["forward", "step"]
    presets = [a for a in arguments if a in PRESETS] or [""]
    comm = MPI.COMM_WORLD
    for name in arguments:
        if name in kinds or name in PRESETS:
            continue
        for what, preset in itertools.product(kinds, presets):
            problem, judged, (taken, worked) = run(what, preset, build(name), comm)
            if comm.rank == 0:
                after = f" after {judged} of {STEPS} steps" if judged else ""
                told = (
                    f"{problem or 'right'}{after} ({taken:.0f} s, {worked:.0f} s of the processor)"
                )
                print(f"{' '.join(filter(None, [name, what, preset]))}: {told}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
