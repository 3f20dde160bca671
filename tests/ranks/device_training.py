"""Modules whose parameters lie on a device train there, beside torch on the host.

Arguments are the names of placements that are tried.
"""

import os
import sys
from pathlib import Path

import pytest
import torch
from mpi4py import MPI
from torch import nn

import distspmd
from distspmd import frontend
from distspmd.errors import ArgumentError

sys.path.insert(0, str(Path(__file__).parents[1]))
from training import emulated_torch

comm = MPI.COMM_WORLD
torch.set_num_threads(1)
DEVICE = os.environ.get("DISTSPMD_TEST_DEVICE", emulated_torch.NAME)
if DEVICE == emulated_torch.NAME:
    emulated_torch.register()


def build(device, dtype=torch.float32):
    """A module, its optimizer and a step that draws random numbers."""
    torch.manual_seed(0)
    layers = nn.Linear(9, 7), nn.LayerNorm(7), nn.ReLU(), nn.Dropout(0.4), nn.Linear(7, 3)
    model = nn.Sequential(*layers).to(dtype).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x).float(), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def values(model, optimizer):
    return [*model.parameters(), *(t for own in optimizer.state.values() for t in own.values())]


def prepared(made, kinds, device, split=0):
    """The lowered step of rank 0, with a parameter of the first product split: its batch."""
    x = torch.randn(5, 9).to(next(made[0].parameters()).dtype)
    examples = x.to(device), torch.randint(0, 3, (5,)).to(device)
    sdfg = frontend.training_step(made[2], *examples, name=f"step_{x.dtype}".replace(".", "_"))
    held = frontend.resident(sdfg, **kinds)
    product = next(s for s in distspmd.iteration_spaces(sdfg) if s.name == "t_0_addmm")
    parts = {product.parameters[split]: comm.size}
    return distspmd.lower(sdfg, {"t_0_addmm": parts}, arguments=held).sdfg


def train(kinds, dtype=torch.float32):
    """Steps on both kinds of memory, with the same random numbers: they give the same."""
    made = {device: build(device, dtype) for device in ("cpu", DEVICE)}
    programs = {}
    for device, own in made.items():
        sdfg = prepared(own, kinds, device) if comm.rank == 0 else None
        given = DEVICE if device == DEVICE else None
        programs[device] = distspmd.compile(sdfg, comm, device=given)
    near = {"rtol": 2e-2, "atol": 1e-2} if dtype.itemsize == 2 else {"rtol": 1e-4, "atol": 1e-5}
    torch.manual_seed(3)
    for number in range(4):
        if number == 2:  # what is changed in between is what the next step begins with
            for device, program in programs.items():
                program.collect()
                if comm.rank == 0:
                    with torch.no_grad():
                        made[device][0][0].weight.fill_(0.5)
                program.distribute()
        x, y = torch.randn(5, 9).to(dtype), torch.randint(0, 3, (5,))
        if comm.rank:
            results = [program() for program in programs.values()]
            assert {type(result) for result in results} == {distspmd.runtime.MissingResult}
            continue
        wanted = programs["cpu"](x, y)
        where = DEVICE if number else "cpu"  # results lie where the module does, all the same
        found = programs[DEVICE](x.to(where), y.to(where))
        assert found.device.type == DEVICE, found.device
        torch.testing.assert_close(found.cpu(), wanted, **near)
    for program in programs.values():
        program.collect()
        program.close()
    if comm.rank == 0:
        pointers = [t.data_ptr() for t in values(*made[DEVICE][:2])]
        assert len(set(pointers)) == len(pointers)
        for a, b in zip(values(*made[DEVICE][:2]), values(*made["cpu"][:2]), strict=True):
            torch.testing.assert_close(a.cpu(), b, **near)


def of_host():
    """Results are tensors of the host where the module is there, though its parts are not."""
    found = []
    for device in (None, DEVICE):
        made = build("cpu")
        kinds = {"parameters": "distributed"}  # kernels use the tiles of those that units split
        sdfg = prepared(made, kinds, "cpu", split=1) if comm.rank == 0 else None
        torch.manual_seed(3)
        batch = (torch.randn(5, 9), torch.randint(0, 3, (5,))) if comm.rank == 0 else ()
        with distspmd.compile(sdfg, comm, device=device) as program:
            found.append(program(*batch))
    if comm.rank == 0:
        assert all(isinstance(loss, torch.Tensor) and loss.is_cpu for loss in found)
        torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


PLACEMENTS = {
    "replicated": ({"parameters": "replicated"}, torch.float32),
    "distributed": ({"parameters": "distributed"}, torch.float32),
    "root": ({"parameters": "root"}, torch.float32),
    "halves": ({"parameters": "replicated"}, torch.bfloat16),
}


def refuse():
    """A program of the host does not take a module of the device, and all ranks hear of it."""
    made = build(DEVICE)
    sdfg = prepared(made, {"parameters": "root"}, DEVICE) if comm.rank == 0 else None
    with distspmd.compile(sdfg, comm) as program:
        batch = (torch.randn(5, 9), torch.randint(0, 3, (5,))) if comm.rank == 0 else ()
        with pytest.raises(ArgumentError, match=rf"on the device {DEVICE}.*compile.*device="):
            program(*batch)


if sys.argv[1:] == ["replicated"]:
    refuse()
    of_host()
for placement in sys.argv[1:]:
    train(*PLACEMENTS[placement])
    if comm.rank == 0:
        print(placement, "trained on the device")
