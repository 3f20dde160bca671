"""All ranks train the named models, beside torch alone on rank 0; rank 0 says what differs."""

from __future__ import annotations

import ctypes
import sys
import warnings
from math import inf
from typing import Any

import torch
from mpi4py import MPI
from torch.utils import _pytree as pytree

import distspmd
from distspmd import frontend
from training.models import MODELS, Model

STEPS = 20
M_PERTURB = -6
"""Of malloc.h: fresh memory is filled with a byte, so that nothing relies on zeros."""


def difference(given: Any, wanted: Any) -> float:
    """The largest difference of tensors, against the size of their values."""
    pairs = zip(pytree.tree_leaves(given), pytree.tree_leaves(wanted), strict=True)
    found = [
        float((a.detach() - b.detach()).abs().max() / (1 + b.detach().abs().max()))
        for a, b in pairs
        if isinstance(b, torch.Tensor)
    ]
    return max((value if value == value else inf for value in found), default=0.0)


def train(model: Model, comm: Any) -> str:
    """What is wrong with a model after a number of steps."""
    module, optimizer, step = model.build()
    same, its_optimizer, reference = model.build()
    sdfg = None
    if comm.rank == 0:
        sdfg = frontend.training_step(step, *model.batch(), name=model.name)
        sdfg = distspmd.lower(sdfg, model.schedule(comm.size)).sdfg
    ctypes.CDLL(None).mallopt(M_PERTURB, 165)
    torch.manual_seed(5)
    worst = {}
    with distspmd.compile(sdfg, comm) as program:
        for number in range(1, STEPS + 1):
            batch = model.batch()
            if comm.rank != 0:
                program()
                continue
            found = [difference(program(*batch), reference(*batch))]
            found.append(difference(module.state_dict(), same.state_dict()))
            states = [list(o.state.values()) for o in (optimizer, its_optimizer)]
            found.append(difference(*states))
            if number in (3, STEPS):
                worst[number] = max(found)
    limits = {3: 2e-5, STEPS: 5e-4}
    ctypes.CDLL(None).mallopt(M_PERTURB, 0)  # it makes Python slow
    return "; ".join(
        f"after {number} steps {value:.1e}"
        for number, value in worst.items()
        if not value < limits[number]
    )


def main(*names: str) -> None:
    """Train and report."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    comm = MPI.COMM_WORLD
    for model in MODELS:
        if model.name in names:
            problem = train(model, comm)
            if comm.rank == 0:
                print(f"{model.name}: {problem or 'right'}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
