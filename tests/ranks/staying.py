"""Parameters and states that stay on the ranks between calls, beside torch alone on rank 0.

Arguments are the names of placements that are tried.
"""

import sys

import dace
import pytest
import torch
from mpi4py import MPI
from torch import nn

import distspmd
from distspmd import frontend
from distspmd.errors import ArgumentError

comm = MPI.COMM_WORLD
torch.set_num_threads(1)


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(9, 7), nn.ReLU(), nn.Linear(7, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def values(model, optimizer):
    return [*model.parameters(), *(t for own in optimizer.state.values() for t in own.values())]


def check(ours, theirs):
    for a, b in zip(values(*ours[:2]), values(*theirs[:2]), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=2e-6)


def train(kinds, split_updates):
    """Steps, a change on rank 0 in between, and more steps; what moved in the program itself."""
    ours, theirs = build(), build()
    sdfg, lowering = None, None
    if comm.rank == 0:
        sdfg = frontend.training_step(ours[2], torch.randn(5, 9), torch.randint(0, 3, (5,)))
        schedule = {"t_0_addmm": {"b": comm.size}}
        if split_updates:
            schedule |= {n: {"__b": comm.size} for n in frontend.parameters(sdfg)}
        lowering = distspmd.lower(sdfg, schedule, arguments=frontend.resident(sdfg, **kinds))
        sdfg = lowering.sdfg
    with distspmd.compile(sdfg, comm) as program:
        for number in range(4):
            if number == 2:
                program.collect()
                if comm.rank == 0:
                    check(ours, theirs)
                    for model in (ours[0], theirs[0]):
                        torch.nn.init.ones_(model[0].weight)
                program.distribute()
            x, y = torch.randn(5, 9), torch.randint(0, 3, (5,))
            if comm.rank:
                assert isinstance(program(), distspmd.runtime.MissingResult)
            else:
                torch.testing.assert_close(program(x, y), theirs[2](x, y))
    if comm.rank == 0:
        check(ours, theirs)
        return {m.data for m in lowering.memlets if m.from_caller and m.solution.cost.nbytes}
    return set()


PLACEMENTS = {
    "replicated": ({"parameters": "replicated"}, False),
    "states": ({"parameters": "replicated", "states": "distributed"}, True),
    "distributed": ({"parameters": "distributed"}, True),
    "root": ({"parameters": "root"}, True),
}

for kinds, split_updates in map(PLACEMENTS.__getitem__, sys.argv[1:]):
    moved = train(kinds, split_updates)
    if comm.rank == 0 and kinds["parameters"] != "root":
        assert not any("exp_avg" in name for name in moved), moved
    if comm.rank == 0 and not split_updates:
        assert moved == ({"x", "y", "optimizer_0_lr"} if comm.size > 1 else set()), moved

with pytest.raises(ArgumentError, match="bound to no tensors"):
    frontend.resident(dace.SDFG("alone"))
if comm.rank == 0:
    print("stayed")
