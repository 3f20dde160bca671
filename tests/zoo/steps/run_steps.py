"""One published step, beside torch: on paper in one process, or on ranks by a preset.

In `tests`: `python -m zoo.steps.run_steps paper nano_gpt`, or `mpiexec -n 2 python -m
zoo.steps.run_steps "data_parallel(2)" nano_gpt`. Rank 0 prints one line of JSON with what was
found: right, refused (an error of ours), wrong, foreign (another error), or broken (torch itself
fails).
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from training.run_models import difference

from distspmd import frontend
from distspmd.errors import DistSPMDError
from distspmd.frontend.from_torch.optimizers import FirstStepDiffers
from zoo.steps import (  # noqa: F401
    agents,
    classifiers,
    densities,
    encoders,
    generators,
    graphs,
    habits,
    learning,
    memories,
    more_models,
    operators,
    others,
    pictures,
    pixels,
    recommendations,
    repositories,
    science,
    sequences,
    series,
    several_senses,
    texts,
    tutorials,
)
from zoo.steps.table import Training, build

PAPER = "paper"
PRESETS = ("data_parallel", "megatron", "sequence_parallel", "zero", "fsdp", "experts")
HALF_A_BIT = 2e-16


def state(example: Training) -> list[Any]:
    """All that the modules of a step hold."""
    return [module.state_dict() for module in example.modules]


def in_torch(name: str, nudge: float = 0.0) -> tuple[list[Any], list[Any]]:
    """The results of each call of torch's own step, and the state behind the last one.

    Args:
        name: of the step.
        nudge: by so much, of their size, parameters differ from those that they should have.
    """
    example = build(name)
    with torch.no_grad():
        for module in example.modules if nudge else ():
            for parameter in module.parameters():
                parameter.mul_(1 + nudge * torch.randn_like(parameter).sign())
    results = []
    for batch in example.batches:
        results.append(pytree.tree_map(_detached, example.step(*batch)))
        example.after()
    last = state(example)
    for leaf in pytree.tree_leaves((results, last)):
        if isinstance(leaf, Tensor) and not leaf.isfinite().all():
            raise ValueError("torch itself finds numbers that are not finite")
    return results, last


def _detached(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def compared(
    example: Training, call: Callable[..., Any], collect: Callable[[], Any], wanted: Any
) -> str:
    """What differs from torch after all calls."""
    results, last = wanted
    worst = 0.0
    for batch, result in zip(example.batches, results, strict=True):
        found = call(*batch)
        example.after()
        if example.tolerance is None:
            leaves = [x for x in pytree.tree_leaves(found) if isinstance(x, Tensor)]
            assert all(bool(x.isfinite().all()) for x in leaves)
        else:
            worst = max(worst, difference(pytree.tree_leaves(found), pytree.tree_leaves(result)))
    collect()
    if example.tolerance is None:
        return ""
    worst = max(worst, difference(state(example), last))
    return "" if worst < example.tolerance else f"{worst:.1e}"


def is_rounding(name: str, wanted: Any, said: str) -> bool:
    """Whether torch differs from itself about as much where parameters differ by half a bit."""
    other = in_torch(name, HALF_A_BIT)
    between = [difference(a, b) for a, b in zip(other, wanted, strict=True)]
    return float(said) < 10 * max(between) < 1e-2


def on_paper(name: str, wanted: Any) -> str:
    """What differs where NumPy evaluates the kernels of the front end."""
    from from_torch.kernels_in_numpy import Program

    example = build(name)
    with pytest.MonkeyPatch.context() as patch:
        program = Program(patch)
        called: Callable[..., Any] | None = None
        in_torch = False

        def call(*batch: Tensor) -> Any:
            nonlocal called, in_torch
            try:
                called = called or program.calls(example.step, *batch)
            except FirstStepDiffers:  # the first is torch's then, as in frontend.partitioned
                if in_torch:
                    raise
                in_torch = True
                return example.step(*batch)
            return called(*batch)

        return compared(example, call, lambda: None, wanted)


def on_ranks(name: str, preset: str, comm: Any, wanted: Any) -> str:
    """What differs where all ranks run the step together."""
    schedule = eval(preset, {name: getattr(frontend, name) for name in PRESETS})
    example = build(name) if comm.rank == 0 else None
    with frontend.partitioned(example and example.step, schedule, comm) as step:
        if example is None:
            for _ in range(len(build(name).batches)):
                step()
            step.collect()
            return ""
        return compared(example, step, step.collect, wanted)


def outcome(name: str, how: str) -> dict[str, Any]:
    """One word for what happened, and what was said."""
    begin = time.process_time()
    comm = None
    if how != PAPER:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    try:
        wanted = in_torch(name) if comm is None or comm.rank == 0 else None
    except Exception as problem:
        if comm is not None:
            print(json.dumps({"name": name, "found": "broken", "said": str(problem)}), flush=True)
            comm.Abort(0)
        return {"name": name, "found": "broken", "said": f"{type(problem).__name__}: {problem}"}
    try:
        said = on_paper(name, wanted) if comm is None else on_ranks(name, how, comm, wanted)
        found = "wrong" if said else "right"
        if said and is_rounding(name, wanted, said):
            found = "right"
    except DistSPMDError as problem:
        found, said = "refused", str(problem)
        if isinstance(problem.__cause__, Exception) and "cannot be lowered" in said:
            found = "foreign"
    except Exception as problem:
        where = traceback.extract_tb(problem.__traceback__)[-1]
        found = "foreign"
        said = f"{type(problem).__name__}: {problem} ({where.filename}:{where.lineno})"
    taken = time.process_time() - begin
    return {"name": name, "how": how, "found": found, "said": said, "seconds": round(taken, 1)}


def main(how: str, *names: str) -> None:
    """Run and report."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name in names:
        found = outcome(name, how)
        if how == PAPER or rank_of_this() == 0:
            print(json.dumps(found), flush=True)


def rank_of_this() -> int:
    """Of this process."""
    from mpi4py import MPI

    return int(MPI.COMM_WORLD.rank)


if __name__ == "__main__":
    main(*sys.argv[1:])
